// SPDX-License-Identifier: Apache-2.0

package facedet

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/input"
)

func openURL(ctx context.Context, name, scheme string, o Options) (Source, error) {
	u, err := url.Parse(name)
	shown := input.Shown(name)
	if !slices.Contains(input.Schemes, strings.ToLower(scheme)) {
		return nil, fmt.Errorf("opening source %s: %w; use http, https, rtsp or rtsps", shown,
			face.ErrScheme)
	}
	if err != nil {
		var parse *url.Error // it holds the URL, perhaps with a password
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return nil, fmt.Errorf("opening source: not a valid URL: %w", err)
	}
	var host, served string // if the URL has the address in their place
	if o.Address != "" && strings.HasPrefix(strings.ToLower(scheme), "http") {
		host, served = u.Host, u.Hostname()
	}
	if o.Address != "" {
		port := u.Port()
		u.Host = o.Address
		if strings.Contains(o.Address, ":") {
			u.Host = "[" + o.Address + "]"
		}
		if port != "" {
			u.Host += ":" + port
		}
		name = u.String()
	}
	s, err := openCapture(ctx, o, true, func() (grabber, error) {
		return cv.OpenFilm(name, host, served, o.Timeout)
	})
	if err != nil {
		return nil, fmt.Errorf("opening source %s: %w", shown, err)
	}
	return s, nil
}
