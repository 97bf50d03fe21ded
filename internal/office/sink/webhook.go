// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrURL is wrapped by the errors of [NewWebhook] and [NewMQTT] for an address that cannot be used.
var ErrURL = errors.New("unusable address")

// ErrSecret is wrapped by the error of [NewWebhook] for a secret that is too short or is not
// base64.
var ErrSecret = errors.New("unusable secret")

// leastSecret is the least length of a secret in bytes; the Standard Webhooks specification
// requires it.
const leastSecret = 24

// Webhook posts events as JSON to a URL, as in the Standard Webhooks specification 1.0
// (https://www.standardwebhooks.com): webhook-id is the same for each try of an event.
// webhook-signature is "v1," and the base64 of the HMAC-SHA256 of the id, the time in
// webhook-timestamp and the body, with dots between them. [NewWebhook] makes one.
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
	now    func() time.Time
}

var _ Sink = (*Webhook)(nil)

// NewWebhook returns a webhook for an http or https URL. The secret signs requests: "whsec_" and
// the base64 of at least 24 bytes, or the base64 alone, as the libraries of Standard Webhooks take
// it. Without a secret, requests are not signed. The error wraps [ErrURL] or [ErrSecret].
func NewWebhook(address string, secret []byte) (*Webhook, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// The error does not show the URL, which may contain a token.
		return nil, fmt.Errorf("%w of a webhook; give one that begins with http:// or https://",
			ErrURL)
	}
	secret, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(string(secret), "whsec_"))
	if err != nil {
		return nil, fmt.Errorf("%w: it is not base64, as receivers expect; make one by: "+
			"echo whsec_$(openssl rand -base64 32)", ErrSecret)
	}
	if n := len(secret); n > 0 && n < leastSecret {
		return nil, fmt.Errorf("%w: it has %d bytes; use at least %d", ErrSecret, n, leastSecret)
	}
	return &Webhook{url: address, secret: secret, now: time.Now, client: newClient()}, nil
}

// Send implements [Sink]. Any answer but 2xx is an error.
func (w *Webhook) Send(ctx context.Context, m Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the webhook's URL cannot be used")
	}
	id, at := Name(m), strconv.FormatInt(w.now().Unix(), 10)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("webhook-id", id)
	r.Header.Set("webhook-timestamp", at)
	if len(w.secret) > 0 {
		mac := hmac.New(sha256.New, w.secret)
		fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
		r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return deliver(w.client, r, "the webhook")
}

// Name returns the name of a message that stays unique if the events are deleted and numbers begin
// again.
func Name(m Message) string {
	name := fmt.Sprintf("%d-%d", m.ID, m.At.Unix())
	if m.Better {
		name += "-better"
	}
	return name
}
