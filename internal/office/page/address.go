// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
)

// URL returns the address of the page for people on other machines, or "" if it is not known.
// Address is what the page listens to, base its [Options].Base, and host the name of this machine.
func URL(address, base, host string, tls bool) string {
	at, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		return ""
	}
	if ip := net.ParseIP(at); at == "" || ip != nil && ip.IsUnspecified() {
		at = cmp.Or(host, "localhost")
	}
	scheme := "http"
	if tls {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(at, port) + base
}

// Proxies reads addresses and networks of proxies, for [Options].
func Proxies(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		n, err := netip.ParsePrefix(text)
		if a, single := netip.ParseAddr(text); single == nil {
			n, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no address and no network; use for example 10.0.0.1 or "+
				"10.0.0.0/8", text)
		}
		all = append(all, n.Masked())
	}
	return all, nil
}
