// SPDX-License-Identifier: Apache-2.0

// Package bus offers an authenticator to other programs on the system bus (D-Bus), and is the client to it.
//
// [Serve] answers calls until its context ends; [Dial] returns a [Client]. The file org.faceauth.Device.xml beside this
// one describes the interface; the service returns it on request. Its shape is: claim,
// start, signals with a word and whether it is the last one, release.
//
// # Who may do what
//
// The bus identifies the caller. Root may do everything. Other users may verify themselves if polkit's action
// org.faceauth.verify allows it, as it does for the active session. Enrolling needs org.faceauth.enroll;
// requests about another user need org.faceauth.other-user. A user's own data need no permission: status, undo and
// forget. Only root may report that a password was used. If polkit does not answer, only root is allowed.
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
	elsewhere        = "Elsewhere"
	alreadyInUse     = "AlreadyInUse"
	claimDevice      = "ClaimDevice"
	noProfile        = "NoProfile"
	tooSoon          = "TooSoon"
	passwordNeeded   = "PasswordNeeded"
	invalidUser      = "InvalidUser"
	tooManyRequests  = "TooManyRequests"
	tooManyLooks     = "TooManyLooks"
	lidClosed        = "LidClosed"
	internal         = "Internal"
)

// failure returns an error with a message, and further values for programs.
func failure(name, message string, more ...any) *dbus.Error {
	return dbus.NewError(errorPrefix+name, append([]any{message}, more...))
}
