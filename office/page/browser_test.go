// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/faceauth/faceauth/internal/axe"
	"github.com/faceauth/faceauth/internal/fixture"
	office "github.com/faceauth/faceauth/office/page"
)

// browser is a headless Chromium that shows a page. Whatever its scripts complain of fails the test.
type browser struct {
	t   *testing.T
	ctx context.Context
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
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	b := &browser{t, ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		if e, ok := event.(*runtime.EventExceptionThrown); ok {
			t.Errorf("the page's script fails: %s", e.ExceptionDetails.Error())
		}
	})
	b.do(chromedp.ActionFunc(func(ctx context.Context) error { return page.SetBypassCSP(true).Do(ctx) })) // for axe
	return b
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// script runs JavaScript and returns what it comes to.
func (b *browser) script(js string) (out string) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Evaluate("String("+js+")", &out)); err != nil {
		b.t.Fatalf("%s: %v", js, err)
	}
	return out
}

// awaits waits until JavaScript comes to true.
func (b *browser) awaits(js string) {
	b.t.Helper()
	// A page that is being loaded has nothing of it yet.
	tried := "(() => { try { return Boolean(" + js + ") } catch { return false } })()"
	for end := time.Now().Add(20 * time.Second); b.script(tried) != "true"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.picture("failed")
			b.t.Fatalf("in vain: %s\n%s", js, b.script("document.body.innerText"))
		}
	}
}

// has is that a text is in an element.
func has(selector, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text)
}

// screen sets the size of the window and the colours that its owner likes.
func (b *browser) screen(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// picture keeps what a browser shows in $FACEAUTH_PICTURES, if that is set.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("FACEAUTH_PICTURES")
	if dir == "" {
		return
	}
	var png []byte
	b.do(chromedp.CaptureScreenshot(&png))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// serve serves a page to browsers of this machine, and returns where it is.
func serve(t *testing.T, p *office.Page) string {
	t.Helper()
	l, err := p.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// views are the addresses of the page, and what shows that each is there.
func views() []struct{ name, anchor, there string } {
	ann := "#person/Ann%20Archer"
	return []struct{ name, anchor, there string }{
		{"now", "#now", has("#now-title", "are here") + " && document.querySelectorAll('#sightings>li').length > 3 && document.querySelector('#now-cameras img:not([hidden])')"},
		{"inbox", "#inbox/stranger-1", has("#question h2", "Who is this?") + " && document.querySelectorAll('.best img').length === 4"},
		{"still", "#inbox/still", "true"},
		{"conflict", "#inbox/conflict", has("#question h2", "Which of these is wrong?")},
		{"people", "#people", "document.querySelectorAll('#people-list>li').length === 5"},
		{"person", ann, has("#person h2", "Visits") + " && document.querySelector('#visits svg')"},
		{"long", "#person/" + url.PathEscape(longName), has("#person h2", "Visits")},
		{"timeline", "#timeline", "document.querySelectorAll('.events li').length >= 50"},
		{"cameras", "#cameras", "document.querySelector('#camera-list img:not([hidden])')"},
		{"health", "#health", has("#states", "Not delivered") + " && " + has("#states", "Down")},
	}
}

var loaded = "[...document.images].every(i => i.hidden || i.closest('[hidden]') || i.complete && i.naturalWidth > 0)"

// On every screen, light or dark, no view is wider than the screen, and axe finds nothing to mend in any of them.
func TestViews(t *testing.T) {
	script, err := axe.Script()
	if err != nil {
		fixture.Missing(t, "%v", err)
	}
	s := newScene(t, office.Options{})
	b := newBrowser(t)
	at := serve(t, s.page)
	b.do(chromedp.Navigate(at + "/"))
	b.awaits(views()[0].there)
	b.do(chromedp.Evaluate(script, nil))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{320, 360, 820, 1440, 1920} {
			b.screen(width, 900, scheme)
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
				b.awaits(loaded)
				if v.name == "person" {
					b.script("document.querySelector('.pick') && document.querySelector('.pick').click()")
					b.awaits("document.querySelectorAll('.way li').length > 2")
				}
				name := fmt.Sprintf("%s-%s-%d", v.name, scheme, width)
				if got := b.script("document.documentElement.scrollWidth"); got != fmt.Sprint(width) {
					t.Errorf("%s is %s wide: %s", name, got, b.script("[...document.querySelectorAll('main *,.bar *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 100)).join('\\n')"))
				}
				b.picture(name)
				if width == 360 || width == 1440 {
					b.axe(name)
				}
			}
		}
	}
	// Everything that the page asks for is its own.
	if got := b.script("performance.getEntriesByType('resource').every(e => e.name.startsWith('" + at + "'))"); got != "true" {
		t.Error("it asks somebody else")
	}
}

// axe has axe-core look at what is shown.
func (b *browser) axe(name string) {
	b.t.Helper()
	var found []struct {
		ID, Help string
		Nodes    []struct {
			HTML, FailureSummary string
		}
	}
	var out string
	b.do(chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]})
		.then(r => JSON.stringify(r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))}))))`, &out,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		b.t.Fatal(err)
	}
	for _, f := range found {
		for _, n := range f.Nodes {
			b.t.Errorf("%s: %s: %s\n%.200s\n%s", name, f.ID, f.Help, n.HTML, n.FailureSummary)
		}
	}
}

// press presses keys, as somebody without a mouse does.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

var _ = strings.Contains
