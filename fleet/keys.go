// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
)

// answer returns the answer to a request for keys.
func (d *Device) answer(request []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer, given, err := d.current().AnswerKeys(request, d.ring, d.key)
	if err != nil {
		d.s.Tell(err.Error())
		return nil
	}
	for _, id := range given {
		delete(d.ungiven, id)
	}
	return answer
}

// Ungiven returns the number of keys that this device has made since it was opened, and that no other device has asked
// for yet although one may have them. If this device ends now, nobody can read what it said about these people until it
// is connected again.
func (d *Device) Ungiven() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ungiven) == 0 {
		return 0
	}
	view := d.current()
	others := slices.DeleteFunc(view.Devices(), func(m ledger.Member) bool { return m.ID == d.id || m.Revoked })
	for id, person := range d.ungiven {
		_, have := d.ring.Key(person, id)
		if have && slices.ContainsFunc(others, func(m ledger.Member) bool { return view.MayRead(m.ID, person) }) {
			n++
		}
	}
	return n
}

// collectKeys asks other devices for the missing keys, and starts again when one more key is missing.
func (d *Device) collectKeys(ctx context.Context, log Log) error {
	pause := backoff.Pause{First: firstAsk, Longest: longestAsk}
	for {
		before, after := d.askAll(ctx, log)
		if after < before {
			pause.Reset()
		}
		if after == 0 {
			pause.Reset()
			select {
			case <-ctx.Done():
				return nil
			case <-d.ask:
			}
			continue
		}
		// A newly missing key is asked for at once. Keys that nobody has are asked for more and more rarely.
		wait, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			select {
			case <-d.ask:
				cancel()
			case <-wait.Done():
			}
		}()
		woken := !pause.Wait(wait)
		cancel()
		<-stop
		if ctx.Err() != nil {
			return nil
		}
		if woken {
			pause.Reset()
		}
	}
}

// wants returns the missing keys.
func (d *Device) wants() []ledger.Want {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []ledger.Want
	for id := range d.lacking {
		d.noteMissingKeys(id)
		all = append(all, d.base.WantsOf(d.id, id, d.ring)...)
	}
	return all
}

// askAll asks for all missing keys. It returns the numbers of missing keys before and after.
func (d *Device) askAll(ctx context.Context, log Log) (before, after int) {
	all := d.wants()
	before = len(all)
	if before == 0 {
		return 0, 0
	}
	// A few keys are asked from their authors first, because an author surely has its key. Many keys are asked from any
	// device first, and the rest from their authors: "any device" may be this device itself.
	if before > fewKeys {
		d.askFor(ctx, log, "", all)
	}
	authors := make(map[string][]ledger.Want)
	for _, w := range d.wants() {
		if _, known := authors[w.Author]; known || len(authors) < fewKeys {
			authors[w.Author] = append(authors[w.Author], w)
		}
	}
	delete(authors, d.id)
	for author, wants := range authors {
		d.askFor(ctx, log, author, wants)
	}
	if before <= fewKeys {
		d.askFor(ctx, log, "", d.wants())
	}
	return before, len(d.wants())
}

// askFor asks one device, or any device if "of" is empty, for keys, in as many requests as are needed.
func (d *Device) askFor(ctx context.Context, log Log, of string, wants []ledger.Want) {
	for part := range slices.Chunk(wants, ledger.MaxWants) {
		if ctx.Err() == nil {
			d.askKeys(ctx, log, of, part)
		}
	}
}

// askKeys sends one request for keys and keeps the keys of the answer.
func (d *Device) askKeys(ctx context.Context, log Log, of string, wants []ledger.Want) {
	q, err := ledger.NewKeyRequest(d.fleet, d.key, wants)
	if err != nil {
		d.s.Tell(err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := log.AskKeys(ctx, of, q.Bytes())
	if err != nil {
		return // the device is off or busy: another device is asked, or the same one later
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	came := ledger.NewRing()
	if _, err = q.Open(answer, came); err != nil {
		d.s.Tell(err.Error())
	}
	for _, w := range wants {
		key, ok := came.Key(w.Person, w.Key)
		if ok && d.current().Known(w.Person) { // the person may have been forgotten meanwhile
			d.ring.Add(w.Person, key)
			d.ringStale = true
		}
	}
	if !d.ringStale {
		return
	}
	if err := d.saveRing(); err != nil {
		d.complain(err)
	}
	d.names = nil
	signal(d.changed)
}
