// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/config"
	"github.com/faceauth/faceauth/internal/office"
	"github.com/faceauth/faceauth/internal/office/page"
	"github.com/faceauth/faceauth/internal/office/sink"
	"github.com/faceauth/faceauth/internal/version"
	"github.com/spf13/cobra"
)

// outputFlags holds the flags for the page and the sinks of an office.
type outputFlags struct {
	address, token, cert, key, url string
	lookToken                      string
	page                           page.Options // its base and frames; See
	proxies                        []string     // addresses and networks
	webhook, webhookSecret         string
	webhookFaces, ntfyFaces        bool
	ntfy, ntfyToken                string
	quiet                          []string
	broker                         sink.Broker // but for what belongs to the office
	mqttPassword                   string
	// secrets of the configuration file; flags go before them
	inline config.Secrets
}

func (r *outputFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.address, "page", "",
		"address of the web page, such as 127.0.0.1:8090, or only the port, for "+
			"browsers on this machine")
	f.StringVar(&r.token, "token", "",
		"file with the token for the page; required unless the address is a loopback address")
	f.StringVar(&r.lookToken, "look-token", "",
		"file with a second token for the page, with which nothing can be changed")
	f.StringSliceVar(&r.page.Look.Cameras, "look-camera", nil,
		"camera of which alone the second token shows what it sees")
	f.StringVar(&r.cert, "tls-cert", "", "file with the certificate of the page, for https")
	f.StringVar(&r.key, "tls-key", "", "file with the key of that certificate")
	f.StringVar(&r.page.Base, "page-base", "",
		"path of the page behind a proxy, such as /faceauth")
	f.StringVar(&r.url, "page-url", "",
		"address of the page for people, such as https://home.example/faceauth, for "+
			"links in messages; behind a proxy there is no other")
	f.StringSliceVar(&r.page.Frames, "page-frame", nil,
		"site that may show the page in a frame: self, or for example https://home.example:8123")
	f.StringSliceVar(&r.proxies, "page-proxy", nil,
		"address or network of a proxy, such as 10.0.0.0/8, whose headers "+
			"X-Forwarded-For and X-Forwarded-Proto the page believes")
	f.StringVar(&r.webhook, "webhook", "", "URL to which events are posted")
	f.StringVar(&r.webhookSecret, "webhook-secret", "",
		"file with the secret that signs them (Standard Webhooks)")
	f.StringVar(&r.broker.URL, "mqtt", "",
		"MQTT broker for events and presence: mqtt://[user@]host[:port], or mqtts")
	f.StringVar(&r.mqttPassword, "mqtt-password", "", "file with the password of the broker")
	f.StringVar(&r.broker.Topic, "mqtt-topic", "faceauth", "first part of all topics")
	f.StringVar(&r.broker.Discovery, "mqtt-discovery", "homeassistant",
		"discovery topic of Home Assistant")
	f.StringVar(&r.broker.HomeAssistant, "mqtt-homeassistant", "",
		"version of Home Assistant, as in 2026.6, if it is older than 2026.7")
	f.BoolVar(&r.broker.Faces, "mqtt-faces", false,
		"send the picture of the last face of each known person to the broker, which keeps it, "+
			"and of unknown people")
	f.StringVar(&r.ntfy, "ntfy", "",
		"topic of an ntfy server, such as https://ntfy.sh/TOPIC, for notifications on telephones")
	f.StringVar(&r.ntfyToken, "ntfy-token", "", "file with an access token of ntfy")
	f.BoolVar(&r.ntfyFaces, "ntfy-faces", false, "attach a picture of each unknown person")
	f.StringSliceVar(&r.quiet, "quiet-about", nil,
		"name of a person about whom nothing is sent to webhook, MQTT and ntfy")
	f.BoolVar(&r.webhookFaces, "webhook-faces", false,
		"send a picture of each unknown person to the webhook")
}

func (r *outputFlags) sinks() bool { return r.webhook != "" || r.broker.URL != "" || r.ntfy != "" }

// open starts the page and the sinks of an office, until end is called. Later errors go to cancel.
func (r *outputFlags) open(ctx context.Context, c *cobra.Command, w *office.Office,
	past *office.Past,
	cancel context.CancelCauseFunc) (end func(), err error) {
	if _, err := strconv.Atoi(r.address); err == nil {
		r.address = "127.0.0.1:" + r.address
	}
	link, err := r.link()
	if err != nil {
		return nil, cli.Fail(cli.BadUsage, err)
	}
	group := sink.NewGroup(ctx, past, func(err error) { cancel(err) })
	group.Changed = func(name string, err error) {
		if err != nil {
			cli.Note(c, fmt.Sprintf("%s: %v; it is tried again", name, err))
		} else {
			cli.Note(c, name+": delivery resumed")
		}
	}
	group.Shot, group.Quiet = w.Shot, r.quiet
	if link != "" {
		group.Link = link + "/#inbox"
	}
	var broker io.Closer
	over := func() {
		group.Close()
		for _, s := range group.Status() {
			if s.Waiting > 0 {
				cli.Note(c, fmt.Sprintf("%s: %s not delivered yet; the next start tries it again",
					s.Name, cli.Count(s.Waiting, "event")))
			}
		}
		if broker != nil {
			broker.Close()
		}
	}
	defer func() {
		if err != nil {
			over()
		}
	}()
	broker, err = r.deliver(group, w, past, link)
	if err != nil {
		return nil, cli.Fail(cli.BadUsage, err)
	}
	if r.address == "" {
		if r.token+r.lookToken+r.cert+r.key+r.page.Base+r.url != "" ||
			len(r.page.Frames)+len(r.proxies)+len(r.page.Look.Cameras) > 0 {
			return nil, cli.Fail(cli.BadUsage,
				errors.New("--token, --look-token, --look-camera, --tls-cert, --tls-key, "+
					"--page-base, --page-url, "+
					"--page-frame and --page-proxy are for --page"))
		}
		return over, nil
	}
	return over, r.show(c, w, group)
}

// show serves the page.
func (r *outputFlags) show(c *cobra.Command, w *office.Office, group *sink.Group) error {
	token, err := config.Secret(r.token, r.inline.Token)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	shown := r.page
	shown.Look.Token, err = config.Secret(r.lookToken, r.inline.LookToken)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	shown.Proxies, err = page.Proxies(r.proxies)
	if err != nil {
		return cli.Fail(cli.BadUsage, fmt.Errorf("--page-proxy %w", err))
	}
	shown.Token, shown.Sinks = token, group.Status
	p, err := page.New(w, shown)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	var certificates []tls.Certificate
	scheme := "http"
	if r.cert != "" || r.key != "" {
		pair, err := tls.LoadX509KeyPair(r.cert, r.key)
		if err != nil {
			return cli.Fail(cli.BadUsage, fmt.Errorf("the certificate of the page: %w", err))
		}
		certificates, scheme = append(certificates, pair), "https"
	}
	l, err := p.Listen(r.address)
	if err != nil {
		return cli.Fail(cli.BadUsage, err)
	}
	cli.Note(c, fmt.Sprintf("the page is at %s://%s%s/", scheme, l.Addr(), r.page.Base))
	if token != "" && scheme == "http" && !strings.HasPrefix(l.Addr().String(), "127.") {
		cli.Warn(c,
			"the page is not encrypted: who listens on the network reads the token; use "+
				"--tls-cert and --tls-key, or a proxy")
	}
	group.Go(func(ctx context.Context) error { return p.Serve(ctx, l, certificates) })
	return nil
}

// link returns the address of the page for people, without a slash at its end; "" behind a proxy,
// whose address nobody has named.
func (r *outputFlags) link() (string, error) {
	host, _ := os.Hostname() // a name for people; it may be empty
	if u, err := url.Parse(r.url); r.url != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https") {
		return "", fmt.Errorf("--page-url %q is no address of a page; use for example "+
			"https://home.example/faceauth", r.url)
	}
	link := strings.TrimSuffix(r.url, "/")
	if link == "" && len(r.proxies) == 0 { // behind a proxy, people use its address
		link = page.URL(r.address, r.page.Base, host, r.cert != "")
	}
	return link, nil
}

// deliver lets the group deliver to the webhook, to ntfy and to the broker. The caller closes the
// connection to the broker; nil is none.
func (r *outputFlags) deliver(group *sink.Group, w *office.Office, past *office.Past,
	link string) (broker io.Closer, err error) {
	if r.webhook != "" {
		key, err := config.Secret(r.webhookSecret, r.inline.WebhookSecret)
		if err != nil {
			return nil, err
		}
		hook, err := sink.NewWebhook(r.webhook, []byte(key))
		if err != nil {
			return nil, err
		}
		_, deliver := group.Reserve("webhook", r.webhookFaces)
		deliver(hook)
	}
	if r.ntfy != "" {
		token, err := config.Secret(r.ntfyToken, r.inline.NtfyToken)
		if err != nil {
			return nil, err
		}
		n, err := sink.NewNtfy(r.ntfy, token)
		if err != nil {
			return nil, err
		}
		_, deliver := group.Reserve("ntfy", r.ntfyFaces)
		deliver(n)
	}
	if r.broker.URL != "" {
		password, err := config.Secret(r.mqttPassword, r.inline.MQTTPassword)
		if err != nil {
			return nil, err
		}
		report, deliver := group.Reserve("mqtt", r.broker.Faces)
		b := r.broker
		b.Password, b.Instance, b.Name, b.Version = password, past.ID(), "faceauth "+past.Name(),
			version.Version
		b.Page, b.Failed, b.Face = link, report, w.Face
		b.Now = func() office.Now { return group.Now(w.Now()) }
		m, err := sink.NewMQTT(b)
		if err != nil {
			return nil, err
		}
		deliver(m)
		broker = m
	}
	return broker, nil
}
