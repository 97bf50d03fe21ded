// SPDX-License-Identifier: Apache-2.0

// Package embedded is the NATS server of a fleet that uses no cluster. [Start] starts it for [hub.Serve].
//
// It is a package of its own so that devices, which need only the client, do not link the server.
package embedded
