// SPDX-License-Identifier: Apache-2.0

package fleet

// Subjects of NATS between devices and the server. DEVICE is the id of a device, and NAME that of a value: 32
// hexadecimal digits of a person and what follows them, or "_" and a word.
//
//	F.say.DEVICE.NAME   a value of a device; only the device may write it, with a reply subject for the confirmation
//	F.say.admin.NAME    a record of the admin key; only the server writes it
//	F.now.DEVICE.NAME   the same, when it was stored: for those who listen
//	F.give.DEVICE       a request with a record for the server; the answer is empty, or says why it is refused
//	F.join.TOKEN        the same with the admission that a token has signed
//	F.room.DEVICE       who is at a device; stored nowhere
//	F.at.DEVICE         [Status] of a device as JSON; stored nowhere
//	F.ask.DEVICE        a request for the time of the server; the answer is RFC 3339 text
//
// The values of one device are in the stream "say_DEVICE", and are read with $JS.API.DIRECT.GET.STREAM.
const (
	SayPrefix   = "F.say."
	NowPrefix   = "F.now."
	GivePrefix  = "F.give."
	JoinPrefix  = "F.join."
	RoomPrefix  = "F.room."
	AtPrefix    = "F.at."
	AskPrefix   = "F.ask."
	AdminWriter = "admin"
	DirectGet   = "$JS.API.DIRECT.GET."
)

// MaxValue is the greatest size of a value or a record, in bytes.
const MaxValue = 256 << 10

// StreamOf returns the stream of a device's values.
func StreamOf(device string) string { return "say_" + device }

// Inbox returns the prefix of the subjects at which a device gets answers.
func Inbox(device string) string { return "_INBOX_" + device }

// Rights are the subjects that a connection may publish and subscribe to.
type Rights struct{ Publish, Subscribe []string }

// DeviceRights returns the rights of a member. Streams are those that it may read; all at the embedded server.
func DeviceRights(device string) Rights {
	return Rights{
		Publish: []string{SayPrefix + device + ".*", DirectGet + "*", GivePrefix + device, RoomPrefix + device,
			AtPrefix + device, AskPrefix + device},
		Subscribe: []string{NowPrefix + ">", RoomPrefix + "*", Inbox(device) + ".>"},
	}
}

// RevokedRights returns the rights of a revoked device: it may read the records of the admin key.
func RevokedRights(device string) Rights {
	return Rights{Publish: []string{DirectGet + StreamOf(AdminWriter)}, Subscribe: []string{Inbox(device) + ".>"}}
}

// TokenRights returns the rights of a connection with a token, by the public key of the token.
func TokenRights(token string) Rights {
	return Rights{Publish: []string{JoinPrefix + token}, Subscribe: []string{Inbox(token) + ".>"}}
}

// Status is what a device tells about itself.
type Status struct {
	InStep  bool              `json:"in_step"`
	Waiting int               `json:"waiting"`           // own values that the server does not have
	Keys    int               `json:"keys"`              // people whose key is missing
	Refused map[string]string `json:"refused,omitempty"` // why values of a device are skipped, by its id
	Trouble string            `json:"trouble,omitempty"`
}
