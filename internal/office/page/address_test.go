// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/internal/office/page"
)

// The address of the page in messages is one that other machines can use, as far as it is known.
func TestURL(t *testing.T) {
	for _, c := range []struct {
		address, base string
		tls           bool
		want          string
	}{
		{"", "", false, ""},
		{"127.0.0.1:0", "", false, ""},
		{"127.0.0.1:8090", "", false, "http://127.0.0.1:8090"},
		{":8443", "", true, "https://shelf:8443"},
		{"0.0.0.0:80", "/faceauth", false, "http://shelf:80/faceauth"},
	} {
		if got := page.URL(c.address, c.base, "shelf", c.tls); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// Proxies are addresses or networks.
func TestProxies(t *testing.T) {
	got, err := page.Proxies([]string{"10.0.0.1", "10.1.2.3/8", "::1", "fd00::1/16"})
	if want := "[10.0.0.1/32 10.0.0.0/8 ::1/128 fd00::/16]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "home", "10.0.0.1/33", "10.0.0.1:80"} {
		if _, err := page.Proxies([]string{text}); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
