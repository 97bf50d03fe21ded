// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// The address of the page in messages is one that other machines can use, as far as it is known.
func TestPageURL(t *testing.T) {
	for want, r := range map[string]outputFlags{
		"":                              {},
		"http://127.0.0.1:8090":         {address: "127.0.0.1:8090"},
		"https://shelf:8443":            {address: ":8443", cert: "cert.pem"},
		"http://shelf:80/faceauth":      {address: "0.0.0.0:80", base: "/faceauth"},
		"https://home.example/faceauth": {address: "127.0.0.1:1", url: "https://home.example/faceauth/"},
	} {
		if got := r.pageURL("shelf"); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	if got := (&outputFlags{address: "127.0.0.1:1", proxies: []string{"::1"}}).pageURL("shelf"); got != "" {
		t.Errorf("behind a proxy: %q", got)
	}
}

// Proxies are addresses or networks.
func TestPrefixes(t *testing.T) {
	got, err := prefixes([]string{"10.0.0.1", "10.1.2.3/8", "::1", "fd00::1/16"})
	if want := "[10.0.0.1/32 10.0.0.0/8 ::1/128 fd00::/16]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "home", "10.0.0.1/33", "10.0.0.1:80"} {
		if _, err := prefixes([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
