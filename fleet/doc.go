// SPDX-License-Identifier: Apache-2.0

// Package fleet lets many devices share the people that they know. The devices share them over one ordered log; package
// ledger defines its entries.
//
// [Open] opens the folder of a device that has joined a fleet. [Device.Run] connects the device to the fleet through a
// [Log]. [Device.Reconcile] brings a gallery in line with the fleet. [Device.Enroll] and the methods after it write
// entries.
//
// # Off the network
//
// An entry of a device is on disk when the method returns, and counts for the device itself at once: a device shows
// the fold of the log, followed by its own entries that are not in the log yet. These entries wait in the outbox. Run
// appends them to the log one after the other and repeats this after a failure; the ledger recognises an entry that
// they get twice. An entry leaves the outbox when the device reads it in the log. No method waits for a network, and
// a killed program loses none of its entries.
//
// # Keys
//
// The entries about a person are sealed with a key of that person. A device without the key keeps these entries sealed.
// Run asks for a missing key: first the device that made it, then any device, and again after longer and longer pauses.
// [State] counts the missing keys. Run also answers the requests of other devices.
//
// # Snapshots
//
// Some logs take snapshots from devices. There, a device makes a snapshot when one of its own entries is
// [Settings.SnapshotEvery] entries after the last snapshot. A device starts from the last snapshot if it is far behind,
// or if the log is trimmed.
//
// # Galleries
//
// [Device.Reconcile] gives a gallery the people, faces, denied faces and names of the fleet. On request it also
// publishes the changes that the gallery's own program made. A person or face that is missing in a gallery is not taken
// back in the fleet, because the gallery may be an old copy; to take it back, use [Device.Forget], [Device.Retract],
// [Device.Deny] or [Device.Undo]. For the same reason a gallery cannot bring back a retracted face, an undone denial or
// an earlier name, and does not move a shared face to another person: use [Device.Merge], or [Device.Retract] and
// [Device.Label]. People of another feature space are not taken into the gallery; [Reconciled].Refused says so.
//
// # The folder
//
//	device.nk     the seed of the device's key
//	fleet         the public key of the fleet
//	keys          the ring of people's keys: a new key adds a line; destroying a key replaces the file
//	outbox        own entries that the device has not read in the log yet; a line is on disk before a method returns
//	ledger, tail  a snapshot of the ledger and the entries after it, which are read when they are needed. If they are
//	              moved away, the device reads the log again
//	index         the places of the entries in the ledger; made again if it is missing
//	aside         the entries that the device knew when the log was put back, until the log has all of them again
//	gallery-…     the people whom a gallery and the fleet share: numbers, names in that gallery, hashes of faces
//	lock          lets one program at a time use the folder
//
// Only the owner can read these files. A copy of the folder can act as this device until the device is revoked. If an
// old copy is put back, the log may already use the counters of its waiting entries; these entries then get new
// counters. After reading the log, the device again destroys the keys of forgotten people.
//
// # A log that was put back
//
// A device refuses a log that is shorter than the part that it has read: [State] shows [ErrRewound], and Run tries
// again. The fleet's admin key can sign that the log continues from an earlier state ([ledger.Restoration], which a
// [Restorer] returns). Then the device sets aside all entries that make up its ledger and reads the log from the
// beginning. It appends the entries that the log has lost, one after the other, in the order of the old log. After
// these it appends its new entries.
//
// This order is enough, for three reasons. The old log had one order, and each device knows a beginning of it. A device
// appends an entry only after all earlier entries that it knows and that still count, unless the log has them already.
// An author's new entries come after all its old ones. So the order of the old log is kept, whichever device appends;
// only entries that a single device knows can come later. The counters of an author only rise. The ledger counts each
// counter once and only upwards, so it drops repetitions and nothing else. Some entries were replaced: a lesson by a
// newer lesson, the entries about a person by the one that forgets the person. A device that has read the replacement
// does not append the replaced entry, and that entry does not count after its replacement.
//
// The counters of the admin key begin again with the restoration, because the service may admit or revoke a device
// before it has the lost entries. Lost entries of the admin key count by their effect: a device is admitted once, and
// revoked for ever.
//
// The new log can differ from the old log. Places of entries differ, so another one of two people with one name may
// become "alice (2)". A name or a label that only one device knew counts after newer entries of other devices, if that
// device appends it after them. An entry is lost if its author is revoked, only one device knows the entry, and that
// device appends it after the revocation. Entries that no device has are lost, too.
//
// # Caveats
//
// A device cannot notice a log that was put back without the signature of the admin key, and that has since grown
// beyond the part that the device had read. The states of devices then differ.
package fleet
