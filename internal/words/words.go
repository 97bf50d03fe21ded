// SPDX-License-Identifier: Apache-2.0

// Package words holds the sentences of a login for users, in several languages: words.json has
// them.
//
// [Of] returns the language of an environment. [Language.Sentence] translates a word of the daemon
// into a sentence, and [Language.Refusal] an error. The PAM module, which is in C, has the same
// sentences in words.h, which the test of this package writes:
//
//	go test ./internal/words -update
package words

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Language is the code (ISO 639-1) of a language of this program.
type Language string

// Languages.
const (
	English Language = "en"
	German  Language = "de"
	French  Language = "fr"
)

var languages = []Language{English, German, French}

//go:embed words.json
var file []byte

// catalogue returns the sentences, by word and language.
var catalogue = sync.OnceValue(func() (all map[string]map[Language]string) {
	if err := json.Unmarshal(file, &all); err != nil {
		panic("words: " + err.Error()) // the file is part of the program
	}
	return all
})

// Of returns the language of an environment: that of the first of LC_ALL, LC_MESSAGES and LANG that
// is set. Without them, or for an unknown language, it is English.
func Of(getenv func(string) string) Language {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		locale := getenv(name)
		if locale == "" {
			continue
		}
		if i := strings.IndexAny(locale, "_.@"); i >= 0 {
			locale = locale[:i]
		}
		if slices.Contains(languages, Language(locale)) {
			return Language(locale)
		}
		return English
	}
	return English
}

// Say returns the sentence for a word, or for the name of a refusal, if there is one.
func (l Language) Say(word string, args ...any) (string, bool) {
	s, ok := catalogue()[word]
	return fmt.Sprintf(s[l], args...), ok
}

// Sentence returns the sentence for a word. An unknown word, from a newer service, is returned as
// it is.
func (l Language) Sentence(word string) string {
	if s, ok := l.Say(word); ok {
		return s
	}
	return word
}

// Refusal returns the sentence for a refusal with a name and perhaps a message, in English, which
// then says more. Wait is the number of seconds until the next try is allowed; 0 if it is not
// known.
func (l Language) Refusal(name, message string, wait uint32) string {
	if wait > 0 {
		s, _ := l.Say("Wait", wait)
		return s
	}
	if s, ok := l.Say(name); ok && (l != English || message == "") {
		return s
	}
	return message
}
