package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/regular"
	"github.com/faceauth/faceauth/office"
	"github.com/faceauth/faceauth/office/logbook"
	"github.com/faceauth/faceauth/office/page"
	"github.com/faceauth/faceauth/office/presence"
	"github.com/faceauth/faceauth/office/sink"
	"github.com/spf13/cobra"
)

// outside is who else sees an office: the flags of its page and of its sinks.
type outside struct {
	address, token, cert, key string
	webhook, webhookSecret    string
	mqtt, mqttPassword        string
	mqttTopic, mqttDiscovery  string
}

func (r *outside) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.address, "page", "", "address of the web page, such as 127.0.0.1:8090")
	f.StringVar(&r.token, "token", "", "file with the token that the page asks for; it must be there for any but a loopback address")
	f.StringVar(&r.cert, "tls-cert", "", "file with the certificate of the page, for https")
	f.StringVar(&r.key, "tls-key", "", "file with the key of that certificate")
	f.StringVar(&r.webhook, "webhook", "", "URL to which events are posted")
	f.StringVar(&r.webhookSecret, "webhook-secret", "", "file with the secret that signs them (Standard Webhooks)")
	f.StringVar(&r.mqtt, "mqtt", "", "MQTT broker that is told of events and of who is there: mqtt://[user@]host[:port], or mqtts")
	f.StringVar(&r.mqttPassword, "mqtt-password", "", "file with the password of the broker")
	f.StringVar(&r.mqttTopic, "mqtt-topic", "faceauth", "topic that all others begin with")
	f.StringVar(&r.mqttDiscovery, "mqtt-discovery", "homeassistant", "topic below which Home Assistant looks")
}

func (r *outside) sinks() bool { return r.webhook != "" || r.mqtt != "" }

// secret returns what is in a file, without white space at its ends, or nothing where there is no file named.
func secret(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others can read the secret in %s; run: chmod 600 %s", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(text))
	if s == "" {
		return "", fmt.Errorf("there is no secret in %s", path)
	}
	return s, nil
}

// grace is how long the end waits for those who have not got everything yet; the rest waits for the next start.
const grace = 3 * time.Second

// waiting reports whether somebody who answers has not got everything.
func waiting(sinks []*told) bool {
	for _, t := range sinks {
		if s := t.state(); s.Waiting > 0 && s.Error == "" {
			return true
		}
	}
	return false
}

// open shows an office and tells of it, until ctx ends and end has been called. What goes wrong later is given to cancel.
func (r *outside) open(ctx context.Context, c *cobra.Command, w *office.Office, b *logbook.Book, cancel context.CancelCauseFunc) (end func(), err error) {
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	var closers []io.Closer
	var sinks []*told
	over := func() {
		for end := time.Now().Add(grace); waiting(sinks) && time.Now().Before(end); {
			time.Sleep(grace / 50)
		}
		stop()
		all.Wait()
		for _, c := range closers {
			c.Close()
		}
	}
	defer func() {
		if err != nil {
			over()
		}
	}()
	run := func(do func() error) {
		all.Go(func() {
			if err := do(); err != nil {
				cancel(err)
			}
		})
	}
	deliver := func(t *told, s sink.Sink) error {
		if t.queue, err = b.Queue(t.name); err != nil {
			return fail(badUsage, err)
		}
		sinks = append(sinks, t)
		run(func() error { return sink.Deliver(ctx, t.queue, s, sink.Options{Failed: t.failed}) })
		return nil
	}
	if r.webhook != "" {
		key, err := secret(r.webhookSecret)
		if err != nil {
			return nil, fail(badUsage, err)
		}
		hook, err := sink.NewWebhook(r.webhook, []byte(key))
		if err != nil {
			return nil, fail(badUsage, err)
		}
		if err := deliver(newTold("webhook", c), hook); err != nil {
			return nil, err
		}
	}
	if r.mqtt != "" {
		password, err := secret(r.mqttPassword)
		if err != nil {
			return nil, fail(badUsage, err)
		}
		t := newTold("mqtt", c)
		m, err := sink.NewMQTT(sink.Broker{
			URL: r.mqtt, Password: password, Topic: r.mqttTopic, Discovery: r.mqttDiscovery, Failed: t.failed,
			People: func() (known []string, there []presence.Person) {
				now := w.Now()
				for _, p := range now.Known {
					known = append(known, p.Name)
				}
				return known, now.People
			},
		})
		if err != nil {
			return nil, fail(badUsage, err)
		}
		closers = append(closers, m)
		if err := deliver(t, m); err != nil {
			return nil, err
		}
		run(func() error { // people are named and forgotten without an event
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					m.Update()
				case <-ctx.Done():
					return nil
				}
			}
		})
	}
	if r.address == "" {
		if r.token != "" || r.cert != "" || r.key != "" {
			return nil, fail(badUsage, errors.New("--token, --tls-cert and --tls-key are for --page"))
		}
		return over, nil
	}
	return over, r.show(ctx, c, w, sinks, run)
}

// show serves the page.
func (r *outside) show(ctx context.Context, c *cobra.Command, w *office.Office, sinks []*told, run func(func() error)) error {
	token, err := secret(r.token)
	if err != nil {
		return fail(badUsage, err)
	}
	p, err := page.New(w, page.Options{Token: token, Sinks: func() []page.Sink {
		all := []page.Sink{}
		for _, t := range sinks {
			all = append(all, t.state())
		}
		return all
	}})
	if err != nil {
		return fail(badUsage, err)
	}
	var certificates []tls.Certificate
	scheme := "http"
	if r.cert != "" || r.key != "" {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return fail(badUsage, fmt.Errorf("the certificate of the page: %w", err))
		}
		certificates, scheme = append(certificates, pair), "https"
	}
	l, err := p.Listen(r.address)
	if err != nil {
		return fail(badUsage, err)
	}
	fmt.Fprintf(c.ErrOrStderr(), "faceauth: the page is at %s://%s/\n", scheme, l.Addr())
	if token != "" && scheme == "http" && !strings.HasPrefix(l.Addr().String(), "127.") {
		warn(c, "the page is not encrypted: who listens on the network reads the token; use --tls-cert and --tls-key, or a proxy")
	}
	run(func() error { return p.Serve(ctx, l, certificates) })
	return nil
}

// told is a sink, and how it is.
type told struct {
	name  string
	out   io.Writer
	queue *logbook.Queue

	mu   sync.Mutex
	last string
}

func newTold(name string, c *cobra.Command) *told { return &told{name: name, out: c.ErrOrStderr()} }

// failed notes how the last try went, and says so where that is news.
func (t *told) failed(err error) {
	if errors.Is(err, sink.ErrOffline) {
		return // why that is has been said
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if text == t.last {
		return
	}
	t.last = text
	if err != nil {
		fmt.Fprintf(t.out, "faceauth: %s: %v; it is tried again\n", t.name, err)
	} else {
		fmt.Fprintf(t.out, "faceauth: %s: well again\n", t.name)
	}
}

func (t *told) state() page.Sink {
	waiting, lost := t.queue.Waiting()
	t.mu.Lock()
	defer t.mu.Unlock()
	return page.Sink{Name: t.name, Waiting: waiting, Lost: lost, Error: t.last}
}
