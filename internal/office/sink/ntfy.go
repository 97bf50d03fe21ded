// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/faceauth/faceauth/internal/office/presence"
)

// Ntfy sends notifications to a topic of an ntfy server, for people: arrivals, departures and
// unknown people, by its documented requests (https://docs.ntfy.sh/publish, of version 2). A
// picture is the attachment, and the link what a click opens. [NewNtfy] makes one.
type Ntfy struct {
	at     *url.URL
	token  string
	client *http.Client
}

var _ Sink = (*Ntfy)(nil)

// NewNtfy returns a sink for the URL of a topic, such as https://ntfy.sh/TOPIC; token is an access
// token of ntfy, or "". The error wraps [ErrURL].
func NewNtfy(address, token string) (*Ntfy, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" ||
		u.RawQuery != "" || strings.Trim(u.Path, "/") == "" {
		// who knows a topic can read it
		return nil, fmt.Errorf("%w of ntfy; give the address of a topic, such as https://ntfy.sh/TOPIC",
			ErrURL)
	}
	return &Ntfy{u, token, newClient()}, nil
}

// title says what has happened. A name stays as it is.
func title(e presence.Event) string {
	text := e.Words()
	if e.Name != "" && strings.HasPrefix(text, e.Name) {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Send implements [Sink]. An answer that says that ntfy takes no such message is an error, too: it
// is tried again. A better picture of somebody unknown is not worth a second notification.
func (n *Ntfy) Send(ctx context.Context, m Message) error {
	if m.Better {
		return nil
	}
	where := m.Camera
	if m.Zone != "" {
		where += ", " + m.Zone
	}
	text := where + ", " + m.At.Local().Format("15:04")
	// as parameters of the URL, which take any letter
	q := url.Values{"title": {title(m.Event)}}
	if m.Link != "" {
		q.Set("click", m.Link)
	}
	body := []byte(text)
	if m.Picture != nil {
		q.Set("message", text)
		q.Set("filename", "face.jpg")
		body = m.Picture
	}
	to := *n.at
	to.RawQuery = q.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the address of ntfy cannot be used")
	}
	if n.token != "" {
		r.Header.Set("Authorization", "Bearer "+n.token)
	}
	return deliver(n.client, r, "ntfy")
}
