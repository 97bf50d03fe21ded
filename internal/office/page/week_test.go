// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"crypto/sha256"
	"fmt"
	"image/color"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/office"
	pages "github.com/faceauth/faceauth/internal/office/page"
)

// With sixteen cameras, a hundred strangers and a week of events every view stays small, and
// nothing on it moves while it is filled. The figures are those of lab/NOTES.md.
func TestSystemWeek(t *testing.T) {
	b := newBrowser(t)
	// an office keeps the 50 groups that were seen last
	const cameras, strangers, kept = 16, 100, 50
	// One more question is about Dan and Dana, who look alike.
	parts := make([][]part, cameras)
	for i := range strangers {
		name := fmt.Sprint("passer-by ", i)
		shade := uint8(60 + 19*i%190)
		cast[name] = cast["stranger 1"]
		c := cast[name]
		c.at = [2]float32{float32(-6 - 4*(i%10)), float32(-6 - 4*(i/10))}
		c.hair = color.RGBA{shade, 90, 200 - shade/2, 255}
		cast[name] = c
		defer delete(cast, name)
		at := i % cameras
		parts[at] = append(parts[at], part{who: name, frames: 40, unsteady: .3}, part{frames: 30})
	}
	played := 7*70 + 15*fps
	var all []office.Camera
	for i := range parts {
		all = append(all, film(fmt.Sprint("camera ", i+1), append(parts[i], part{frames: 1 << 30}),
			played))
	}
	s := perform(t, pages.Options{}, 7, played, all...)
	s.until(func() bool {
		now := s.office.Now() // when everybody has left, what still moves is the page's doing
		return len(s.office.Strangers()) == kept && len(now.People) == 0 &&
			!slices.ContainsFunc(now.Cameras, func(c office.View) bool { return c.Frames < played })
	})
	b.screen(390, 844, "light")
	address := serve(t, s.page) + "/"
	b.do(chromedp.Navigate(address))
	b.awaits("document.querySelectorAll('.strip li').length === 16")
	b.awaits("document.querySelectorAll('#sightings>li').length > 3")
	b.script("(() => { window.moved = 0; window.movers = []; " +
		"const at = r => [r.x, r.y, r.width, r.height].map(Math.round); " +
		"const name = n => n ? n.id || n.className || n.nodeName : 'gone'; " +
		"new PerformanceObserver(l => l.getEntries().filter(e => !e.hadRecentInput).forEach(e => " +
		"{ moved += e.value; " +
		"movers.push(location.hash, e.value, ...e.sources.map(s => name(s.node) + ' ' + " +
		"at(s.previousRect) + ' > ' + " +
		"at(s.currentRect))) })).observe({type: 'layout-shift', buffered: true}) })()")
	if got := b.script("document.querySelector('#badge').innerText"); got != strconv.Itoa(kept+1) {
		t.Errorf("the badge says %s", got)
	}
	for _, v := range []struct {
		name, there string
		nodes       int // elements at most
	}{
		{"now", "document.querySelectorAll('#sightings img:not([hidden])').length > 0", 900},
		{"inbox", has("#position", "of 51"), 900},
		{"people", "document.querySelectorAll('#people-list>li').length === 5", 900},
		{"timeline", "document.querySelectorAll('.events li').length >= 50", 1200},
		{"cameras", "document.querySelectorAll('#camera-list figure').length === 16", 1200},
		{"health", has("#view", "All is well."), 1400},
	} {
		b.script("(() => { performance.clearResourceTimings(); location.hash = '#" + v.name +
			"' })()")
		b.awaits(v.there)
		n, err := strconv.Atoi(b.script("document.querySelectorAll('*').length"))
		if err != nil || n > v.nodes {
			t.Errorf("%s has %d elements, %v", v.name, n, err)
		}
		high, err := strconv.Atoi(b.script("document.documentElement.scrollHeight"))
		if err != nil || v.name == "now" && high > 2*844 {
			t.Errorf("%s is %d px high, %v", v.name, high, err)
		}
		t.Logf("%s: %d elements, %s bytes for the view, %d px high", v.name, n,
			b.script("performance.getEntriesByType('resource').filter(e => "+
				"e.name.includes('/api/')).reduce((sum, e) => sum + e.encodedBodySize, 0)"), high)
		if got := b.script(
			"performance.getEntriesByType('resource').filter(e => e.responseStatus >= 400)." +
				"map(e => e.name).join(' ')"); got != "" {
			t.Errorf("%s asks in vain for %s", v.name, got)
		}
	}
	// Of 1; more than .1 disturbs (web.dev/articles/cls).
	if moved, err := strconv.ParseFloat(b.script("moved"), 64); err != nil || moved > .1 {
		t.Errorf("the views moved by %g, %v: %s", moved, err, b.script("movers.join(' ')"))
	}
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(address))
	const faces = "performance.getEntriesByType('resource').filter(e => e.name.includes('/face/'))"
	b.awaits(faces + ".length > 0")
	t.Logf("the first face is there %s ms after the address",
		b.script("Math.round("+faces+"[0].responseEnd)"))
}

// Script and style of the page have at most 60 KB, as browsers take them.
func TestWeight(t *testing.T) {
	p, _ := site(t, pages.Options{})
	files := fixture.Must(filepath.Glob("static/*.*"))(t)
	pinned := sha256.New() // of lit-html 3.3.3, as it was published
	for _, f := range []string{"lit-html.js", "directive.js", "directive-helpers.js",
		"directives/repeat.js"} {
		files = append(files, "lit/"+f)
		pinned.Write(ask(p, "GET", "/lit/"+f, "").Body.Bytes())
	}
	if got := fmt.Sprintf("%x", pinned.Sum(
		nil)); got != "6843a642433bd3c6f6379de5cd9e0c3f782f51d526ff7257ba2170a446485cfd" {
		t.Errorf("lit-html is another one: %s", got)
	}
	sum := 0
	for _, f := range files {
		w := ask(p, "GET", "/"+strings.TrimPrefix(f, "static/"), "", "Accept-Encoding", "gzip, br")
		if w.Code != http.StatusOK || w.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %d %v", f, w.Code, w.Header())
		}
		sum += w.Body.Len()
	}
	if t.Logf("%d bytes", sum); sum > 60<<10 {
		t.Errorf("%d bytes of script and style", sum)
	}
}
