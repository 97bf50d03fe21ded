// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// newClient returns a client that follows no redirection: only the receiver that the user named may
// learn where people are.
func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// deliver sends a request to a receiver. Any answer but 2xx is an error.
func deliver(c *http.Client, r *http.Request, receiver string) error {
	r.Header.Set("User-Agent", "faceauth")
	answer, err := c.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // without the URL
			err = of.Err
		}
		return fmt.Errorf("%s does not answer: %w", receiver, err)
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection can be reused
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", receiver, answer.Status)
	}
	return nil
}
