// SPDX-License-Identifier: Apache-2.0

// Package ledger folds one ordered log into the state of a fleet: the people whom its devices know. It is a pure state
// machine without network, clock or goroutine.
//
// [Ledger.Apply] applies the entries of the log in order. [Ledger.People] returns the people, as far as the keys of a
// [Ring] open their entries. [Ledger.Hash] is equal on all devices that have applied the same entries. [Entry.Seal] and
// [Entry.Sign] make an entry.
//
// # Entries
//
// An entry is a CBOR array (RFC 8949, core deterministic encoding; any other encoding is refused) of the version, the
// author, the payload and an ed25519 signature. The author is an nkey: a device "U…", or the fleet itself "A…". The key
// of the fleet is called the admin key; it signs admissions, revocations and restorations, and nothing else. The
// signature covers the CBOR array of "faceauth fleet entry", the fleet, the version, the author and the payload, so an
// entry of another fleet is refused. This envelope stays the same in all versions.
//
// The payload of version 1 is a CBOR map: 1 the author's own counter, 2 the time in milliseconds, 3 the kind, 4 the
// person, 5 the other person of a merge, 6 the part of a lesson, 7 the number of the key, 8 the body. An entry has at
// most [MaxEntry] bytes. Times are for people to read; only the order of the log decides.
//
// The body of [Label], [Name], [Retract], [Deny], [Confirm] and [Lessons] is sealed: a random nonce of 24 bytes and
// the content under XChaCha20-Poly1305 with a key of the person; the rest of the entry is the associated data. The
// server can read the bodies of the other kinds: [Merge] and [Undo] name their person, [Forget] the forgotten people,
// [Withdraw], [Admit], [Revoke] and [Allow] a device, [Restored] the place from which the log continues. Contents are
// CBOR; vectors are little-endian float32.
//
// # Which entries count
//
// An entry counts if four things are true: its author is a member at this place of the log, its signature is right,
// its counter is higher than all earlier counters of the author, and the author may write it. A device that is
// limited to some people may write about these, and about the people that it enrolled first. All devices ignore all
// other entries, and [Outcome] gives the reason. So nothing that a member sends stops another member. A newer version
// of entries counts only after an entry of the admin key with that version: this entry stops older programs without a
// loss ([ErrFuture]), and all programs ignore newer entries of members before it.
//
// Devices differ in their keys and clocks, so neither decides whether an entry counts. Entries about a person who is
// forgotten later do not decide it either, because they are purged from the log. So a device that reads the log late
// comes to the same result.
//
// # The state
//
// A person is the fold of the entries that count and are not undone, in the order of the log. A face is identified by a
// hash of its space and vector: labelling it twice has the effect of labelling it once. A face is either labelled or
// denied; the later entry decides. Of a device's lessons about a person only the last ones count. A lesson that was
// learned with the help of others names their sources: a device and the place of the last withdrawal of its lessons. It
// counts until the lessons of one of these devices are withdrawn again. An entry without a key is kept, and counts at
// its place when the key comes: the order in which keys come makes no difference.
//
// A merge makes two numbers one person with one name. Later entries about either number are about this person. If the
// merge is undone, they are two people again. Two people may have the same name; the person who got it later is shown
// as "alice (2)".
//
// A forgotten person stays forgotten: the ledger keeps the numbers, drops the entries, and ignores later entries about
// them. A Forget entry names all the numbers that it forgets.
//
// # Keys
//
// Devices make a person's keys when they write, and give them to each other: [NewKeyRequest], [Ledger.AnswerKeys],
// [KeyRequest.Open]. The answering device checks in its own ledger whether the asking device is a member that may read
// about the person. The answer is sealed to a key that is used for this request only (X25519, NaCl's anonymous box). A
// key's number is a hash of the key, so a wrong key is noticed. Keys are never on the server. After a revocation, and
// after a device was limited, entries are sealed with a new key ([Ledger.WriteKey]), which the device that lost the
// right never gets.
//
// # A log that was put back
//
// After [Restored], which the admin key signs, the log continues from an earlier state. Counters of the admin key have
// the number of the log in their upper 32 bits. Entries with a lower number were lost and given back; they count by
// their effect: an admission counts if the device was never admitted, a revocation if the device is not revoked.
//
// # Snapshots
//
// [Ledger.Snapshot] writes "faceauth fleet snapshot\n", a version, a CBOR head (fleet, place in the log, maker, the
// counters of the authors, the number of entries), and all entries that make up the state as they came, each with its
// place and length as big-endian integers. The SHA-256 of all this and the maker's signature follow. [Restore] folds
// the entries again with all checks, also of signatures. It returns no ledger if any check fails.
//
// # On disk
//
// A [Store] is a ledger whose entries are in files. So 10,000 people with four faces each take 5 MB of memory and not
// 100: memory holds only the author, person, kind and place of each entry. The first file is a snapshot. A [Ring] is a
// file of lines.
//
// # Security
//
// The server, and everybody with a copy of its data, sees which device wrote about which number, how much, and when. It
// reads no name and no face. It cannot make, alter or move an entry, and cannot admit a device. It can withhold
// entries, purge them, or show different logs to different devices: then the hashes of the devices differ, and nothing
// else reveals it. The maker of a snapshot is a member; it can leave entries out of the snapshot, and cannot forge any.
//
// A member can write nonsense about the people that it may write about, seal entries with keys that it gives to nobody,
// or stop older devices with an entry of a newer version: revoke this member, and undo its entries. A revoked device
// keeps everything that it could read before. Until a device has read a revocation, it may still answer the revoked
// device's requests for keys.
//
// Forgetting destroys the keys on each device that reads the Forget entry. Then the person's entries in logs, snapshots
// and backups are noise. A device that is off keeps its keys until it comes back, and a copy of a device's folder keeps
// them for ever. Files are replaced and not overwritten, so a disk may hold the old blocks for some time.
package ledger
