// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package fleet

import _ "unsafe" // for go:linkname

// NATS reads this file once a second in each program that could run its server, for a counter that we do not show.
// It stops when it cannot.
//
//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

func init() { procStatFile = procStatFile[:0] }
