// SPDX-License-Identifier: Apache-2.0

// Package embedded is the NATS server that a fleet has where it uses no cluster of somebody else. [Start] starts it, for
// [hub.Serve].
//
// It is a package of its own so that a device, which needs the way to the server alone, does not link the server.
package embedded
