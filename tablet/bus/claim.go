// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/tablet"
	"github.com/godbus/dbus/v5"
)

// idleClaim is how long a claim lasts without a start.
const idleClaim = 30 * time.Second

// claim is the right of one client to use the device for one user.
type claim struct {
	by      caller
	user    string
	asker   uint32       // number of the asking user; root at a greeter
	service string       // of PAM, or ""
	manager bool         // see place
	still   func() error // returns an error if the client is no longer at the device; nil if that does not matter
	// The challenge of the PAM service, if the policy has none.
	challenge tablet.Challenge
	rank      int
	at        time.Time
	granted   bool            // the client has its answer
	taken     atomic.Bool     // another client took it, or the device goes to sleep
	ctx       context.Context // context of the started work
	cancel    context.CancelFunc
	idle      *time.Timer
	end       sync.Once

	// Guarded by the service's mutex.
	running chan struct{}      // closed when the started work has ended; nil without work
	stop    context.CancelFunc // stops the started work
	word    string             // the last word that was sent
	asked   chan struct{}      // closed when the client wants the verdict; nil if it wants it anyway
}

// Ranks of claims.
const (
	rankIdle    = iota - 1 // no started work
	rankForeign            // a user who wants to be another user, as with su
	rankDirect             // a user's program, without PAM
	rankLogin              // a user's own login, or one at a greeter
)

// rankOf returns the rank of a claim. Root's programs that name the asker are PAM modules.
func (c *claim) rankOf() int {
	switch {
	case c.foreign() != 0:
		return rankForeign
	case c.by.root():
		return rankLogin
	}
	return rankDirect
}

// foreign returns the number of a user who wants to be another user, or 0. Root may be everybody, and so may people at
// a greeter, which runs as root. A program of the user's own manager counts as another user.
func (c *claim) foreign() uint32 {
	if c.manager {
		return c.asker
	}
	if uid, err := UID(c.user); c.asker == 0 || err == nil && uid == c.asker {
		return 0
	}
	return c.asker
}

// claimed returns the claim of a client. It is an error if there is none.
func (s *service) claimed(by caller) (*claim, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claim == nil || s.claim.by.sender != by.sender {
		return nil, noClaim()
	}
	return s.claim, nil
}

func noClaim() *dbus.Error {
	return failure(claimDevice, "this program has no claim, or has it no more; claim the device first")
}

func running() *dbus.Error {
	return failure(alreadyInUse, "something was started already; stop it first")
}

// held returns the present claim, or nil.
func (s *service) held() *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claim
}

// take gives a client the claim. The newest client gets it, and a claim without started work does not prevent this. But
// a user who wants to be another user cannot take it from a user's own login.
func (s *service) take(c *claim) *dbus.Error {
	for {
		s.mu.Lock()
		if s.asleep {
			s.mu.Unlock()
			return failure(alreadyInUse,
				"the device is about to sleep; try again when it is awake, or use your password")
		}
		held := s.claim
		if held == nil {
			s.claim = c
			s.mu.Unlock()
			return nil
		}
		rank := held.rank
		if held.over() {
			rank = rankIdle
		}
		s.mu.Unlock()
		switch {
		case held.ctx.Err() != nil: // the claim is ending
		case rank <= c.rank:
			if rank > rankIdle {
				s.o.Log.Info("a newer claim takes the device", "uid", c.by.uid, "from", held.by.uid)
			}
		case s.there(held.by.sender):
			return failure(alreadyInUse,
				"another login is using the camera; try again in a few seconds, or use your password")
		}
		s.interrupt(held)
	}
}

// startPatience is how long a client may take from claim to start before other clients may take the claim. A login,
// which root's programs start at once, gets loginPatience: when others flood the bus, each of its messages takes long.
const (
	startPatience = time.Second
	loginPatience = 10 * time.Second
)

// over reports whether a claim has no started work, and will not have any soon. The service's mutex is held.
func (c *claim) over() bool {
	if c.running == nil {
		patience := startPatience
		if c.by.root() {
			patience = loginPatience
		}
		if !c.granted { // the bus is still checking the client
			patience += 2 * busPatience
		}
		return time.Since(c.at) > patience
	}
	select {
	case <-c.running:
		return true
	default:
		return false
	}
}

// looking reports whether started work continues. The service's mutex is held.
func (c *claim) looking() bool { return c.running != nil && !c.over() }

// interrupt drops a claim for a reason that is not its client's, and tells the client.
func (s *service) interrupt(c *claim) {
	c.taken.Store(true)
	s.drop(c)
}

// drop ends a claim and its started work, and waits for the end.
func (s *service) drop(c *claim) {
	c.end.Do(func() {
		c.idle.Stop()
		c.cancel()
		s.wait(c)
		s.unwatch(c.by.sender)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.claim == c {
			s.claim = nil
		}
	})
}

// wait waits for the end of a claim's started work. It ends soon after its context.
func (s *service) wait(c *claim) {
	s.mu.Lock()
	running := c.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// start runs work under a claim. The error tells why the work did not begin. When run has called began, also
// repeatedly, the work continues in its own goroutine.
func (s *service) start(c *claim, run func(ctx context.Context, began func()) error) *dbus.Error {
	s.mu.Lock()
	if s.claim != c || c.ctx.Err() != nil {
		s.mu.Unlock()
		return noClaim()
	}
	if c.running != nil && !c.over() {
		s.mu.Unlock()
		return running()
	}
	ctx, cancel := context.WithCancel(c.ctx)
	running := make(chan struct{})
	c.running, c.stop, c.word = running, cancel, ""
	c.idle.Stop()
	s.mu.Unlock()
	begun := make(chan error, 1)
	s.running.Go(func() {
		defer close(running)
		defer cancel()
		defer c.idle.Reset(idleClaim)
		err := run(ctx, sync.OnceFunc(func() { begun <- nil }))
		select {
		case begun <- err: // the work ended before it began
		default:
		}
	})
	return s.told(<-begun)
}

// halt ends the started work of a claim, and waits for the end.
func (s *service) halt(c *claim) {
	s.mu.Lock()
	stop := c.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.wait(c)
}

// send sends a signal only to the client with the claim. It does not repeat the last word.
func (s *service) send(c *claim, member, word string, done bool) {
	s.mu.Lock()
	again := c.word == word
	c.word = word
	s.mu.Unlock()
	if again && !done {
		return
	}
	body := []any{word, done}
	s.conn.Send(&dbus.Message{
		Type:  dbus.TypeSignal,
		Flags: dbus.FlagNoReplyExpected,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath:        dbus.MakeVariant(Path),
			dbus.FieldInterface:   dbus.MakeVariant(Interface),
			dbus.FieldMember:      dbus.MakeVariant(member),
			dbus.FieldDestination: dbus.MakeVariant(c.by.sender),
			dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf(body...)),
		},
		Body: body,
	}, nil)
}

// watch subscribes to the end of a client, and reports whether the client still exists.
func (s *service) watch(sender string) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	return s.asks.AddMatchSignalContext(ctx, ownerChanged(sender)...) == nil && s.there(sender)
}

// there reports whether a client is still on the bus.
func (s *service) there(sender string) (there bool) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	err := s.asks.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, sender).Store(&there)
	return err == nil && there
}

func (s *service) unwatch(sender string) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	if err := s.asks.RemoveMatchSignalContext(ctx, ownerChanged(sender)...); err != nil && s.ctx.Err() == nil {
		s.o.Log.Warn("the bus does not answer", "error", err)
	}
}

// ownerChanged is the bus's signal about a name, or a client, that comes or goes.
func ownerChanged(name string) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchInterface("org.freedesktop.DBus"),
		dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, name),
	}
}

// notices ends the claims of clients that have gone, and all claims when the device goes to sleep, until ctx ends.
func (s *service) notices(signals <-chan *dbus.Signal) {
	for {
		select {
		case <-s.ctx.Done():
			return
		case sig := <-signals:
			switch {
			case sig == nil:
				return
			case sig.Name == "org.freedesktop.DBus.NameOwnerChanged" && len(sig.Body) == 3 && sig.Body[2] == "":
				name, _ := sig.Body[0].(string)
				if held := s.held(); held != nil && held.by.sender == name {
					s.o.Log.Info("the client is gone", "uid", held.by.uid)
					s.running.Go(func() {
						s.drop(held)
					})
				}
			case sig.Name == loginManager+".PrepareForSleep" && len(sig.Body) == 1:
				if on, ok := sig.Body[0].(bool); ok {
					s.sleep(on)
				}
			}
		}
	}
}
