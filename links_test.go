// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	markdownHeading = regexp.MustCompile(`^#{1,6} +(.*)$`)
	inlineCode      = regexp.MustCompile("`[^`]*`")
)

// prose returns the lines of a Markdown document that are not code.
func prose(text string) []string {
	var lines []string
	fenced, last := false, ""
	for _, line := range strings.Split(text, "\n") {
		// An indented line is code after an empty line or after other code, else part of a paragraph or a list.
		code := strings.HasPrefix(line, "    ") && (last == "" || strings.HasPrefix(last, "    "))
		last = line
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if !fenced && !code {
			lines = append(lines, line)
		}
	}
	return lines
}

// slug is the anchor that GitHub gives a heading: small letters, digits, dashes for spaces, nothing else.
func slug(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// anchors returns the anchors of a document, and the headings whose anchor another heading has already.
func anchors(text string) (known map[string]bool, doubled []string) {
	known = make(map[string]bool)
	for _, line := range prose(text) {
		if m := markdownHeading.FindStringSubmatch(line); m != nil {
			if known[slug(m[1])] {
				doubled = append(doubled, m[1])
			}
			known[slug(m[1])] = true
		}
	}
	return known, doubled
}

// documents returns the paths of all Markdown documents of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	eachFile(t, func(name string) error {
		if path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return nil
	})
	return names
}

// broken says what is wrong with the relative links of a document, and with its headings.
// read returns the text of another document.
func broken(name, text string, exists func(string) bool, read func(string) string) []string {
	var found []string
	own, doubled := anchors(text)
	for _, heading := range doubled {
		found = append(found, name+": two headings have the anchor of "+heading)
	}
	for _, line := range prose(text) {
		for _, m := range markdownLink.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
			link := m[1]
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target, known := path.Join(path.Dir(name), file), own
			if file != "" && !exists(target) {
				found = append(found, name+": "+link+": there is no "+target)
				continue
			}
			if anchor == "" {
				continue
			}
			if file != "" {
				known, _ = anchors(read(target))
			}
			if !known[anchor] {
				found = append(found, name+": "+link+": there is no such heading")
			}
		}
	}
	return found
}

// Every relative link of every document leads to a file that exists, and every anchor to a heading.
func TestDocumentLinks(t *testing.T) {
	names := documents(t)
	if len(names) < 10 {
		t.Fatalf("found only %q", names)
	}
	exists := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	for _, name := range names {
		for _, problem := range broken(name, read(t, name), exists, func(name string) string { return read(t, name) }) {
			t.Error(problem)
		}
	}
}

// The check sees wrong files, wrong anchors and doubled headings, and leaves code and web addresses alone.
func TestBroken(t *testing.T) {
	other := "# Other\n\n## Sixteen cameras, two cores\n\n```\n# no heading\n```\n"
	exists := func(name string) bool { return name == "docs/other.md" }
	for _, c := range []struct{ text, want string }{
		{"[a](other.md)", ""},
		{"[a](other.md#sixteen-cameras-two-cores) [b](https://example.org/#x)", ""},
		{"# Here\n[a](#here)", ""},
		{"`[a](gone.md)`\n\n    [a](gone.md)\n", ""},
		{"[a](gone.md)", "docs/x.md: gone.md: there is no docs/gone.md"},
		{"- a list\n    [a](gone.md)", "docs/x.md: gone.md: there is no docs/gone.md"},
		{"[a](other.md#no-heading)", "docs/x.md: other.md#no-heading: there is no such heading"},
		{"[a](#here)", "docs/x.md: #here: there is no such heading"},
		{"# Here\n## Here", "docs/x.md: two headings have the anchor of Here"},
	} {
		got := strings.Join(broken("docs/x.md", c.text, exists, func(string) string { return other }), "; ")
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
