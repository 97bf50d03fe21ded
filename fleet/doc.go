// SPDX-License-Identifier: Apache-2.0

// Package fleet has many devices share the people that they know, over one ordered log (package ledger has its
// entries).
//
// [Open] opens the folder of a device that has joined a fleet, [Device.Run] takes part through a [Log], and
// [Device.Reconcile] brings a gallery in line. [Device.Enroll] and the methods after it say something.
//
// # Off the network
//
// What a device says is on disk when the method returns, and holds for the device itself at once: what it shows is the
// fold of the log, and after that its own entries which are not in the log yet. Run publishes them one after the other,
// as often as it takes; the log knows what it was given twice, and so does the ledger. They leave the outbox when they
// are seen in the log. Nothing waits for a network, and a program that is killed loses nothing that it said.
//
// # Keys
//
// Entries about somebody whose key a device has not got are kept sealed. Run asks the device that made the key, then
// any, and again after longer and longer pauses; [State] has how many are missing. It answers the requests of others.
//
// # Snapshots
//
// Where the log takes snapshots of devices, the device whose own entry makes it longer by [Settings.SnapshotEvery] than
// the last one puts a new one. A device that is far behind, or finds the log trimmed, begins with the last one.
//
// # Galleries
//
// [Device.Reconcile] gives a gallery the people, faces, denied faces and names of the fleet, and, if asked, makes what
// the gallery's own program did the fleet's. The fleet takes nothing back for being missing in a gallery, which may be
// an old copy; say it by [Device.Forget], [Device.Retract], [Device.Deny] or [Device.Undo]. The same holds for what the
// fleet took back once and only a gallery says again: a retracted face, an undone denial, an earlier name. People of
// another feature space stay out, with a sentence.
//
// # The folder
//
//	device.nk     the device's key, its seed
//	fleet         the public key of the fleet
//	keys          the ring of people's keys: a line is added for a new key, and all is written anew to destroy one
//	outbox        what was said and not seen in the log yet; each line on disk before a method returns
//	ledger, tail  what the log has come to: a snapshot and the entries after it, which are read when they are needed.
//	              They can be moved away and are read anew
//	index         where the entries are in the ledger; made anew where it is missing
//	gallery-…     what a gallery and the fleet had in common: numbers, names in that gallery, hashes of faces
//	lock          one program at a time
//
// All are readable by their owner alone. Who has a copy of the folder is this device, until it is revoked. Where an old
// copy of it is put back, entries get new counters where the log has others with theirs already, and forgotten people's
// keys are destroyed again once the log is read.
//
// # Caveats
//
// A log that was put back to an earlier state than a device has seen ends Run with [ErrRewound]: what was lost of it is
// lost on the server, and each device says how to begin anew.
package fleet
