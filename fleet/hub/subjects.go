// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"strings"
)

// subjects are the names of one fleet at a server. An administrator of a cluster finds them in docs/fleet.md.
type subjects struct{ fleet string }

func (s subjects) base() string   { return "faceauth." + s.fleet }
func (s subjects) stream() string { return "faceauth_" + s.fleet }
func (s subjects) bucket() string { return "faceauth_" + s.fleet }

// log is the subject of entries about a person.
func (s subjects) log(person string) string { return s.base() + ".log." + person }

// keys is where a device is asked for keys of people, or any device where none is named.
func (s subjects) keys(device string) string {
	if device == "" {
		return s.base() + ".keys"
	}
	return s.base() + ".keys." + device
}

// at is where a device says how far it has read.
func (s subjects) at(device string) string { return s.base() + ".at." + device }

// join is where a bearer of a token asks to be admitted.
func (s subjects) join() string { return s.base() + ".join" }

// rejoin is where a device shows who is a member, where the log may have lost it.
func (s subjects) rejoin() string { return s.base() + ".rejoin" }

// admin is where the commands of whoever has the admin key go.
func (s subjects) admin() string { return s.base() + ".admin" }

// inbox begins the subjects of answers to somebody. Nobody else may listen there.
func inbox(id string) string { return "_INBOX_" + id }

// person returns the token of a subject that stands for a person.
func person(p string) (string, error) {
	if p == "" || p == "-" {
		return "-", nil
	}
	if len(p) > 64 || strings.Trim(p, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != "" {
		return "", fmt.Errorf("%w: it is %d bytes long and must be of letters and digits, 64 at the most", ErrPerson, len(p))
	}
	return p, nil
}

// Rights are the subjects that somebody may use at a NATS server. An administrator of a cluster gives devices theirs.
type Rights struct {
	Publish, Subscribe []string
	// Answers allows one answer, within a minute, to each question that comes.
	Answers bool
}

// DeviceRights returns what a device of a fleet may do: publish entries, follow the log by one consumer that has its
// name, ask for keys and answer, read snapshots, and say how far it is. It may not purge, delete or change anything.
func DeviceRights(fleet, id string) Rights {
	s := subjects{fleet}
	api, objects := "$JS.API.", "OBJ_"+s.bucket()
	return Rights{
		Publish: []string{
			s.log("*"), s.keys(""), s.keys("*"), s.at(id), s.room(id), s.rejoin(),
			api + "STREAM.INFO." + s.stream(),
			api + "CONSUMER.CREATE." + s.stream() + "." + id,
			api + "CONSUMER.MSG.NEXT." + s.stream() + "." + id,
			api + "CONSUMER.DELETE." + s.stream() + "." + id,
			api + "STREAM.INFO." + objects, api + "STREAM.MSG.GET." + objects, api + "DIRECT.GET." + objects + ".>",
			api + "CONSUMER.CREATE." + objects + ".>", api + "CONSUMER.DELETE." + objects + ".*", "$JS.FC." + objects + ".>",
			"$JS.FC.*.*." + objects + ".>", // of newer servers, with domain and account
		},
		Subscribe: []string{inbox(id) + ".>", s.keys("") + " " + keysGroup, s.keys(id), s.room("*")},
		// The answer to a question for keys goes to the inbox of the device that asks.
		Answers: true,
	}
}

// LogSubjects returns the subjects of the entries of a fleet.
func LogSubjects(fleet string) string { return subjects{fleet}.log("*") }

// BearerRights returns what somebody with a token may do: ask to join. The id is the public key of the token.
func BearerRights(fleet, id string) Rights {
	s := subjects{fleet}
	return Rights{Publish: []string{s.join()}, Subscribe: []string{inbox(id) + ".>"}}
}

// RejoinRights returns what a device may do that the log has lost: show that it was admitted.
func RejoinRights(fleet, id string) Rights {
	s := subjects{fleet}
	return Rights{Publish: []string{s.rejoin()}, Subscribe: []string{inbox(id) + ".>"}}
}

// keysGroup is the queue group of devices that answer for keys, so that one of them is asked.
const keysGroup = "keys"
