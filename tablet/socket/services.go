// SPDX-License-Identifier: Apache-2.0

package socket

import "slices"

// Kind says who may ask for a face by a PAM service.
type Kind string

// Kinds of services. A service of the kind AsRoot makes people root, and asks for no face until it is allowed.
const (
	Greeter Kind = "greeter" // also before there is a session
	Session Kind = "session" // in one
	AsRoot  Kind = "root"
)

// Service is a PAM service that is known here.
type Service struct {
	Name string
	Kind Kind
	// Units are those of systemd in which a display manager verifies as root: before there is a session, or for the
	// person of a session, because it also unlocks the screen.
	Units   []string
	Desktop string // a part of $XDG_CURRENT_DESKTOP: this desktop unlocks by the service
	Also    string // another service by which the same command asks
}

// Services are all that are known here. The list of what may ask, tablet/install/services, begins with those of the first
// two kinds.
var Services = []Service{
	{Name: "login", Kind: Greeter},
	{Name: "gdm-password", Kind: Greeter, Units: []string{"gdm.service", "gdm3.service"}, Desktop: "GNOME"},
	{Name: "gdm-fingerprint", Kind: Greeter},
	{Name: "gdm-face", Kind: Greeter},
	{Name: "lightdm", Kind: Greeter, Units: []string{"lightdm.service"}},
	{Name: "sddm", Kind: Greeter, Units: []string{"sddm.service"}},
	{Name: "greetd", Kind: Greeter, Units: []string{"greetd.service"}},
	{Name: "lxdm", Kind: Greeter, Units: []string{"lxdm.service"}},
	{Name: "xdm", Kind: Greeter, Units: []string{"xdm.service"}},
	{Name: "plasmalogin", Kind: Greeter, Units: []string{"plasmalogin.service"}},
	{Name: "cosmic-greeter", Kind: Greeter, Units: []string{"cosmic-greeter.service"}, Desktop: "COSMIC"},
	{Name: "ly", Kind: Greeter, Units: []string{"ly.service"}},
	{Name: "kde", Kind: Session, Desktop: "KDE"},
	{Name: "kde-fingerprint", Kind: Session},
	{Name: "kscreensaver", Kind: Session},
	{Name: "cinnamon-screensaver", Kind: Session, Desktop: "X-CINNAMON"},
	{Name: "mate-screensaver", Kind: Session, Desktop: "MATE"},
	{Name: "xfce4-screensaver", Kind: Session, Desktop: "XFCE"},
	{Name: "xscreensaver", Kind: Session},
	{Name: "common-auth", Kind: Session}, // by this name xsecurelock asks on Debian
	{Name: "xsecurelock", Kind: Session},
	{Name: "i3lock", Kind: Session, Desktop: "I3"},
	{Name: "swaylock", Kind: Session, Desktop: "SWAY"},
	{Name: "gtklock", Kind: Session},
	{Name: "hyprlock", Kind: Session, Desktop: "HYPRLAND"},
	{Name: "waylock", Kind: Session},
	{Name: "vlock", Kind: Session},
	{Name: "phosh", Kind: Session, Desktop: "PHOSH"},
	{Name: "omarchy-lock-face", Kind: Session},
	{Name: "sudo", Kind: AsRoot, Also: "sudo-i"},
	{Name: "sudo-i", Kind: AsRoot, Also: "sudo"},
	{Name: "su", Kind: AsRoot, Also: "su-l"},
	{Name: "su-l", Kind: AsRoot, Also: "su"},
	{Name: "polkit-1", Kind: AsRoot},
}

// Known returns what is known of a service; of an unknown one, that it asks in a session.
func Known(name string) Service {
	i := slices.IndexFunc(Services, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{Name: name, Kind: Session}
	}
	return Services[i]
}

// Manages returns the service of the display manager of a unit, or "".
func Manages(unit string) string {
	for _, s := range Services {
		if slices.Contains(s.Units, unit) {
			return s.Name
		}
	}
	return ""
}
