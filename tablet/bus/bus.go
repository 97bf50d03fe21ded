// SPDX-License-Identifier: Apache-2.0

// Package bus offers an authenticator to other programs on the system bus (D-Bus), and is the client to it.
//
// [Serve] answers calls until its context ends; [Dial] returns a [Client]. The interface is described in
// org.faceauth.Device.xml beside this file, which is what the service says of itself when it is asked. Its shape is
// that of fprintd: claim, start, signals with a word and whether it is the last, release.
//
// # Who may do what
//
// The bus says who calls. Root may do everything. Everybody else may have themselves verified where polkit's action
// org.faceauth.verify lets them, as it does for the active session; enrolling takes org.faceauth.enroll, and anything
// about another user org.faceauth.other-user. What a user was learned from is theirs: its status, undo and forget need
// no leave. Which account follows whom of a fleet takes org.faceauth.enroll, too. Only [FleetUser] and root speak for a
// fleet, by [FleetInterface]. Only root says that a password was used. Where polkit does not answer, nobody but root gets leave.
package bus

import (
	_ "embed"

	"github.com/godbus/dbus/v5"
)

// Names on the bus.
const (
	Name      = "org.faceauth"
	Path      = dbus.ObjectPath("/org/faceauth/Device")
	Interface = "org.faceauth.Device"
)

// XML describes the interface.
//
//go:embed org.faceauth.Device.xml
var XML string

// Names of errors, without [errorPrefix].
const (
	errorPrefix = "org.faceauth.Error."

	permissionDenied = "PermissionDenied"
	alreadyInUse     = "AlreadyInUse"
	claimDevice      = "ClaimDevice"
	noProfile        = "NoProfile"
	tooSoon          = "TooSoon"
	passwordNeeded   = "PasswordNeeded"
	invalidUser      = "InvalidUser"
	tooManyRequests  = "TooManyRequests"
	notFollowed      = "NotFollowed"
	fleetRefused     = "FleetRefused"
	internal         = "Internal"
)

// failure returns an error with a message, and what programs may want to know beside that.
func failure(name, message string, more ...any) *dbus.Error {
	return dbus.NewError(errorPrefix+name, append([]any{message}, more...))
}
