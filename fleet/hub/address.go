// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"net"
)

// localAddress returns the address at which this machine reaches a server that listens at "address".
func localAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// outerAddress returns the address at which other machines may reach it: the first global address of this machine.
func outerAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return address
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return localAddress(address)
	}
	for _, four := range []bool{true, false} {
		for _, a := range all {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.IsGlobalUnicast() && !n.IP.IsLoopback() && (n.IP.To4() != nil) == four {
				return net.JoinHostPort(n.IP.String(), port)
			}
		}
	}
	return localAddress(address)
}
