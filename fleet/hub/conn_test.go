// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats.go"
)

// Entries of several devices reach all devices in one order. An entry is stored as often as it is appended.
func TestLog(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	var conns []*hub.Conn
	var readers []*reader
	for range 4 {
		c := h.device(t)
		conns, readers = append(conns, c), append(readers, follow(t, c))
	}
	const each = 25
	for n := range each {
		for i, c := range conns {
			isUp(t, c)
			for range 1 + n%2 {
				if err := c.Append(within(t, 20*time.Second), []string{"-", "", "0f"}[n%3],
					[]byte(fmt.Sprintf("%d of %d", n, i))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, r := range readers {
		eventually(t, "all entries", func() bool { return len(r.all()) >= each*len(conns) })
		if !slices.Equal(r.all(), readers[0].all()) || len(r.all()) != each*len(conns) {
			t.Errorf("%d and %d entries in another order", len(r.all()), len(readers[0].all()))
		}
	}
	if last, err := conns[0].Last(within(t, 5*time.Second)); err != nil || last != (each+each/2)*4 {
		t.Errorf("last %d, %v", last, err)
	}
}

// A device whose connection is cut continues at its place in the log, and appends again.
func TestPartition(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	p := newProxy(t, h.Address())
	key, id := deviceKey(t)
	h.devices = []string{id}
	h.Admit(h.devices)
	far, near := h.connect(t, p.url(), key), h.device(t)
	isUp(t, far)
	isUp(t, near)
	r, all := follow(t, far), follow(t, near)
	n := 0
	for round := range 8 {
		p.set(round%2 == 1)
		for range 10 {
			n++
			if err := near.Append(within(t, 20*time.Second), "",
				[]byte(fmt.Sprint("near ", n))); err != nil {
				t.Fatal(err)
			}
			for try := 0; ; try++ {
				err := far.Append(within(t, time.Second), "", []byte(fmt.Sprint("far ", n)))
				if err == nil {
					break
				}
				if !errors.Is(err, hub.ErrOffline) && !strings.Contains(err.Error(), "deadline") {
					t.Fatalf("round %d: %v", round, err)
				}
				p.set(false)
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	p.set(false)
	for _, r := range []*reader{r, all} {
		eventually(t, "all entries", func() bool { return len(r.all()) >= 160 })
	}
	if !slices.Equal(r.all(), all.all()) || len(all.all()) != 160 {
		t.Errorf("%d and %d entries", len(r.all()), len(all.all()))
	}
}

// The server refuses every request that a device may not make: to purge, to delete, to change the stream, to use
// another device's consumer, and to read another device's inbox.
func TestDeviceMayNot(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	c, other := h.device(t), h.device(t)
	isUp(t, c)
	isUp(t, other)
	if err := c.Append(within(t, 5*time.Second), "", []byte("a")); err != nil {
		t.Fatal(err)
	}
	stream, bucket := h.names.Stream, "OBJ_"+h.names.Bucket
	nc := h.raw(t)
	for _, subject := range []string{
		"$JS.API.STREAM.PURGE." + stream, "$JS.API.STREAM.DELETE." + stream, "$JS.API.STREAM.UPDATE." + stream,
		"$JS.API.STREAM.MSG.DELETE." + stream, "$JS.API.STREAM.CREATE.other", "$JS.API.STREAM.NAMES",
		"$JS.API.CONSUMER.NAMES." + stream, "$JS.API.CONSUMER.CREATE." + bucket + ".x",
		"$JS.API.CONSUMER.CREATE." + bucket + ".x.y", "$JS.API.CONSUMER.DELETE." + bucket + ".x",
		"$JS.API.STREAM.PURGE." + bucket, "$JS.API.STREAM.DELETE." + bucket, "$O." + h.names.Bucket + ".M.x",
		"$O." + h.names.Bucket + ".C.x",
		"$JS.API.CONSUMER.DELETE." + stream + "." + other.ID(),
		"$JS.API.CONSUMER.MSG.NEXT." + stream + "." + other.ID(),
		"$JS.API.CONSUMER.CREATE." + stream, "$JS.API.CONSUMER.DURABLE.CREATE." + stream + ".x", "$SYS.REQ.SERVER.PING",
		h.names.Admin, h.names.Join, hub.PlaceOf(h.fleet, other.ID()), hub.Inbox(other.ID()) + ".x", "anything",
	} {
		refused := make(chan error, 1)
		nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case refused <- err:
			default:
			}
		})
		if err := nc.Publish(subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", subject, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s was let through", subject)
		}
	}
	for _, subject := range []string{">", h.names.AnyLog, hub.Inbox(other.ID()) + ".>", hub.KeysOf(h.fleet, other.ID()),
		h.names.AnyPlace, h.names.Admin, "_INBOX.>"} {
		refused := make(chan error, 1)
		nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case refused <- err:
			default:
			}
		})
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
		case <-time.After(5 * time.Second):
			t.Errorf("listening to %s was let through", subject)
		}
	}
	if last, err := c.Last(within(t, 5*time.Second)); err != nil || last != 1 {
		t.Errorf("the log ends at %d, %v", last, err)
	}
}

// A revoked device is disconnected at once and stays out. A key that nobody admitted is refused, and so is a device
// without its seed.
func TestRefused(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	c, other := h.device(t), h.device(t)
	isUp(t, c)
	isUp(t, other)
	begun := time.Now()
	h.Admit([]string{other.ID()})
	eventually(t, "being cut off", func() bool { return c.Err() != nil })
	if d := time.Since(begun); d > time.Second {
		t.Errorf("cut off after %v", d)
	}
	eventually(t, "being refused", func() bool { return errors.Is(c.Err(), fleet.ErrRefused) })
	if err := c.Append(t.Context(), "", nil); !errors.Is(err, hub.ErrRefused) {
		t.Errorf("append: %v", err)
	}
	if err := c.Wait(t.Context()); !errors.Is(err, hub.ErrRefused) {
		t.Errorf("wait: %v", err)
	}
	stranger, _ := deviceKey(t)
	if err := h.connect(t, h.url(), stranger).Wait(within(t, 10*time.Second)); !errors.Is(err, hub.ErrRefused) {
		t.Errorf("a stranger: %v", err)
	}
	// A client that gives the name of another device and signs with its own key.
	_, err := hub.Dial(within(t, 10*time.Second), h.url(), nats.Nkey(other.ID(), stranger.Sign),
		nats.Secure(hub.Pinned(h.Pin())))
	if !errors.Is(err, hub.ErrRefused) {
		t.Errorf("another's name: %v", err)
	}
	if _, err := hub.Dial(within(t, 10*time.Second), h.url(), nats.Secure(hub.Pinned(h.Pin()))); !errors.Is(err,
		hub.ErrRefused) {
		t.Errorf("without a key: %v", err)
	}
	// A device that is admitted again reconnects by itself.
	h.Admit([]string{other.ID(), c.ID()})
	eventually(t, "coming back", func() bool { return c.Err() == nil })
}

func TestWrongServer(t *testing.T) {
	h, impostor := newHouse(t, hub.Limits{}), newHouse(t, hub.Limits{})
	key, _ := deviceKey(t)
	if err := h.connect(t, impostor.url(), key).Wait(within(t, 10*time.Second)); !errors.Is(err, hub.ErrPin) {
		t.Errorf("another certificate: %v", err)
	}
	// A client without TLS is refused, and so is one with an older version of TLS.
	_, err := hub.Dial(within(t, 10*time.Second), strings.Replace(h.url(), "tls://", "nats://", 1), nats.Nkey("", nil))
	if err == nil {
		t.Error("let in without TLS")
	}
	old := hub.Pinned(h.Pin())
	old.MinVersion, old.MaxVersion = 0x0302, 0x0303
	if _, err := hub.Dial(within(t, 10*time.Second), h.url(), nats.Secure(old)); err == nil {
		t.Error("let in with TLS 1.2")
	}
}

func TestTooLarge(t *testing.T) {
	h := newHouse(t, hub.Limits{Message: 10000})
	c := h.device(t)
	isUp(t, c)
	if err := c.Append(within(t, 5*time.Second), "", make([]byte, 20000)); !errors.Is(err, hub.ErrTooLarge) {
		t.Errorf("twice as large: %v", err)
	}
	if err := c.Append(within(t, 5*time.Second), "", make([]byte, 9990)); !errors.Is(err, hub.ErrTooLarge) {
		t.Errorf("too large with its headers: %v", err)
	}
	if err := c.Append(within(t, 5*time.Second), "", make([]byte, 9000)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"a b", "a.b", "*", ">", strings.Repeat("a", 65), "é"} {
		if err := c.Append(t.Context(), bad, nil); !errors.Is(err, hub.ErrPerson) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A full log refuses new entries and keeps its old ones.
func TestFull(t *testing.T) {
	h := newHouse(t, hub.Limits{Disk: 1 << 20})
	c := h.device(t)
	isUp(t, c)
	stored := 0
	for n := range 200 {
		err := c.Append(within(t, 5*time.Second), "", bytes.Repeat([]byte{byte(n)}, 10000))
		if errors.Is(err, hub.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		stored++
	}
	if stored < 40 || stored > 70 {
		t.Errorf("%d entries of 10 kB are stored in .6 MB", stored)
	}
	r := follow(t, c)
	eventually(t, "what was stored", func() bool { return len(r.all()) == stored })
}

// All devices of a large fleet ask one device, the device that enrolled a person. If too many questions wait, the other
// devices are refused at once and do not wait for an answer in vain.
func TestKeysBusy(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	a, b := h.device(t), h.device(t)
	isUp(t, a)
	isUp(t, b)
	release := make(chan struct{})
	go a.ServeKeys(t.Context(), a.ID(), func(q []byte) []byte {
		<-release
		return append(q, '!')
	})
	eventually(t, "a question is taken", func() bool {
		_, err := b.AskKeys(within(t, 100*time.Millisecond), a.ID(), []byte("?"))
		return !errors.Is(err, fleet.ErrNoAnswer)
	})
	const questions = 1200
	errs := make(chan error, questions)
	ctx := within(t, time.Minute)
	for range questions {
		go func() {
			_, err := b.AskKeys(ctx, a.ID(), []byte("?"))
			errs <- err
		}()
	}
	if err := <-errs; !errors.Is(err, fleet.ErrNoAnswer) {
		t.Fatalf("while the device is busy: %v", err)
	}
	close(release)
	answered := 0
	for range questions - 1 {
		if err := <-errs; err == nil {
			answered++
		} else if !errors.Is(err, fleet.ErrNoAnswer) {
			t.Fatal(err)
		}
	}
	if answered < 1000 {
		t.Errorf("%d questions of %d were answered", answered, questions)
	}
}

func TestKeys(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	a, b := h.device(t), h.device(t)
	isUp(t, a)
	isUp(t, b)
	for _, of := range []string{"", a.ID()} {
		if _, err := b.AskKeys(within(t, 5*time.Second), of, []byte("?")); !errors.Is(err, fleet.ErrNoAnswer) {
			t.Errorf("nobody there: %v", err)
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- a.ServeKeys(t.Context(), a.ID(), func(q []byte) []byte {
			if string(q) == "silence" {
				return nil
			}
			return append(q, '!')
		})
	}()
	for _, of := range []string{"", a.ID()} {
		eventually(t, "an answer", func() bool {
			answer, err := b.AskKeys(within(t, 5*time.Second), of, []byte("?"))
			return err == nil && bytes.Equal(answer, []byte("?!"))
		})
	}
	if _, err := b.AskKeys(within(t, 200*time.Millisecond), "", []byte("silence")); err == nil {
		t.Error("silence was an answer")
	}
	if err := a.ServeKeys(t.Context(), b.ID(), nil); err == nil {
		t.Error("serving as another")
	}
	if _, err := b.AskKeys(t.Context(), "nobody", nil); err == nil {
		t.Error("asking nobody")
	}
	h.Admit([]string{b.ID()}) // a is revoked
	select {
	case err := <-done:
		if !errors.Is(err, hub.ErrOffline) {
			t.Errorf("serving ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("serving goes on without a connection")
	}
}
