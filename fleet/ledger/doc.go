// SPDX-License-Identifier: Apache-2.0

// Package ledger is what a fleet of devices knows of people, as the fold of one ordered log: a pure state machine
// without network, clock or goroutine.
//
// [Ledger.Apply] takes in the entries of the log in order, [Ledger.People] says who is known as far as the keys of a
// [Ring] go, and [Ledger.Hash] is the same on all devices that have applied the same entries. [Entry.Seal] and
// [Entry.Sign] make an entry.
//
// # Entries
//
// An entry is a CBOR array (RFC 8949, core deterministic encoding; any other encoding is refused) of the version, the
// author, the payload and an ed25519 signature. The author is an nkey: a device "U…", or the fleet itself "A…", whose
// key, the admin key, signs admissions, revocations and restorations, and nothing else. What is signed is the CBOR
// array of "faceauth fleet entry", the fleet, the version, the author and the payload, so that an entry of another
// fleet is none. This envelope stays as it is in all versions.
//
// The payload of version 1 is a CBOR map: 1 the author's own counter, 2 the time in milliseconds, 3 the kind, 4 the
// person, 5 the other person of a merge, 6 the part of a lesson, 7 the number of the key, 8 the body. An entry has at
// most [MaxEntry] bytes. Times are data for people, and decide nothing: the order of the log does.
//
// The body of [Label], [Name], [Retract], [Deny], [Confirm] and [Lessons] is sealed: a random nonce of 24 bytes and
// the content under XChaCha20-Poly1305 with a key of the person; the rest of the entry is the associated data. That of
// other kinds can be read by the server: [Merge] and [Undo] say about which person they are, [Forget] whom it forgets,
// [Withdraw], [Admit] and [Revoke] which device they mean, [Restored] from where on the log goes on. Contents are
// CBOR; vectors are little-endian float32.
//
// # What counts
//
// An entry counts if its author is a member at this place of the log, its signature is right, its counter is above all
// that the author has used, and it may be said: a device that is limited to some people writes about these, and about
// those that it enrolled first. Everything else is passed over by all devices in the same way, and [Outcome] has a
// sentence. A version of the future by a member stops the ledger, which loses nothing: [ErrFuture].
//
// Whether an entry counts never rests on a key, a clock, or anything else that devices have differently; nor on entries
// about a person who is forgotten later, as these are purged from the log. So it is the same for a device that comes
// late.
//
// # What it comes to
//
// A person is folded from the entries that count, in the order of the log, without those that were undone. Faces are
// known by a hash of space and vector: labelled twice is labelled once, a denied face is not labelled, and a labelled
// one not denied; what is said last holds. Of lessons those of the last time count that a device taught. An entry for
// which there is no key yet is kept, and counts in its place when the key comes: when keys come makes no difference.
//
// Merge makes two numbers one person with one's name; what is said of either later is said of the person, and with the
// merge undone they are two again. Two people who have the same name keep it; the one who got it later is shown as
// "alice (2)".
//
// Who is forgotten stays so: the numbers remain, nothing that is said of them later counts, and their entries are
// dropped. Forget names all numbers that it means.
//
// # Keys
//
// A person's keys are made by the devices that write, and handed from device to device: [NewKeyRequest],
// [Ledger.AnswerKeys], [KeyRequest.Open]. The one who is asked looks into its own ledger whether the device that asks
// is a member that may read of the person; the answer is sealed to a key of this one request (X25519, NaCl's anonymous
// box). A key's number is a hash of it, so that a wrong key is not taken. They never lie on the server. After a
// revocation, and after a device was limited, entries are sealed with a new key ([Ledger.WriteKey]), which the device
// that lost the right was never given.
//
// # A log that was put back
//
// After [Restored], which the admin key signs, the log goes on from an earlier state. Counters of the admin key have the
// number of the log in their upper 32 bits; entries with a lower number were lost and given back. They count by their
// effect: an admission of a device that never was admitted, and a revocation of one that is not revoked.
//
// # Snapshots
//
// [Ledger.Snapshot] writes "faceauth fleet snapshot\n", a version, a CBOR head (fleet, place in the log, maker, the
// counters of the authors, the number of entries), and all entries that make up the state as they came, each with its
// place and length as big-endian integers; then the SHA-256 of all that, and the maker's signature. [Restore] folds
// them again with all checks, signatures too; it gives nothing where anything is wrong.
//
// # On disk
//
// A [Store] is a ledger whose entries are in files, so that 10,000 people with four faces each take 5 MB of memory and
// not 100: what is kept of an entry is who said it, of whom, of what kind, and where it is. Its first file is a snapshot.
// A [Ring] is a file of lines.
//
// # What this stops, and what not
//
// The server, and who has a copy of it, sees which device wrote how much about which number, and when; it reads no name
// and no face. It cannot make, alter or move an entry, or admit a device. It can withhold entries, purge them, or
// show devices different logs: their hashes then differ, and nothing else tells. The maker of a snapshot, who is a
// member, can leave entries out of it, and cannot forge any.
//
// A member can write nonsense about the people that it may write about, seal entries with keys that it gives to nobody,
// or stop older devices by a version of the future: revoke it, and undo what it said. A revoked device keeps what it
// could read before. A device that was asked for keys before it had read of a revocation may still have given them.
//
// Forgetting destroys the keys on each device that reads of it, so that what logs, snapshots and backups have of the
// person is noise. A device that is off keeps its keys until it comes back, and a copy of a device's own folder keeps
// them for ever; files are replaced and not overwritten, so that a disk may hold the old blocks for some time.
package ledger
