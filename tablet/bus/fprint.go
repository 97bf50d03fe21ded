// SPDX-License-Identifier: Apache-2.0

package bus

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/godbus/dbus/v5"
)

// fprintd's names on the bus. GDM, KDE and pam_fprintd use only these: with [Options].Fprint the service answers them,
// too. They give less information than [Interface], which has words for a face. They ask for a finger: an enrolled user
// has one, [FprintFinger], and it is the face.
//
// Logins through these names have the same permissions, quotas, limits and deadline as through [Interface]. Enrolment
// and removal are refused with a sentence that names the command. Programs of root that use these names do not tell
// which PAM service they are: they are answered at greeters only.
const (
	FprintName    = "net.reactivated.Fprint"
	FprintManager = "net.reactivated.Fprint.Manager"
	FprintDevice  = "net.reactivated.Fprint.Device"
	FprintPath    = dbus.ObjectPath("/net/reactivated/Fprint/Device/0")
	FprintFinger  = "right-index-finger"

	fprintManagerPath = dbus.ObjectPath("/net/reactivated/Fprint/Manager")
)

// Descriptions of the interfaces.
var (
	//go:embed net.reactivated.Fprint.Manager.xml
	fprintManagerXML string
	//go:embed net.reactivated.Fprint.Device.xml
	fprintDeviceXML string
)

// fprintErrors maps this service's errors to fprintd's.
var fprintErrors = map[string]string{
	permissionDenied: "PermissionDenied", alreadyInUse: "AlreadyInUse", claimDevice: "ClaimDevice",
	noProfile: "NoEnrolledPrints",
	tooSoon:   "PermissionDenied", passwordNeeded: "PermissionDenied", invalidUser: "NoEnrolledPrints",
	tooManyRequests: "AlreadyInUse", lidClosed: "PermissionDenied",
	internal: "Internal",
}

// fprintFailure returns one of fprintd's errors.
func fprintFailure(name, message string) *dbus.Error {
	return dbus.NewError(FprintName+".Error."+name, []any{message})
}

// asFprint returns an error of this service with fprintd's name. The text stays.
func asFprint(e *dbus.Error) *dbus.Error {
	if e == nil {
		return nil
	}
	name, own := strings.CutPrefix(e.Name, errorPrefix)
	message, ok := "", len(e.Body) > 0
	if ok {
		message, ok = e.Body[0].(string)
	}
	if !own || !ok {
		return e
	}
	return fprintFailure(fprintErrors[name], message)
}

// fprintWord returns fprintd's word for a word of this service, or "" for none. If nobody was seen, it returns neither
// a match nor a failure of the person: after an error clients continue with the password, and after a failure they
// would ask again and again.
func fprintWord(word string, done bool) string {
	switch word {
	case "verify-match", "verify-no-match":
		return word
	case "verify-taken-for-picture", "verify-give-password":
		return "verify-no-match"
	case "verify-looking", "verify-look-straight":
		return ""
	}
	if done {
		return "verify-unknown-error"
	}
	return "verify-retry-scan"
}

// fprintObjects are fprintd's objects.
var fprintObjects = map[dbus.ObjectPath]object{
	fprintManagerPath: newObject(FprintManager, fprintManagerXML, map[string]method{
		"GetDevices": does(func(*Service, caller) ([]dbus.ObjectPath, *dbus.Error) {
			return []dbus.ObjectPath{FprintPath}, nil
		}),
		"GetDefaultDevice": does(func(*Service, caller) (dbus.ObjectPath, *dbus.Error) { return FprintPath, nil }),
	}, func(*Service) map[string]dbus.Variant { return nil }),
	FprintPath: newObject(FprintDevice, fprintDeviceXML, fprintMethods(), (*Service).fprintProperties),
}

// fprintMethods returns the methods of the device.
func fprintMethods() map[string]method {
	start := does((*Service).fprintStart)
	start.after = (*Service).fprintSignals
	forget := fprintElsewhere("a face is not removed as a finger is; run: faceauth tablet forget")
	forgetOne := does(func(s *Service, by caller, _ string) *dbus.Error { return forget(s, by) })
	return map[string]method{
		"ListEnrolledFingers": does((*Service).fprintList),
		"Claim":               does((*Service).fprintClaim),
		"Release":             does((*Service).fprintRelease),
		"VerifyStart":         start,
		"VerifyStop":          does((*Service).fprintStop),
		"EnrollStart": does(func(s *Service, by caller, _ string) *dbus.Error {
			return fprintElsewhere("a face is enrolled with hints for which a fingerprint reader has no words; run: "+
				"faceauth tablet enroll")(s, by)
		}),
		"EnrollStop":             does(func(*Service, caller) *dbus.Error { return fprintNothing() }),
		"DeleteEnrolledFingers":  forgetOne,
		"DeleteEnrolledFingers2": does(forget),
		"DeleteEnrolledFinger":   forgetOne,
	}
}

// fprintElsewhere refuses an operation and names the command for it.
func fprintElsewhere(message string) func(*Service, caller) *dbus.Error {
	return func(*Service, caller) *dbus.Error { return fprintFailure("PermissionDenied", message) }
}

func fprintNothing() *dbus.Error {
	return fprintFailure("NoActionInProgress", "nothing was started, so nothing is stopped")
}

// fprintProperties are the properties of the device.
func (s *Service) fprintProperties() map[string]dbus.Variant {
	s.mu.Lock()
	looking := s.claim != nil && s.claim.named == FprintDevice && s.claim.looking()
	s.mu.Unlock()
	return map[string]dbus.Variant{
		"name": dbus.MakeVariant("camera (faceauth)"), "num-enroll-stages": dbus.MakeVariant(int32(s.a.Stages())),
		"scan-type": dbus.MakeVariant(
			"press"), "finger-needed": dbus.MakeVariant(looking), "finger-present": dbus.MakeVariant(false),
	}
}

// fprintList returns the finger of an enrolled user.
func (s *Service) fprintList(by caller, name string) ([]string, *dbus.Error) {
	user, failed := s.about(by, name)
	if failed != nil {
		return nil, failed
	}
	switch st, err := s.a.Status(user); {
	case err != nil:
		return nil, s.told(err)
	case st.Labelled == 0 && (st.Fleet == nil || st.Fleet.Faces == 0): // no face has come from the fleet yet
		return nil, s.told(profile.ErrUnknown)
	}
	return []string{FprintFinger}, nil
}

// fprintClaim claims the device for a user. For a program of root the call does not name the asker, nor whether it is
// sudo: only greeters are answered. A screen lock of theirs asks from there, too.
func (s *Service) fprintClaim(by caller, name string) *dbus.Error {
	if !by.root() {
		return s.claimSelf(by, name, FprintDevice)
	}
	user, _, failed := by.subject(name)
	if failed != nil {
		return failed
	}
	p, failed := s.here(by, user)
	if failed == nil && !p.greeter {
		s.o.Log.Warn("denied", "uid", by.uid, "action", "a login of root by fprintd's names")
		failed = failure(permissionDenied, "a program of root in a session could be sudo; use your password")
	}
	if failed != nil {
		return failed
	}
	return s.claimFor(&claim{by: by, user: user, named: FprintDevice, still: s.stillHere(by, user)})
}

// fprintClaimed returns the claim of a client, with fprintd's errors.
func (s *Service) fprintClaimed(by caller) (*claim, *dbus.Error) {
	c, failed := s.claimed(by, FprintDevice)
	if failed == nil {
		return c, nil
	}
	if s.held() != nil {
		return nil, fprintFailure("AlreadyInUse", "another program has claimed the device; try again in a few seconds")
	}
	return nil, failed
}

func (s *Service) fprintRelease(by caller) *dbus.Error {
	c, failed := s.fprintClaimed(by)
	if failed == nil {
		s.drop(c)
	}
	return failed
}

// fprintStart starts the verification of the claim's user. Clients treat signals before the answer as errors, so
// signals wait.
func (s *Service) fprintStart(by caller, finger string) *dbus.Error {
	c, failed := s.fprintClaimed(by)
	if failed != nil {
		return failed
	}
	if !slices.Contains([]string{"", "any", FprintFinger}, finger) {
		return fprintFailure("InvalidFingername", "the face is "+FprintFinger+", or any")
	}
	s.mu.Lock()
	started := c.running != nil
	if !started {
		s.starting[by.sender] = c
	}
	s.mu.Unlock()
	if started {
		return running()
	}
	c.order.Lock()
	c.holds = true
	c.order.Unlock()
	s.signal(c, FprintPath, "VerifyFingerSelected", "any")
	if failed := s.verifyStart(by, FprintDevice); failed != nil {
		s.mu.Lock()
		delete(s.starting, by.sender)
		s.mu.Unlock()
		c.order.Lock()
		c.holds, c.held = false, nil
		c.order.Unlock()
		return failed
	}
	return nil
}

// fprintSignals sends the waiting signals after the answer of a start. The claim may have ended already.
func (s *Service) fprintSignals(by caller) {
	s.mu.Lock()
	c := s.starting[by.sender]
	delete(s.starting, by.sender)
	s.mu.Unlock()
	if c == nil {
		return
	}
	c.order.Lock()
	defer c.order.Unlock()
	for _, m := range c.held {
		s.conn.Send(m, nil)
	}
	c.holds, c.held = false, nil
}

// fprintStop ends the verification. As in fprintd, clients must call it even after the last signal.
func (s *Service) fprintStop(by caller) *dbus.Error {
	c, failed := s.fprintClaimed(by)
	if failed != nil {
		return failed
	}
	s.mu.Lock()
	started := c.running != nil
	s.mu.Unlock()
	if !started {
		return fprintNothing()
	}
	s.halt(c)
	s.mu.Lock()
	c.running, c.stop = nil, nil
	s.mu.Unlock()
	return nil
}
