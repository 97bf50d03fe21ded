// SPDX-License-Identifier: Apache-2.0

package words

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/faceauth/faceauth/internal/fixture"
)

var update = flag.Bool("update", false, "write the header of the PAM module")

const header = "../../tablet/pam/words.h"

// render returns the header of the PAM module, with all its sentences.
func render() []byte {
	var b bytes.Buffer
	b.WriteString("// SPDX-License-Identifier: Apache-2.0\n\n" +
		"/* Written by: go test ./internal/words -update. The sentences are those of " +
		"internal/words/words.json. */\n\n")
	b.WriteString("static const char *const languages[] = {")
	for _, c := range languages {
		fmt.Fprintf(&b, "%q, ", c)
	}
	b.WriteString("NULL};\n\nstatic const struct { const char *word, *in[3]; } catalogue[] = {\n")
	for _, word := range slices.Sorted(maps.Keys(catalogue())) {
		in := catalogue()[word]
		if strings.Contains(in[English], "%") || word == "match" ||
			strings.HasPrefix(word, "notice-") {
			continue // this word is not for the prompt of a login
		}
		fmt.Fprintf(&b, "\t{%q, {", word)
		for i, l := range languages {
			s := in[l]
			if word != "prompt" {
				first, n := utf8.DecodeRuneInString(s)
				s = string(unicode.ToUpper(first)) + s[n:]
			}
			if word != "prompt" && word != "would-allow" &&
				word != "asked-outside" { // more follows
				s += "."
			}
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", s)
		}
		b.WriteString("}},\n")
	}
	b.WriteString("};\n")
	return b.Bytes()
}

// The PAM module uses the same sentences as the program.
func TestHeader(t *testing.T) {
	want := render()
	if *update {
		fixture.Check(t, os.WriteFile(header, want, 0o644))
	}
	got, err := os.ReadFile(header)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not of these sentences; write it: go test ./internal/words -update (%v)",
			header, err)
	}
}

func TestOf(t *testing.T) {
	for _, c := range []struct {
		all, messages, lang string
		want                Language
	}{
		{"", "", "", English},
		{"", "", "C.UTF-8", English},
		{"", "", "de_AT.UTF-8", German},
		{"", "", "de", German},
		{"", "", "fr_FR@euro", French},
		{"", "fr_CA.UTF-8", "de_DE.UTF-8", French},
		{"C", "fr_CA.UTF-8", "de_DE.UTF-8", English},
		{"", "", "deu", English},
		{"", "", "nl_NL.UTF-8", English},
		{"", "", "_", English},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_MESSAGES": c.messages, "LANG": c.lang}
		if got := Of(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%v: %s, want %s", env, got, c.want)
		}
	}
}

// Each word has a sentence in each language, with the same arguments.
func TestCatalogue(t *testing.T) {
	for word, in := range catalogue() {
		for _, l := range languages {
			if in[l] == "" || strings.Count(in[l], "%") != strings.Count(in[English], "%") {
				t.Errorf("%s in %s: %q", word, l, in[l])
			}
			if l != English && in[l] == in[English] {
				t.Errorf("%s is not translated into %s", word, l)
			}
		}
	}
	if s, ok := German.Say("too-small"); !ok || s != "näher kommen" {
		t.Error(s, ok)
	}
	if s, ok := French.Say("Wait", 4); !ok ||
		s != "trop tôt après un échec ; attendez 4 s, ou utilisez votre mot de passe" {
		t.Error(s, ok)
	}
	if s, ok := English.Say("of-tomorrow"); ok {
		t.Error(s)
	}
	for _, c := range []struct {
		l       Language
		name    string
		wait    uint32
		refusal string
	}{
		{English, "TooSoon", 4, "too soon after a failure; wait 4 s, or use your password"},
		{French, "TooManyRequests", 0, "trop de demandes ; attendez quelques secondes"},
		{English, "TooManyRequests", 0, "said by the daemon"},
		{German, "OfTomorrow", 0, "said by the daemon"},
	} {
		if got := c.l.Refusal(c.name, "said by the daemon", c.wait); got != c.refusal {
			t.Errorf("%s, %d s: %q", c.name, c.wait, got)
		}
	}
}
