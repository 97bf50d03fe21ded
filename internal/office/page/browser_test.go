// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/faceauth/faceauth/internal/axe"
	"github.com/faceauth/faceauth/internal/fixture"
	office "github.com/faceauth/faceauth/internal/office/page"
)

// browser is a headless Chromium that shows a page. An error of a script in the page fails the
// test.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// expected matches errors of the console that tests cause: refusals of the API, which the page
// shows in words, wrong tokens, and a frame that must not be.
var expected = regexp.MustCompile(
	`/api/\S+ .* status of 4(04|09|13|22) |/camera/\S+ .*ERR_EMPTY_RESPONSE |/login .* status of 401 | Framing '`)

// chromium is the browser of all tests, each of which has a tab.
var chromium struct {
	sync.Once
	ctx   context.Context
	close context.CancelFunc
}

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.close != nil {
		chromium.close()
	}
	os.Exit(code)
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long to start")
	}
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		fixture.Missing(t, "there is no browser; install the Debian package chromium")
	}
	chromium.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
			chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
		all, _ := chromedp.NewExecAllocator(context.Background(), options...)
		chromium.ctx, chromium.close = chromedp.NewContext(all)
		fixture.Check(t, chromedp.Run(chromium.ctx))
	})
	ctx, cancel := chromedp.NewContext(chromium.ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t, ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		if t.Context().Err() != nil { // the server goes before its page
			return
		}
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script fails: %s", e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError &&
				!expected.MatchString(e.Entry.URL+" "+e.Entry.Text) {
				t.Errorf("the console says: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				t.Errorf("the console says: %s", e.Args[0].Value)
			}
		}
	})
	// A tab behind another one shows its page all the same; CSP is for axe, and cookies are of
	// earlier tests.
	b.do(emulation.SetFocusEmulationEnabled(true), chromedp.ActionFunc(func(ctx context.Context) error {
		return errors.Join(page.SetBypassCSP(true).Do(ctx), network.ClearBrowserCookies().Do(ctx))
	}))
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	fixture.Check(b.t, chromedp.Run(b.ctx, actions...))
}

// script runs JavaScript and returns its value.
func (b *browser) script(js string) (out string) {
	b.t.Helper()
	out, err := b.evaluated(js)
	if err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return out
}

func (b *browser) evaluated(js string) (out string, err error) {
	err = chromedp.Run(b.ctx, chromedp.Evaluate("String("+js+")", &out))
	return out, err
}

// awaits waits until a JavaScript expression is true. A page that gives way to another while it is
// asked, as after a form, is asked again.
func (b *browser) awaits(js string) {
	b.t.Helper()
	// While a page is loading it has no elements.
	tried := "(() => { try { return Boolean(" + js + ") } catch { return false } })()"
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		is, err := b.evaluated(tried)
		var left *cdproto.Error
		switch {
		case is == "true":
			return
		case err != nil && !(errors.As(err, &left) && left.Code == -32000):
			b.t.Fatalf("%s: %v", js, err)
		case time.Now().After(end):
			b.picture("failed")
			b.t.Fatalf("in vain: %s\n%s", js, b.script("document.body.innerText"))
		}
	}
}

// has is a condition: an element has a text.
func has(selector, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))",
		selector, text)
}

// screen sets the size of the window and the preferred colours.
func (b *browser) screen(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"},
		}))
}

// picture saves a screenshot in $FACEAUTH_PICTURES, if that is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("FACEAUTH_PICTURES")
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	fixture.Check(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// serve serves a page to browsers of this machine, and returns its address.
func serve(t *testing.T, p *office.Page) string {
	t.Helper()
	l := fixture.Must(p.Listen("127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// views are the addresses of the page, each with an element that shows that the view is there.
func views() []struct{ name, anchor, there string } {
	ann := "#person/Ann%20Archer"
	return []struct{ name, anchor, there string }{
		{
			"now",
			"#now",
			has("#now-title",
				"are here") + " && document.querySelectorAll('#sightings>li').length > 3 && " +
				"document.querySelector('#now-cameras img:not([hidden])')",
		},
		{
			"inbox",
			"#inbox/stranger-1",
			has("#question h2", "Who is this?") +
				" && document.querySelectorAll('.best img').length === 4",
		},
		{"still", "#inbox/still", "document.querySelectorAll('.confirming .best img').length > 0"},
		{"conflict", "#inbox/conflict", has("#question h2", "One person, or two?")},
		{"people", "#people", "document.querySelectorAll('#people-list>li').length === 5"},
		{"person", ann, has("h1", "Ann Archer") +
			" && document.querySelector('[data-view=person] svg[viewBox]')"},
		{"long", "#person/" + url.PathEscape(longName), has("h1", longName)},
		{"timeline", "#timeline/" + time.Now().Add(-24*time.Hour).Format(time.DateOnly),
			"document.querySelectorAll('.events li').length >= 50"},
		{"cameras", "#cameras", "document.querySelector('#camera-list img:not([hidden])')"},
		{"health", "#health", has("#states", "Not delivered") + " && " + has("#states", "Down")},
		{"grid", "#inbox/all", "document.querySelectorAll('#grid li').length === 3"},
	}
}

var loaded = "[...document.images].every(i => i.hidden || i.closest('[hidden]') || i.complete && " +
	"i.naturalWidth > 0)"

// longestWay chooses the learned face of a person with the most steps before it.
const longestWay = `(() => {
	document.querySelectorAll("[role=tab]")[1].click();
	queueMicrotask(() => {
		const steps = e => Number((e.textContent.match(/(\d+) step/) || [0, 0])[1]);
		[...document.querySelectorAll("#known .pick")].sort((a, b) => steps(b) - steps(a))[0]?.click();
	});
})()`

// faults returns what does not fit: what is wider than the window or than its box, lies over a
// neighbour, and words that are broken or crushed, though they are short.
const faults = `(() => {
	const badge = document.querySelector("#badge");
	if (badge) badge.textContent = "128";
	const all = [...document.querySelectorAll("body *")].filter(e =>
		e.getClientRects().length && !e.closest(".skip:not(:focus), svg, option, .box, .frame, .wide"));
	const name = e => e.outerHTML.slice(0, 100), found = [];
	for (const e of all) {
		const r = e.getBoundingClientRect(), style = getComputedStyle(e);
		if (r.right > innerWidth + 1 || r.left < -1) found.push("outside: " + name(e));
		if (e.scrollWidth > e.clientWidth + 1 && style.overflowX === "visible" && style.display !== "inline")
			found.push("wider than its box: " + name(e));
		for (const t of e.childNodes) {
			if (t.nodeType !== Node.TEXT_NODE) continue;
			for (const m of t.data.matchAll(/\S+/g)) {
				const range = document.createRange();
				range.setStart(t, m.index);
				range.setEnd(t, m.index + m[0].length);
				const lines = new Set([...range.getClientRects()].map(x => Math.round(x.top))).size;
				if (lines > 1 && m[0].length <= 16 && !/[-/–]./.test(m[0])) found.push(m[0] + " is broken: " + name(e));
			}
			if (t.data.trim().length > 3 && style.textOverflow === "ellipsis" && r.width < 40)
				found.push("crushed: " + name(e));
		}
	}
	return found.slice(0, 5).join("\n");
})()`

// On every screen, light or dark, everything fits in every view, and axe finds no fault in any
// view.
func TestSystemViews(t *testing.T) {
	script, err := axe.Script()
	if err != nil {
		fixture.Missing(t, "%v", err)
	}
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	at := serve(t, s.page)
	b.do(chromedp.Navigate(at + "/"))
	b.awaits(views()[0].there)
	b.do(chromedp.Evaluate(script, nil))
	for _, c := range []struct {
		width  int64
		scheme string
		axe    bool
	}{{320, "light", false}, {390, "light", true}, {820, "dark", false}, {1440, "dark", true}} {
		b.screen(c.width, 900, c.scheme)
		for _, v := range views() {
			anchor := v.anchor
			if v.name == "still" {
				anchor += "-" + s.learnedSighting()
			}
			if v.name == "conflict" {
				anchor = "#inbox/" + url.PathEscape(s.conflictKey())
			}
			b.script(fmt.Sprintf("location.hash = %q", anchor))
			b.awaits(v.there)
			name := fmt.Sprintf("%s-%s-%d", v.name, c.scheme, c.width)
			check := func(name string) {
				b.awaits(loaded)
				if got := b.script(faults); got != "" {
					t.Errorf("%s:\n%s", name, got)
				}
				b.picture(name)
				if c.axe {
					b.axe(name)
				}
			}
			check(name)
			switch v.name {
			case "now": // the sheet behind a face
				b.script("document.querySelector('#sightings .tile').click()")
				b.awaits("document.querySelector('#sheet[open] .film img')")
				check("sheet-" + name)
			case "person":
				b.script(longestWay)
				// Either the chain of faces, or a message that the face is gone, as the office goes
				// on learning.
				b.awaits("!!document.querySelector('[aria-label=\"How this face came to be " +
					"theirs\"] p')")
				check("known-" + name)
			}
		}
	}
	// The page loads nothing from other sites.
	if got := b.script("performance.getEntriesByType('resource').every(e => e.name.startsWith('" +
		at +
		"'))"); got != "true" {
		t.Error("it asks somebody else")
	}
}

// axe makes axe-core check the page that is shown.
func (b *browser) axe(name string) {
	b.t.Helper()
	b.script("scrollTo(0, 0)") // the bar may lie over a half of what is scrolled
	var found []struct {
		ID, Help string
		Nodes    []struct {
			HTML, FailureSummary string
		}
	}
	var out string
	b.do(
		chromedp.Evaluate(
			`axe.run(document, {resultTypes: ["violations"],
						runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then(r => JSON.stringify(r.violations.map(v => ({ID: v.id, Help: v.help,
						Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))}))))`,
			&out,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
				return p.WithAwaitPromise(true)
			},
		),
	)
	fixture.Check(b.t, json.Unmarshal([]byte(out), &found))
	for _, f := range found {
		for _, n := range f.Nodes {
			b.t.Errorf("%s: %s: %s\n%.200s\n%s", name, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// press presses keys, as a user without a mouse does.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// A user answers the inbox with the keyboard alone, and undoes a wrong answer.
func TestSystemInbox(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(1100, 900, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#inbox/stranger-1"))
	b.awaits(has("#question h2", "Who is this?") + " && " + has("#position", " of 5"))
	// Typing a name answers no question.
	b.press("n")
	b.awaits("document.activeElement.placeholder === 'Name'")
	// chromedp sends the letter to the field that it focuses, as no browser does.
	b.script("document.activeElement.value = ''")
	b.press("fij")
	b.awaits("document.activeElement.value === 'fij'")
	b.script("document.activeElement.value = ''")
	b.press("Zoe\r")
	b.awaits(has("#toasts", "Named Zoe."))
	b.awaits(has("#position", " of 4"))
	if n := len(s.office.Now().Known); n != 6 {
		t.Errorf("%d people are known", n)
	}
	// The list that comes late takes the focus from nobody who is at work.
	b.script("[window.quick, window.fetch] = [fetch, (...a) => " +
		"new Promise(r => setTimeout(() => r(quick(...a)), 500))]")
	b.script("[...document.querySelectorAll('#toasts button')].find(e => e.innerText === " +
		"'Undo').click()")
	b.awaits(has("#toasts", "Undone."))
	b.script("location.hash = '#inbox/stranger-3'")
	b.awaits("[...document.querySelectorAll('#question input')].some(e => e.ariaLabel === 'Who " +
		"is unknown person 3?')")
	b.script("document.querySelector('#question .answer input').focus()")
	b.awaits(has("#position", " of 5"))
	time.Sleep(300 * time.Millisecond)
	if got := b.script("document.activeElement.ariaLabel"); got != "Who is unknown person 3?" {
		t.Errorf("the focus is in %q", got)
	}
	b.script("window.fetch = quick")
	if n := len(s.office.Now().Known); n != 5 {
		t.Errorf("after the undo %d people are known", n)
	}
	// Whoever names several in a row types on, into the name of the next one.
	b.press("Nora\r")
	b.awaits(has("#toasts", "Named Nora.") + " && " + has("#position", " of 4"))
	b.awaits("document.activeElement.ariaLabel === 'Who is unknown person 2?'")
	b.press("Fi")
	b.awaits("document.activeElement.value === 'Fi'")
	b.script("[...document.querySelectorAll('#toasts button')].find(e => e.innerText === 'Undo').click()")
	b.awaits(has("#toasts", "Undone.") + " && " + has("#position", " of 5"))
	// While one page types, another one answers: the rest of the name is for no other question.
	b.script("location.hash = '#inbox/stranger-1'")
	b.awaits("document.querySelector('#question input')?.ariaLabel === 'Who is unknown person 1?'")
	b.script("document.querySelector('#question .answer input').focus()")
	b.press("F")
	var said struct{ Correction struct{ ID uint64 } }
	olga := ask(s.page, "POST", "/api/name", `{"group":1,"name":"Olga","force":true}`)
	fixture.Check(t, json.Unmarshal(olga.Body.Bytes(), &said))
	b.awaits(has("#question", "This was Olga.") + " && document.activeElement.id === 'question-title'")
	b.press("ij")
	if b.script(has("#question", "This was Olga.")+
		" && !document.querySelector('#ignored')") != "true" {
		t.Error("a letter of a name has answered a question")
	}
	ask(s.page, "POST", "/api/undo", fmt.Sprintf(`{"id":%d}`, said.Correction.ID))
	b.awaits("document.querySelectorAll('#names option').length === 5")
	// Go on, back, and around; then ignore one stranger and forget another.
	b.script("location.hash = '#inbox/stranger-2'")
	b.awaits(has("#position", "3 of 5"))
	b.press("j")
	b.awaits(has("#position", "4 of 5") + " && document.activeElement.id === 'question-title'")
	b.press("k")
	b.awaits(has("#position", "3 of 5"))
	// The second click of a double click would be on the next question.
	b.script("[...document.querySelectorAll('#question button')].find(e => " +
		"e.innerText.startsWith('Ignore')).id = 'ignore'")
	b.do(chromedp.DoubleClick("#ignore", chromedp.ByQuery))
	b.awaits(
		has("#toasts", "ignored from now on") + " && " + has("#position",
			"of 4") + " && " + has("#ignored", "1 person ignored"),
	)
	time.Sleep(300 * time.Millisecond)
	if b.script(has("#ignored", "1 person ignored")+
		" && document.querySelector('#trouble').hidden") != "true" {
		t.Error("a double click says something twice")
	}
	b.script("document.querySelector('#toasts button').click()")
	b.awaits(has("#position", "of 5"))
	b.script("location.hash = '#inbox/stranger-3'")
	b.awaits("[...document.querySelectorAll('#question input')].some(e => e.ariaLabel === 'Who is unknown person 3?')")
	b.script("document.querySelector('#question').focus()")
	b.press("m")
	b.awaits("document.activeElement.matches('.pick')")
	b.press("\r")
	b.awaits(has("#toasts", "They are one person now.") + " && " + has("#position", "of 4"))
	b.script("document.querySelector('#toasts button').click()")
	b.awaits(has("#position", "of 5"))
	// No letter forgets. Who is forgotten can come back for a while.
	b.script("document.querySelector('#question').focus()")
	b.press("f")
	b.script("[...document.querySelectorAll('#question button')].find(e => e.innerText === " +
		"'Forget').click()")
	b.awaits(has("#toasts", "They are erased in 30 seconds.") + " && " + has("#position", "of 4"))
	b.script("document.querySelector('#toasts button').click()")
	b.awaits(has("#toasts", "Not forgotten.") + " && " + has("#position", "of 5"))
	// A link to a question that was answered, or never was, says so and shows no other question.
	b.script("location.hash = '#inbox/stranger-99'")
	b.awaits(has("#question", "not open any more") +
		" && !document.querySelector('#question input')")
	b.script("location.hash = '#inbox/stranger-2'")
	b.awaits(has("#question", "Who is this?"))
	// Outside of the question, where a voice may type, none of these keys does anything.
	b.script("document.activeElement.blur()")
	before := b.script("document.querySelector('#position').innerText")
	b.press("j")
	b.press("f")
	time.Sleep(300 * time.Millisecond)
	if after := b.script("document.querySelector('#position').innerText"); after != before {
		t.Errorf("%s, and then %s", before, after)
	}
	// A yes enrols the faces that are shown, with those far from the enrolled ones first.
	b.script("location.hash = '#inbox/still-" + s.learnedSighting() + "'")
	b.awaits("document.querySelectorAll('.confirming .best')[0].children.length > 0 && " +
		"document.querySelectorAll('.confirming .best')[1].children.length > 0")
	if got := b.script(
		"(all => all.every((d, i) => i === 0 || d <= all[i - 1]))([...document.querySelectorAll(" +
			"'.confirming .best')[0].querySelectorAll('.under')].map(e => Number(e.innerText)))"); got != "true" {
		t.Error("the faces are in another order")
	}
	b.script("document.querySelector('#question').focus()")
	b.press("y")
	b.awaits(has("#toasts", "are enrolled now."))
	b.script("document.querySelector('#toasts button').click()")
	b.awaits(has("#toasts", "Undone."))
	// Contradicting labels are shown side by side, and one of them is taken back.
	b.script("location.hash = '#inbox/" + s.conflictKey() + "'")
	b.awaits("document.querySelectorAll('.sides>*').length === 2 && " + has(".sides", "Dana"))
	faces := len(s.office.Conflicts())
	b.script("document.querySelector('#question').focus()")
	b.press("1")
	b.awaits(has("#toasts", "The face is taken back."))
	b.script("document.querySelector('#toasts button').click()")
	b.awaits(has("#toasts", "Undone."))
	// They may be one person, or two who look alike: one answer is for all pairs, and each can be
	// undone.
	for key, done := range map[string]string{"o": "Dan is Dana now.", "t": "They are two people"} {
		b.script("location.hash = '#inbox'")
		b.script("location.hash = '#inbox/" + s.conflictKey() + "'")
		b.awaits("document.querySelectorAll('.sides>*').length === 2")
		b.script("document.querySelector('#question').focus()")
		b.press(key)
		b.awaits(has("#toasts", done))
		b.awaits("!document.querySelector('.sides')")
		b.script("document.querySelector('#toasts button').click()")
		b.awaits(has("#toasts", "Undone."))
	}
	if n := len(s.office.Conflicts()); n != faces {
		t.Errorf("%d conflicts, and %d after the undo", faces, n)
	}
	// Several strangers get one name at once, and one undo takes it back.
	b.script("location.hash = '#inbox/all'")
	b.awaits("document.querySelectorAll('#grid input').length === 3")
	b.script("document.querySelectorAll('#grid input').forEach((e, i) => i && e.click())")
	b.awaits(has(".bottom", "2 people chosen"))
	b.script("document.querySelector('.bottom input').value = 'Yara'")
	b.script("document.querySelector('.bottom form').requestSubmit()")
	b.awaits("document.querySelector('#ask').open || " + has("#toasts", "Named Yara."))
	// one looks like the other, who is Yara now
	if b.script("document.querySelector('#ask').open") == "true" {
		b.script("document.querySelector('#ask .main').click()")
	}
	b.awaits(has("#toasts", "Named Yara.") +
		" && document.querySelectorAll('#grid input').length === 1")
	b.script("document.querySelector('#toasts button').click()")
	b.awaits("document.querySelectorAll('#grid input').length === 3")
	// Corrections are listed there, and can be undone there, too.
	b.script("location.hash = '#health'")
	b.awaits(has("#corrections", "Named person 1 Zoe") + " && " + has("#corrections", "undone"))
}

// A mistake is corrected at its sighting, also a wrong naming.
func TestSystemCorrection(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(390, 844, "dark")
	b.do(chromedp.Navigate(serve(t, s.page) + "/"))
	b.awaits("document.querySelectorAll('#sightings>li').length > 3")
	if got := ask(s.page, "POST", "/api/name", `{"group":1,"name":"Zoe"}`); got.Code != 200 {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	b.awaits(has("#sightings li", "Zoe"))
	b.script("[...document.querySelectorAll('#sightings li')].find(e => " +
		"e.innerText.includes('Zoe')).firstElementChild.click()")
	b.awaits(has("#sheet h2", "Zoe"))
	b.script("[...document.querySelectorAll('#sheet button')].find(e => e.innerText === 'It is " +
		"somebody else').click()")
	b.awaits(has("#toasts", "That was not Zoe"))
	b.awaits("!" + has("#sightings li", "Zoe"))
	for _, p := range s.office.Now().Known {
		if p.Name == "Zoe" {
			t.Error("Zoe is still known")
		}
	}
}

// A learned face is taken back with what was learned through it, where the chain shows it; and so
// is a label.
func TestSystemTakeBack(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(390, 800, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#person/Ann%20Archer"))
	b.awaits("document.querySelectorAll('[role=tab]').length > 1")
	click := func(text string) {
		b.t.Helper()
		find := fmt.Sprintf(
			"[...document.querySelectorAll('#known button')].find(e => e.innerText === %q)", text)
		b.awaits("!!" + find)
		b.script(find + ".click()")
		b.awaits("document.querySelector('#ask').open")
		b.script("document.querySelector('#ask button[value=yes]').click()")
	}
	b.script(longestWay)
	click("Take back from here")
	b.awaits("/^[1-9][0-9]* learned faces? taken " +
		"back/.test(document.querySelector('#toasts').innerText)")
	if got := b.script(
		"document.querySelector('#toasts').innerText.includes('Undo')"); got != "false" {
		t.Error("an undo is offered, which would not learn again")
	}
	click("Take back")
	b.awaits(has("#toasts", "The face is taken back.") + " && " + has("#toasts", "Undo"))
}

// Now has one picture for each person, however often they came. A film plays in its place, and a
// message goes.
func TestSystemVisits(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(390, 844, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/"))
	b.awaits("document.querySelectorAll('#sightings>li').length > 3")
	ann := "[...document.querySelectorAll('#sightings>li')].filter(e => " +
		"e.innerText.includes('Ann Archer'))"
	b.awaits(ann + ".length === 1 && /^[2-9]×$/.test(" + ann +
		"[0].querySelector('.times').innerText)")
	b.script(ann + "[0].firstElementChild.click()")
	b.awaits("document.querySelectorAll('#sheet .faces li').length > 1 && " +
		has("#sheet h3", "times since"))
	b.script("document.querySelector('#sheet .faces li:last-child button').click()")
	b.awaits("document.querySelector('#sheet .faces li:last-child button').ariaPressed === 'true'")
	b.awaits("document.querySelector('.film img').naturalWidth > 0")
	b.script("(() => { const at = document.querySelector('.film input'); at.value = at.max; " +
		"at.dispatchEvent(new Event('input')) })()")
	b.awaits("(i => i.complete && i.naturalWidth > 0 && " +
		"!/[/]0[?]/.test(i.src))(document.querySelector('.film img'))")
	b.script("document.querySelector('.film button').click()")
	b.awaits("document.querySelector('.film button').innerText === 'Pause'")
	b.awaits("document.querySelector('.film input').value > 0") // it moves by itself
	b.script("document.querySelector('#sheet .close').click()")
	b.awaits("!document.querySelector('#sheet').open")
	b.script(ann + "[0].firstElementChild.dispatchEvent(new PointerEvent('pointerenter', " +
		"{pointerType: 'mouse'}))")
	// it plays under a mouse
	b.awaits("/clip[/][0-9]+[/][1-9]/.test(" + ann + "[0].querySelector('img').src)")

	// Questions wait for one another, take no key that is still held down, and go with their view.
	b.script("import('./api.js').then(m => { window.said = ''; for (const q of '123') " +
		"m.ask(q + '?', 'Yes').then(a => said += q + a + ' ') })")
	b.awaits(has("#ask[open]", "1?"))
	b.do(input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithCode("Enter").WithText("\r").
		WithWindowsVirtualKeyCode(13).WithAutoRepeat(true))
	b.press("\r")
	b.awaits(has("#ask[open]", "2?") + " && said === '1true '")
	b.press("\x1b")
	b.awaits(has("#ask[open]", "3?") + " && said === '1true 2false '")
	b.script("location.hash = '#people'")
	b.awaits("said === '1true 2false 3false '")

	b.script("import('./api.js').then(m => m.trouble('the disk is full'))")
	b.awaits(has("#trouble", "The disk is full.") +
		" && !document.querySelector('#trouble').hidden")
	b.script("document.querySelector('#trouble button').click()")
	b.awaits("document.querySelector('#trouble').hidden")
}

// A camera of which too little is looked at is not well, and Health says what that costs.
func TestSystemSlowCamera(t *testing.T) {
	b := newBrowser(t)
	b.do(chromedp.Navigate(serve(t, slowScene(t).page) + "/#health"))
	b.awaits(has("#states", "Too slow") + " && " + has("#states", "of 1000 frames a second") +
		" && " +
		has("#states", "who passes quickly is missed"))
}

// The picture of a camera comes however slow the line is, and though answers are lost; then another
// one comes, and meanwhile the last says when it was taken.
func TestSystemSlowLine(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	at := fixture.Must(url.Parse(serve(t, s.page)))(t)
	for _, c := range []struct {
		name  string
		delay time.Duration
		drops bool
	}{{"1.5 s", 1500 * time.Millisecond, false}, {"5 s", 5 * time.Second, false},
		{"losses", 0, true}} {
		// with the server's host
		line := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
		var asked, gone atomic.Int32
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/camera/") {
				n := asked.Add(1)
				select {
				case <-time.After(c.delay):
				case <-r.Context().Done():
					gone.Add(1)
				}
				if c.drops && n%2 == 1 {
					panic(http.ErrAbortHandler)
				}
			}
			line.ServeHTTP(w, r)
		}))
		b.do(chromedp.Navigate(proxy.URL + "/#cameras"))
		const img = "document.querySelector('#camera-list img')"
		b.awaits(img + "?.naturalWidth > 0")
		first := b.script(img + ".src")
		if c.delay > time.Second {
			b.picture("slow-" + c.name)
		}
		if c.delay > 4*time.Second {
			b.awaits("document.querySelector('#camera-list time')")
		}
		b.awaits(img + ".src !== '" + first + "' && " + img + ".naturalWidth > 0")
		if n := gone.Load(); n > 0 {
			t.Errorf("%s: %d of %d requests were given up", c.name, n, asked.Load())
		}
		b.do(chromedp.Navigate("about:blank"))
		proxy.CloseClientConnections()
		proxy.Close()
	}
}

// Pictures enrol somebody, and each one that does not says why.
func TestSystemUpload(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{See: see})
	b.screen(390, 844, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#people"))
	b.awaits("document.querySelectorAll('#people-list>li').length === 5")
	choose := func(box string, names ...string) {
		list := fixture.Must(json.Marshal(names))(t)
		b.script(fmt.Sprintf(`(() => {
			const all = new DataTransfer();
			for (const n of %s) all.items.add(new File([Uint8Array.of(255, 216, 255), n], n + ".jpg",
				{type: "image/jpeg"}));
			const input = document.querySelector(%q);
			input.files = all.files;
			input.dispatchEvent(new Event("change"));
		})()`, list, box+" input[type=file]"))
	}
	// A file that misses the place for pictures is not opened in place of the page.
	if b.script("(all => { all.items.add(new File(['x'], 'x.jpg')); return dispatchEvent("+
		"new DragEvent('drop', {dataTransfer: all, cancelable: true})) })(new DataTransfer())") !=
		"false" {
		t.Error("the browser opens a file that is dropped beside its place")
	}
	b.script("document.querySelector('#add').open = true")
	choose("#add", "good") // without a name
	b.awaits("document.activeElement.placeholder === 'Name'")
	b.script("document.querySelector('#newcomer').value = 'Zoe'")
	choose("#add", "good", "blurred", "ann")
	b.awaits("document.querySelector('#ask').open && " +
		has("#ask", "A picture looks like Ann Archer."))
	b.script("document.querySelector('#ask .row').firstChild.click()")
	b.awaits(has("#add", "good.jpg") + "&&" + has("#add", "blurred") + "&&" +
		has("#add", "it looks like Ann Archer"))
	b.awaits(has("#toasts", "1 of 3 pictures of Zoe enrolled.") + " && " +
		has("#people-list", "Zoe"))
	b.script("location.hash = '#person/Zoe'")
	b.awaits("document.querySelectorAll('[role=tab]').length > 1")
	b.script("document.querySelectorAll('[role=tab]')[1].click()")
	b.awaits(has("#known", "More pictures of them"))
	choose("#known", "third", "empty")
	b.awaits(has("#known .drop", "no face was found") + " && " + has("#known", "2 enrolled faces"))
	// One of them is chosen to stand for her.
	b.script("[...document.querySelectorAll('.portrait button')].find(e => e.innerText === " +
		"'Picture …').click()")
	b.awaits("document.querySelectorAll('#sheet .pick').length === 2")
	b.script("document.querySelector('#sheet .pick').click()")
	b.awaits(has("#toasts", "This is their picture now.") +
		" && !document.querySelector('#sheet').open")
	// A picture is compared with those who were here.
	b.script("location.hash = '#people'")
	b.awaits("document.querySelector('#ever')")
	b.script("document.querySelector('#ever').open = true")
	choose("#ever", "any")
	b.awaits(has("#ever", "Ann Archer") + " && document.querySelectorAll('#ever .tile').length > 0")
	b.picture("ever-light-390")
}

// A mask is drawn with a pointer and with keys, and its lines can be copied.
func TestSystemArea(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(390, 844, "dark")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#cameras"))
	b.awaits("document.querySelector('#camera-list button')")
	b.script("document.querySelector('#camera-list button').click()")
	b.awaits("document.querySelector('#sheet .draw img')?.naturalWidth > 0")
	at := func(x, y float64) (float64, float64) {
		var r []float64
		b.do(chromedp.Evaluate("(r => [r.x, r.y, r.width, r.height])("+
			"document.querySelector('#sheet .draw').getBoundingClientRect())", &r))
		return r[0] + x*r[2], r[1] + y*r[3]
	}
	for _, c := range [][2]float64{{.25, .25}, {.75, .25}} {
		x, y := at(c[0], c[1])
		b.do(chromedp.MouseClickXY(x, y))
	}
	b.script("document.querySelector('#sheet .draw').focus()")
	b.press(kb.Enter) // the cross is in the middle
	for range 10 {
		b.press(kb.ArrowDown)
	}
	b.press(kb.Enter)
	b.press(kb.Backspace)
	lines := "document.querySelector('#sheet textarea').value"
	b.awaits("document.querySelector('#sheet textarea')")
	want := regexp.MustCompile(`^mask:\n  - 0\.2[45]\d*,0\.2[45]\d* 0\.7[45]\d*,0\.2[45]\d* 0\.5,0\.5$`)
	if got := b.script(lines); !want.MatchString(got) {
		t.Errorf("%q", got)
	}
	b.picture("area-dark-390")
	b.script("(i => { i.value = 'till'; i.dispatchEvent(new Event('input', {bubbles: true})) })(" +
		"document.querySelector('#sheet input'))")
	b.awaits(lines + ".startsWith('zones:\\n  \"till\": 0.2')")
	if script, err := axe.Script(); err == nil {
		b.do(chromedp.Evaluate(script, nil))
		b.axe("area")
	}
}

// Who only looks finds nothing that would change something.
func TestSystemLook(t *testing.T) {
	b := newBrowser(t)
	const looker = "another one made up for the tests"
	s := newScene(t, office.Options{Token: token, Look: office.Look{Token: looker}})
	b.screen(1280, 900, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/"))
	b.awaits("document.querySelector('#token')")
	b.script("(i => { i.value = '" + looker + "'; i.form.requestSubmit() })(" +
		"document.querySelector('#token'))")
	b.awaits(has(".bar", "looks only") + " && document.querySelector('#sightings .tile')")
	for _, anchor := range []string{"now", "people", "person/Ann%20Archer", "health", "timeline"} {
		b.script("location.hash = '#" + anchor + "'")
		view, _, _ := strings.Cut(anchor, "/")
		b.awaits("document.querySelector('[data-view=" + view + "] h1')")
		b.awaits("document.querySelector('[data-view=" + view + "]').innerText.length > 20")
		if got := b.script("[...document.querySelectorAll('#view button, #view input')].filter(e => " +
			"!e.disabled && /Forget|Undo|Same as|Picture …|Save|Keep|Add a person/.test(" +
			"e.innerText + e.ariaLabel)).map(e => e.outerHTML).join()"); got != "" {
			t.Errorf("%s: %s", anchor, got)
		}
		b.picture("look-" + view)
	}
}

// Each view has an address, and the browser's buttons move between the views. Every day can be
// read.
func TestSystemHistory(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(820, 900, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#timeline"))
	const n = "document.querySelectorAll('.events li').length"
	// strangers have a bar, too
	b.awaits(n + " > 0 && document.querySelector('.bars svg.stranger')")
	for _, step := range []struct{ button, day string }{
		{"#earlier-day", "Yesterday"}, {"#later-day", "Today"}, {"#earlier-day", "Yesterday"},
	} {
		b.script("document.querySelector('" + step.button + "').click()")
		b.awaits(has(".day h2", step.day) + " && " + n + " >= 3")
	}
	// Who turns to another day while one loads never sees a day without its events.
	b.script(`(() => {
		const ask = fetch
		window.held = []
		window.fetch = (path, ...more) => !String(path).includes('events?') ? ask(path, ...more) :
			new Promise(answer => held.push(() => answer(ask(path, ...more))))
		new MutationObserver(() => window.empty ||=
			document.querySelector('.day')?.innerText.includes('no such events')).
			observe(document.body, {subtree: true, childList: true, characterData: true})
		window.restore = () => { window.fetch = ask; held.forEach(f => f()) }
	})()`)
	b.script("(document.activeElement.blur(), document.querySelector('#later-day').click())")
	b.awaits("held.length === 1")
	b.script("(document.querySelector('#earlier-day').click(), held[0]())")
	b.awaits("held.length === 2")
	b.script("restore()")
	b.awaits("document.activeElement.id === 'timeline-title' && " + has(".day h2", "Yesterday") +
		" && " + n + " >= 3")
	if b.script("window.empty") == "true" {
		t.Error("a day was shown without its events while they were loaded")
	}
	// Keys and the wheel enlarge a part of a day, by the same steps for each person.
	chart := "document.querySelector('.bars')"
	b.script(chart + ".focus()")
	b.press("++")
	b.awaits(chart + ".querySelector('svg[viewBox]').getAttribute('viewBox') === '540 0 360 10'")
	b.script(chart +
		".dispatchEvent(new WheelEvent('wheel', {deltaY: 2000, clientX: 400, cancelable: true}))")
	b.awaits(chart + ".querySelector('svg[viewBox]').getAttribute('viewBox') === '0 0 1440 10'")
	choose := func(id, value string) {
		b.script(fmt.Sprintf("(f => { f.value = %q; f.dispatchEvent(new Event('change')) "+
			"})(document.querySelector(%q))",
			value, id))
	}
	choose("#date", time.Now().Add(-48*time.Hour).Format(time.DateOnly))
	b.awaits("!" + has(".day h2", "Yesterday") + " && " + n + " === 50")
	// A short visit can be seen, and hit with a finger, where no other one is beside it and the day
	// does not end.
	b.awaits(`getComputedStyle(document.querySelector('.bars rect')).strokeWidth === '6px' &&
		[...document.querySelectorAll('.bars .touch')].some(bar => {
			bar.scrollIntoView({block: 'center'})
			const is = bar.getBoundingClientRect(), middle = is.top + is.height / 2
			return [is.left - 11, is.right + 11].some(x => document.elementFromPoint(x, middle) === bar)
		})`)
	b.script("document.querySelector('.bars .touch').dispatchEvent(new MouseEvent('click', " +
		"{bubbles: true}))")
	b.awaits("document.querySelector('dialog[open] .looks')")
	b.press("\x1b")
	b.awaits("!document.querySelector('dialog[open]')")
	choose("#f-kind", "mistake")
	b.awaits(n + " > 0 && [...document.querySelectorAll('.events li')].every(e => " +
		"e.innerText.includes('a mistake'))")
	choose("#f-kind", "")
	choose("#f-name", "Ben Okafor")
	b.awaits(n + " > 9 && [...document.querySelectorAll('.events li')].every(e => " +
		"e.innerText.includes('Ben Okafor'))")

	b.script("document.querySelector('.tabs a[href=\"#people\"]').click()")
	b.awaits("document.title.startsWith('People') && document.activeElement.innerText === 'People'")
	b.awaits(has("#people-list a", "Ben"))
	b.script("[...document.querySelectorAll('#people-list a')].find(e => " +
		"e.innerText.includes('Ben')).click()")
	b.awaits(
		has("#person-title",
			"Ben Okafor") + " && document.title.startsWith('Ben Okafor') && " +
			"document.querySelectorAll('#known .day').length >= 3",
	)
	b.script("history.back()")
	b.awaits("document.title.startsWith('People')")
	b.script("history.back()")
	b.awaits("document.title.startsWith('Timeline') && " +
		"document.querySelector('[aria-current]').hash === '#timeline'")
	b.script("history.forward()")
	b.script("history.forward()")
	b.awaits(has("#person-title", "Ben Okafor") + " && document.querySelector('button.name')")
	// The person gets a new name, and the address follows.
	b.script("document.querySelector('button.name').click()")
	b.awaits("document.querySelector('.portrait form')")
	b.script("(f => { f.querySelector('input').value = 'Benedict'; f.requestSubmit() " +
		"})(document.querySelector('.portrait form'))")
	b.awaits(has("#person-title", "Benedict") +
		" && decodeURIComponent(location.hash) === '#person/Benedict' && " +
		"document.querySelectorAll('#known .day').length >= 3")
	// A filter for somebody who has another name now is gone.
	b.script("location.hash = '#timeline'")
	b.awaits(n + " > 0 && document.querySelector('#f-name').value === '' && " +
		"document.querySelector('#trouble').hidden")
	b.script("location.hash = '#person/' + encodeURIComponent('Nobody / <b>x</b>%')")
	b.awaits(has("#view", "No person with this name is known."))
	b.script("location.hash = '#nonsense'")
	b.awaits("document.title.startsWith('Now')")
}

// The page works below a path, with a token, and inside another page.
func TestSystemBelow(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{Token: token, Base: "/home/faceauth", Frames: []string{"self"}})
	b.do(page.SetBypassCSP(false))
	at := serve(t, s.page)
	b.do(chromedp.Navigate(at + "/"))
	b.awaits("document.activeElement.id === 'token'")
	b.press("wrong\r")
	b.awaits(has("[role=alert]", "That is not the token.") +
		" && document.activeElement.id === 'token'")
	b.press(token + "\r")
	b.awaits(has("#now-title", "are here") + " && location.pathname === '/home/faceauth/'")
	b.awaits(loaded)
	if got := b.script("document.cookie"); got != "" {
		t.Error("a script can read the cookie")
	}
	b.script(
		"(() => { const f = document.createElement('iframe'); f.src = 'api/now'; f.id = 'inside'; " +
			"document.body.append(f) })()")
	time.Sleep(300 * time.Millisecond)
	if got := b.script("performance.getEntriesByType('resource').every(e => e.name.startsWith('" +
		at +
		"/home/faceauth/'))"); got != "true" {
		t.Error("it asks for something that is not below its path")
	}
}

// The pictures of the page in docs are made with FACEAUTH_PICTURES=$PWD/docs/office. The faces in
// them are drawn. A file beside them says of which page they are: when the page changes, they must
// be made anew.
func TestSystemPictures(t *testing.T) {
	sum := sha256.New()
	files := fixture.Must(filepath.Glob("static/*.*"))(t)
	for _, f := range append(files, "index.html.tmpl", "../../pagestyle/page.css") {
		b := fixture.Must(os.ReadFile(f))(t)
		sum.Write(b)
	}
	of := fmt.Sprintf("%x\n", sum.Sum(nil))
	dir := os.Getenv("FACEAUTH_PICTURES")
	if dir == "" {
		made, err := os.ReadFile("../../../docs/office/page.sha256")
		if err != nil || string(made) != of {
			t.Fatal("the pictures in docs/office are of an older page; in the folder of the " +
				"project run: FACEAUTH_PICTURES=$PWD/docs/office go test ./internal/office/page " +
				"-run TestSystemPictures")
		}
		return
	}
	s := play(t, office.Options{}, film("yard", []part{{frames: 1 << 30}}, 10))
	s.until(s.sure)
	strangers := s.office.Strangers() // the last seen first
	fixture.Must(s.office.Rename(longName, "Carla Rossi"))(t)
	fixture.Must(s.office.Name(strangers[0].ID, "Emil Novak", false))(t)
	fixture.Must(s.office.Name(strangers[1].ID, "Freya Lind", false))(t)
	b := newBrowser(t)
	// The pictures are of an evening, whenever they are made. The names of these zones have the
	// other sign.
	zone := time.Now().UTC().Hour() - 18
	if zone < -14 {
		zone += 24
	}
	b.do(emulation.SetTimezoneOverride(fmt.Sprintf("Etc/GMT%+d", zone)),
		chromedp.Navigate(serve(t, s.page)+"/"))
	for _, p := range []struct {
		name, anchor  string
		width, height int64
		scheme, there string
	}{
		{"now", "#now", 1100, 860, "light", views()[0].there},
		{"inbox", "#inbox/stranger-1", 390, 800, "dark", views()[1].there},
		{"person", "#person/Ann%20Archer", 1100, 860, "light", views()[5].there},
		{"timeline", "#timeline", 1100, 700, "light", views()[7].there},
	} {
		b.screen(p.width, p.height, p.scheme)
		b.script(fmt.Sprintf("location.hash = %q", p.anchor))
		b.awaits(p.there)
		if p.name == "person" {
			b.script(longestWay)
			b.awaits("document.querySelectorAll('.way li').length > 1")
			b.script("document.querySelector('.card[role]').scrollIntoView({block: 'center'})")
		}
		b.awaits(loaded)
		time.Sleep(time.Second)
		b.picture(p.name)
	}
	fixture.Check(t, os.WriteFile(filepath.Join(dir, "page.sha256"), []byte(of), 0o644))
}

// Three hundred people are a short list on a telephone, and a letter finds the others.
func TestSystemCrowd(t *testing.T) {
	b := newBrowser(t)
	s := newScene(t, office.Options{})
	b.screen(390, 844, "light")
	b.do(chromedp.Navigate(serve(t, s.page) + "/#people"))
	b.awaits("document.querySelectorAll('#people-list>li').length === 5")
	b.script("Promise.all([import('./api.js'), import('./dom.js')]).then(([api, dom]) => {" +
		"Object.defineProperty(api.data, 'people', {get: () => Array.from({length: 300}, (_, i) => " +
		"({id: i, name: 'ÄBCDEFGHIJKLMNOPQRSTUVWXYZ'[i % 26] + 'nna ' + i, here: false})), " +
		"set: () => {}}); dom.update() })")
	b.awaits("document.querySelectorAll('#people-list>li').length === 48")
	high, err := strconv.Atoi(b.script("document.documentElement.scrollHeight"))
	if err != nil || high > 7000 {
		t.Errorf("%d pixels, %v", high, err)
	}
	b.picture("crowd-light-390")
	if script, err := axe.Script(); err == nil {
		b.do(chromedp.Evaluate(script, nil))
		b.axe("crowd")
	}
	b.script("document.querySelectorAll('.letters button')[1].click()") // A, and so Ä
	b.awaits("document.querySelectorAll('#people-list>li').length === 12 && " +
		has("#people-list", "Änna 0"))
}
