// SPDX-License-Identifier: Apache-2.0

package bus

import "strings"

// Signatures returns the arguments of the methods of the service, in the format of the description.
func Signatures() map[string]string { return signatures(methods) }

func signatures(methods map[string]method) map[string]string {
	all := make(map[string]string)
	for name, m := range methods {
		all[name] = ""
		for _, x := range []struct{ direction, types string }{{"in", m.in}, {"out", m.out}} {
			if strings.HasPrefix(x.types, "a") { // one argument
				all[name] += x.direction + x.types + " "
				continue
			}
			for _, c := range x.types {
				all[name] += x.direction + string(c) + " "
			}
		}
	}
	return all
}
