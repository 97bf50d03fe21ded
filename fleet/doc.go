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
//	aside         what the device knows of a log that was put back, until the log has all of it again
//	gallery-…     what a gallery and the fleet had in common: numbers, names in that gallery, hashes of faces
//	lock          one program at a time
//
// All are readable by their owner alone. Who has a copy of the folder is this device, until it is revoked. Where an old
// copy of it is put back, entries get new counters where the log has others with theirs already, and forgotten people's
// keys are destroyed again once the log is read.
//
// # A log that was put back
//
// A log that is shorter than what a device has seen is refused: [ErrRewound] stands in [State], and Run tries again.
// Where the fleet's admin key has signed that the log goes on from an earlier state ([ledger.Restoration], which a
// [Restorer] tells), the device sets aside all entries that make up what it knows, reads the log from its beginning, and
// appends those that the log has lost, one after the other in the order of the old log. Then it says what is new.
//
// That order is all that is needed. The old log was one order, and each device knows a beginning of it. A device appends
// an entry only after all earlier ones that it knows and that still count, unless the log has them. So in the new log
// each entry comes after those before it in the old log, whoever gives it, except for what only devices know that come
// later; and an author's counters go up. What an author says after the restoration comes after all that the author said
// before. So the ledger's own rule, that a counter counts once and only upwards, drops repetitions and nothing else. An
// entry that another one replaced (a lesson, what was said of somebody who is forgotten) is not given back by a device
// that has read the replacement, and does not count after it.
//
// Counters of the admin key begin anew with the restoration, as the service may admit or revoke before it has what was
// lost. Its lost entries count by their effect: a device is admitted once, and revoked for ever.
//
// What is different from the old log: places of entries, and so which of two people with one name is "alice (2)", where
// devices gave back what only they knew after others had said something new; a name or a label that only such a device
// knew counts after what was said since. An entry of a revoked device that only a device knows which comes after the
// revocation was said again is lost. Nothing comes back that no device has.
//
// # Caveats
//
// A log that was put back, without that word, to an earlier state and has grown beyond what a device had seen is not
// noticed by that device: states of devices differ then.
package fleet
