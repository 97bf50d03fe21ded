// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

// idleClaim is how long a claim lasts while nothing is started.
const idleClaim = 30 * time.Second

// claim is the right of one client to use the device for one user.
type claim struct {
	by      caller
	named   string // the interface by which it was made
	user    string
	asker   uint32 // who wants to be that user; root at a greeter
	rank    int
	at      time.Time
	granted bool            // the client was answered
	taken   atomic.Bool     // somebody else took it, or the device goes to sleep
	ctx     context.Context // of what is started
	cancel  context.CancelFunc
	idle    *time.Timer
	end     sync.Once

	// Guarded by the service's mutex.
	running chan struct{}      // closed when what was started has ended; nil where nothing was
	stop    context.CancelFunc // of what was started
	word    string             // the last that was sent

	// Of a claim by fprintd's names: signals wait until the client was answered (see fprintSignals). The service's mutex
	// is not for them: while the bus is busy, sending takes long.
	order sync.Mutex
	holds bool
	held  []*dbus.Message
}

// Ranks of claims.
const (
	rankIdle    = iota - 1 // nothing is started
	rankForeign            // somebody who wants to be somebody else, as with su
	rankDirect             // a user's program, without PAM
	rankLogin              // a user's own login, or one at a greeter
)

// rankOf returns that of a claim. Root's programs that say who asked are PAM modules.
func (c *claim) rankOf() int {
	switch {
	case c.foreign() != 0:
		return rankForeign
	case c.by.root():
		return rankLogin
	}
	return rankDirect
}

// foreign returns the number of somebody who wants to be another user, or 0: root may be everybody, and so may those
// who stand at a greeter, which is root.
func (c *claim) foreign() uint32 {
	if uid, err := UID(c.user); c.asker == 0 || err == nil && uid == c.asker {
		return 0
	}
	return c.asker
}

// claimed returns the claim that a client has made by an interface. The error is for one that has none.
func (s *Service) claimed(by caller, named string) (*claim, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claim == nil || s.claim.by.sender != by.sender || s.claim.named != named {
		return nil, failure(claimDevice, "this program has no claim, or has it no more; claim the device first")
	}
	return s.claim, nil
}

// held returns the claim that there is, or nil.
func (s *Service) held() *claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claim
}

// take gives a client the claim. The newest has it, and a claim under which nothing is looked for keeps nobody out; but
// who wants to be somebody else takes it from nobody's own login.
func (s *Service) take(c *claim) *dbus.Error {
	for {
		s.mu.Lock()
		if s.asleep {
			s.mu.Unlock()
			return failure(alreadyInUse, "the device is about to sleep; try again when it is awake, or use your password")
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
		case held.ctx.Err() != nil: // it is ending
		case rank <= c.rank:
			if rank > rankIdle {
				s.o.Log.Info("a newer claim takes the device", "uid", c.by.uid, "from", held.by.uid)
			}
		case s.there(held.by.sender):
			return failure(alreadyInUse, "another login is using the camera; try again in a few seconds, or use your password")
		}
		s.interrupt(held)
	}
}

// startPatience is how long a client may take from its claim to a start before it keeps nobody out.
const startPatience = time.Second

// over reports whether nothing is looked for under a claim, nor will be at once. The service's mutex is held.
func (c *claim) over() bool {
	if c.running == nil {
		patience := startPatience
		if !c.granted { // the bus is being asked about the client
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

// looking reports whether something that was started goes on. The service's mutex is held.
func (c *claim) looking() bool { return c.running != nil && !c.over() }

// interrupt drops a claim for no reason of its client's, which is told so.
func (s *Service) interrupt(c *claim) {
	c.taken.Store(true)
	s.drop(c)
}

// drop ends a claim and what was started under it, and waits for that.
func (s *Service) drop(c *claim) {
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

// wait waits for what was started under a claim to end, which does not take long once its context has ended.
func (s *Service) wait(c *claim) {
	s.mu.Lock()
	running := c.running
	s.mu.Unlock()
	if running != nil {
		<-running
	}
}

// start runs something under a claim. The error is what run began with; once it has called began, which it may do
// again, it goes on by itself.
func (s *Service) start(c *claim, run func(ctx context.Context, began func()) error) *dbus.Error {
	s.mu.Lock()
	if s.claim != c || c.ctx.Err() != nil {
		s.mu.Unlock()
		return failure(claimDevice, "this program has no claim, or has it no more; claim the device first")
	}
	if c.running != nil && !c.over() {
		s.mu.Unlock()
		return failure(alreadyInUse, "something was started already; stop it first")
	}
	ctx, cancel := context.WithCancel(c.ctx)
	running := make(chan struct{})
	c.running, c.stop, c.word = running, cancel, ""
	c.idle.Stop()
	s.mu.Unlock()
	begun := make(chan error, 1)
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		defer close(running)
		defer cancel()
		defer c.idle.Reset(idleClaim)
		err := run(ctx, sync.OnceFunc(func() { begun <- nil }))
		select {
		case begun <- err: // it ended before it began
		default:
		}
	}()
	return s.told(<-begun)
}

// halt ends what was started under a claim, and waits for that.
func (s *Service) halt(c *claim) {
	s.mu.Lock()
	stop := c.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	s.wait(c)
}

// send sends a signal to the client that has the claim, and to nobody else. A word that was sent last is not sent
// again.
func (s *Service) send(c *claim, member, word string, done bool) {
	path := Path
	if c.named == FprintDevice {
		path = FprintPath
		if word = fprintWord(word, done); word == "" {
			return
		}
	}
	s.mu.Lock()
	again := c.word == word
	c.word = word
	s.mu.Unlock()
	if again && !done {
		return
	}
	s.signal(c, path, member, word, done)
}

// signal sends a signal to the client that has the claim.
func (s *Service) signal(c *claim, path dbus.ObjectPath, member string, body ...any) {
	m := &dbus.Message{
		Type:  dbus.TypeSignal,
		Flags: dbus.FlagNoReplyExpected,
		Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath:        dbus.MakeVariant(path),
			dbus.FieldInterface:   dbus.MakeVariant(c.named),
			dbus.FieldMember:      dbus.MakeVariant(member),
			dbus.FieldDestination: dbus.MakeVariant(c.by.sender),
			dbus.FieldSignature:   dbus.MakeVariant(dbus.SignatureOf(body...)),
		},
		Body: body,
	}
	if c.named == FprintDevice {
		c.order.Lock()
		defer c.order.Unlock()
		if c.holds {
			c.held = append(c.held, m)
			return
		}
	}
	s.conn.Send(m, nil)
}

// watch has the bus say when a client is gone, and reports whether it is still there.
func (s *Service) watch(sender string) bool {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	return s.asks.AddMatchSignalContext(ctx, ownerChanged(sender)...) == nil && s.there(sender)
}

// there reports whether a client is still on the bus.
func (s *Service) there(sender string) (there bool) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	err := s.asks.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, sender).Store(&there)
	return err == nil && there
}

func (s *Service) unwatch(sender string) {
	ctx, cancel := context.WithTimeout(s.ctx, s.o.Patience)
	defer cancel()
	if err := s.asks.RemoveMatchSignalContext(ctx, ownerChanged(sender)...); err != nil && s.ctx.Err() == nil {
		s.o.Log.Warn("the bus does not answer", "error", err)
	}
}

// ownerChanged is what the bus says when a name, or a client, comes or goes.
func ownerChanged(name string) []dbus.MatchOption {
	return []dbus.MatchOption{
		dbus.WithMatchSender("org.freedesktop.DBus"), dbus.WithMatchInterface("org.freedesktop.DBus"),
		dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, name),
	}
}

// notices ends the claims of clients that are gone, and all claims when the device goes to sleep, until ctx ends.
func (s *Service) notices(signals <-chan *dbus.Signal) {
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
					s.running.Add(1)
					go func() {
						defer s.running.Done()
						s.drop(held)
					}()
				}
			case sig.Name == loginManager+".PrepareForSleep" && len(sig.Body) == 1:
				if on, ok := sig.Body[0].(bool); ok {
					s.sleep(on)
				}
			}
		}
	}
}
