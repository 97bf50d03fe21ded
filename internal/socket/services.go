// SPDX-License-Identifier: Apache-2.0

package socket

import "slices"

// Kind says who may ask for a face by a PAM service.
type Kind string

// Kinds of services. A service of the kind AsRoot makes people root, and asks for no face until it
// is allowed.
const (
	Greeter     Kind = "greeter"      // also before there is a session
	GreeterOnce Kind = "greeter-once" // one that answers a single prompt of a login
	Session     Kind = "session"      // in a session
	AsRoot      Kind = "root"
)

// Service is a PAM service that is known here.
type Service struct {
	Name string
	Kind Kind
	// Units are those of systemd in which a display manager verifies as root: before there is a
	// session, or for the person of a session, because it also unlocks the screen.
	Units   []string
	Desktop string // a part of $XDG_CURRENT_DESKTOP: this desktop unlocks by the service
	Also    string // another service by which the same command asks
}

// Services are all that are known here. The list of what may ask, tablet/install/services, has
// those of the other kinds.
var Services = slices.Concat([]Service{
	{Name: "gdm-password", Kind: Greeter, Units: []string{"gdm.service", "gdm3.service"},
		Desktop: "GNOME"},
	{Name: "cosmic-greeter", Kind: Greeter, Units: []string{"cosmic-greeter.service"},
		Desktop: "COSMIC"},
	{Name: "sddm", Kind: GreeterOnce, Units: []string{"sddm.service"}},
	{Name: "plasmalogin", Kind: GreeterOnce, Units: []string{"plasmalogin.service"}},
	{Name: "kde", Kind: Session, Desktop: "KDE"},
	{Name: "cinnamon-screensaver", Kind: Session, Desktop: "X-CINNAMON"},
	{Name: "mate-screensaver", Kind: Session, Desktop: "MATE"},
	{Name: "xfce4-screensaver", Kind: Session, Desktop: "XFCE"},
	{Name: "i3lock", Kind: Session, Desktop: "I3"},
	{Name: "swaylock", Kind: Session, Desktop: "SWAY"},
	{Name: "hyprlock", Kind: Session, Desktop: "HYPRLAND"},
	{Name: "phosh", Kind: Session, Desktop: "PHOSH"},
	{Name: "sudo", Kind: AsRoot, Also: "sudo-i"}, {Name: "sudo-i", Kind: AsRoot, Also: "sudo"},
	{Name: "su", Kind: AsRoot, Also: "su-l"}, {Name: "su-l", Kind: AsRoot, Also: "su"},
	{Name: "polkit-1", Kind: AsRoot},
}, plain(Greeter, true, "lightdm", "greetd", "lxdm", "xdm", "ly"),
	plain(Greeter, false, "login", "gdm-fingerprint", "gdm-face"),
	// By the name common-auth xsecurelock asks on Debian.
	plain(Session, false, "kde-fingerprint", "kscreensaver", "xscreensaver", "common-auth",
		"xsecurelock", "gtklock", "waylock", "vlock", "omarchy-lock-face"))

// plain returns services of which no more is known than perhaps a unit of the same name.
func plain(k Kind, unit bool, names ...string) (all []Service) {
	for _, name := range names {
		s := Service{Name: name, Kind: k}
		if unit {
			s.Units = []string{name + ".service"}
		}
		all = append(all, s)
	}
	return all
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
