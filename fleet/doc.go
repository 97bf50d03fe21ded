// SPDX-License-Identifier: Apache-2.0

// Package fleet lets devices share the people that they know. Each device says what it knows of each person, and a
// person is the join of what all members say.
//
// [Join] makes a device a member by a [Token]. [Open] opens the folder of a device, [Device.Run] keeps it in step with
// the server, and [Device.Enroll] and the methods after it say something. [Device.Reconcile] brings a gallery in line
// with the fleet; a [Part] does this for a program. Package hub is the server. An [AdminKey] says who is a member.
//
// # Words
//
// A device publishes one value for each person, and only it can write below its name. The server keeps the last value
// of each. A value has the device's words about the person: a name, and for each face whether it is labelled,
// taken back, denied or allowed; with whom the person is the same; and whether the person be forgotten. Each
// word has a clock, a hybrid of the time and a count. For each word the one with the later clock counts, then the one
// of the greater device. So devices agree whatever the order in which they hear of each other. Words whose clock is
// more than an hour ahead wait. Words of a limited device count about its people, and about those that it made: the
// number of a person is a hash of its maker and of a random number.
//
// A value is sealed with the key of the person (XChaCha20-Poly1305) and signed (Ed25519) with its fleet, device and
// name. What cannot be read, is of a newer version, or is not signed by a member, is skipped and reported ([Status]),
// and changes nothing. The values of a revoked device are deleted, and its words are gone, except those that the admin
// keeps.
//
// What a device says is on its disk and counts for itself when the method returns. The device gives the server what the
// server lacks, also after the server was put back from an old copy. If the device's own folder is an old copy, the
// device takes its later words from the server. Each device signs the sum of the counters of its values: others notice
// when the server withholds one.
//
// # Forgetting
//
// [Device.Forget] hides a person at all devices at once. After [Settings.Grace] each device destroys the key of the
// person, and says itself that the person be forgotten, so that the word stays if its author is revoked. One device
// alone can forget [DailyForgets] people within this time.
//
// # Keys
//
// The maker of a person makes the key. It is sealed with the key of an epoch, which full devices share; that key is
// sealed for each of them (NaCl's anonymous box). Limited devices get single keys. A new epoch begins after a full
// device was revoked, and after keys were destroyed. Then each device renews the key with which others seal for it, and
// destroys the old one. So nobody can read about a forgotten person in an old copy of the server, with all that the
// members still hold. A random test tries it.
//
// # The folder
//
//	device.nk   the seed of the device's key
//	fleet       the id of the fleet
//	admission   the record of the admin key that admits the device
//	server      where the server is
//	data        a database: what the devices say, the keys of people, what galleries and the fleet share
//	lock        lets one program at a time use the folder
//
// Only the owner can read these files. A copy of the folder can act as this device until the device is revoked.
//
// # Caveats
//
// There is no history: an earlier word is gone when a later one replaces it. If the folder of a device and the server
// are both put back to old copies, what the device has said meanwhile is lost. A revoked device keeps what it has read,
// and the keys of people that it had.
package fleet
