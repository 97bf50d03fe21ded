// SPDX-License-Identifier: Apache-2.0

// Package hub connects the devices of a fleet over NATS JetStream: it has the server of a fleet and the client of a
// device.
//
// [Serve] runs the server: an embedded NATS server, or the service of a fleet at an existing cluster. [Join] makes a
// device a member of a fleet, with a folder and a [Token]. [Open] reads that folder, and [Member.Connect] returns a
// [Conn]: with it the device appends to the log of the fleet, follows the log, and asks other devices for keys.
//
// # The server
//
// The log is one stream, and its order is the same for all devices. The server stores the log. It can read which device
// wrote about which number of a person, and when; names, faces and keys of people are sealed before they reach it.
// Snapshots are in an object store, signed with the admin key; the log is trimmed up to the entries in a snapshot.
//
// # Who may do what
//
// There are no passwords. Each connection signs the server's nonce with a key. A device has its own key, which the log
// has admitted. The bearer of a token uses the key in the token, and the administrator the admin key. A device may
// append entries, follow the log with one consumer, ask for keys, answer such questions, and read snapshots. A bearer
// may only ask to be admitted. Only the service may purge, trim and delete. A device checks the certificate of the
// embedded server by its hash, and each admission by the fleet's public key. So a server without the admin key can
// admit no device.
//
// # A server that was put back
//
// With [Options.Restored] the service continues the log from its present end as a new log ([ledger.Restoration]). The
// description of the stream holds that entry, so a device sees it with its first request. If the log has lost the
// admission of a device, the device shows the admission, which the admin key has signed ([Conn.Rejoin]); it does so
// over a connection that allows nothing else. If any device shows a revocation, the service refuses the revoked device
// at once. The revocation comes into the log at its turn, after the earlier entries of the revoked device.
//
// # Caveats
//
// A cluster with its own administrator decides itself who may connect, or asks the service ([Options.Callout]).
// docs/fleet.md lists the subjects that the cluster should allow.
package hub
