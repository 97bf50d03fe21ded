// SPDX-License-Identifier: Apache-2.0

// Package hub joins the devices of a fleet over NATS JetStream: it is the server of a fleet, and a device's way there.
//
// [Serve] runs the server: an embedded NATS server, or the service of a fleet at a cluster that is there already. [Join]
// makes a device of a folder and a [Token]; [Open] reads that folder again, and [Member.Connect] gives the [Conn] over
// which the device appends to the log of the fleet, follows it, and asks other devices for keys.
//
// # The server
//
// The log is one stream, and its order is the order of all devices. The server stores it, and can read who said
// something when and about which number of a person; names, faces and keys of people are sealed before they come here.
// Snapshots lie in an object store, signed with the admin key; what they hold is trimmed from the log.
//
// # Who may do what
//
// Nobody has a password. A connection signs the server's nonce: a device with a key of its own, which the log has
// admitted, a bearer of a token with the key in it, and the administrator with the admin key. A device may append,
// follow by one consumer, ask and answer for keys, and read snapshots. A bearer may ask to be admitted, and nothing
// else. Only the service may purge, trim and delete. A device checks the certificate of the embedded server by its hash,
// and each admission by the fleet's public key; so a server without the admin key can admit nobody.
//
// # A server that was put back
//
// With [Options.Restored] the service begins the log anew from where it is ([ledger.Restoration]); the description of
// the stream has that entry, so that a device sees it with the first question. A device that the log has lost asks, with
// a connection that may do nothing else, to be let in by its admission, which the admin key has signed ([Conn.Rejoin]).
// Revocations that any device shows keep the device that they mean out at once; they come into the log in their turn,
// after what that device had said before.
//
// # Caveats
//
// A cluster of somebody else decides itself who may connect, or asks the service ([Options.Callout]); docs/fleet.md says
// which subjects it should allow to whom.
package hub
