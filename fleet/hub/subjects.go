// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
)

// subjects are the NATS names of one fleet at a server. docs/fleet.md lists them for the administrator of a cluster.
type subjects struct{ fleet string }

func (s subjects) base() string   { return "faceauth." + s.fleet }
func (s subjects) stream() string { return "faceauth_" + s.fleet }
func (s subjects) bucket() string { return "faceauth_" + s.fleet }

// objects is the stream of the bucket.
func (s subjects) objects() string { return "OBJ_" + s.bucket() }

// log is the subject of the entries about a person.
func (s subjects) log(person string) string { return s.base() + ".log." + person }

// keys is the subject for asking a device for keys of people; an empty device means any device.
func (s subjects) keys(device string) string {
	if device == "" {
		return s.base() + ".keys"
	}
	return s.base() + ".keys." + device
}

// at is the subject for the position of a device in the log.
func (s subjects) at(device string) string { return s.base() + ".at." + device }

// join is the subject for the bearer of a token who asks to be admitted.
func (s subjects) join() string { return s.base() + ".join" }

// rejoin is the subject for showing admissions and revocations that the log may have lost.
func (s subjects) rejoin() string { return s.base() + ".rejoin" }

// admin is the subject for commands that the admin key has signed.
func (s subjects) admin() string { return s.base() + ".admin" }

// inbox is the prefix of the subjects for answers to one key. No other key may listen there.
func inbox(id string) string { return "_INBOX_" + id }

// person returns the part of a subject for a person.
func person(p string) (string, error) {
	if p == "" || p == "-" {
		return "-", nil
	}
	if len(p) > 64 || strings.Trim(p, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "" {
		return "", fmt.Errorf("%w: it has %d bytes; it must have 1 to 64 letters and digits", ErrPerson, len(p))
	}
	return p, nil
}

// Rights are the subjects that a connection may use at a NATS server. The administrator of a cluster sets them for
// devices.
type Rights struct {
	Publish, Subscribe []string
	// Answers allows one answer, within a minute, to each question that comes.
	Answers bool
}

// DeviceRights returns the rights of a device: publish entries, follow the log with a consumer of the device's name,
// ask for keys and answer, read snapshots, and report its position. It may not purge, delete or change anything.
func DeviceRights(fleet, id string) Rights {
	s := subjects{fleet}
	const api = "$JS.API."
	return Rights{
		Publish: []string{
			s.log("*"), s.keys(""), s.keys("*"), s.at(id), s.room(id), s.rejoin(),
			api + "STREAM.INFO." + s.stream(),
			api + "CONSUMER.CREATE." + s.stream() + "." + id,
			api + "CONSUMER.MSG.NEXT." + s.stream() + "." + id,
			api + "CONSUMER.DELETE." + s.stream() + "." + id,
			api + "STREAM.INFO." + s.objects(),
			api + "DIRECT.GET." + s.objects(), api + "DIRECT.GET." + s.objects() + ".>",
		},
		Subscribe: []string{inbox(id) + ".>", s.keys("") + " " + keysGroup, s.keys(id), s.room("*")},
		// The answer to a question for keys goes to the inbox of the device that asks.
		Answers: true,
	}
}

// LogSubjects returns the subjects of the entries of a fleet.
func LogSubjects(fleet string) string { return subjects{fleet}.log("*") }

// BearerRights returns the rights of the bearer of a token: ask to join. The id is the public key of the token.
func BearerRights(fleet, id string) Rights {
	s := subjects{fleet}
	return Rights{Publish: []string{s.join()}, Subscribe: []string{inbox(id) + ".>"}}
}

// RejoinRights returns the rights of a device whose admission the log has lost: show its admission.
func RejoinRights(fleet, id string) Rights {
	s := subjects{fleet}
	return Rights{Publish: []string{s.rejoin()}, Subscribe: []string{inbox(id) + ".>"}}
}

// keysGroup is the queue group of all devices that answer for keys: the server asks one of them.
const keysGroup = "keys"
