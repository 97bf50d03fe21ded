// SPDX-License-Identifier: Apache-2.0

// Package broker connects to MQTT brokers.
package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// Address is where a broker is, and who connects there.
type Address struct {
	Host           string // with its port
	TLS            bool
	User, Password string
}

// At returns the address in a URL, with the usual port of MQTT as default.
func At(u *url.URL, tls bool) Address {
	port := "1883"
	if tls {
		port = "8883"
	}
	password, _ := u.User.Password()
	return Address{net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port)), tls, u.User.Username(),
		password}
}

// patience is the time limit for connecting and for writing.
const patience = 10 * time.Second

// Dial connects once, within ten seconds and unless ctx ends before. Lost gets the error that ends
// the connection. A broker that announces a message of more than 1 MiB ends it. The caller may put
// one error into lost, too.
func Dial(ctx context.Context, a Address,
	o *mqtt.ClientOptions) (c mqtt.Client, lost chan error, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it does not answer"))
	defer cancel()
	lost = make(chan error, 2)
	keep := func() bool { return true }
	c = mqtt.NewClient(o.AddBroker("tcp://" +
		a.Host).SetUsername(a.User).SetPassword(a.Password).SetCleanSession(true).
		SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(patience).SetWriteTimeout(
		patience).
		SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
			conn, err := a.dial(ctx)
			if err != nil {
				return nil, err
			}
			// the library waits for an answer without an end
			keep = context.AfterFunc(ctx, func() { conn.Close() })
			return &limited{Conn: conn}, nil
		}).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { lost <- err }))
	made := c.Connect()
	select {
	case <-made.Done():
		err = made.Error()
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil && !keep() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Disconnect(0)
	}
	return c, lost, err
}

func (a Address) dial(ctx context.Context) (net.Conn, error) {
	d := &net.Dialer{Timeout: patience}
	if a.TLS {
		return (&tls.Dialer{NetDialer: d}).DialContext(ctx, "tcp", a.Host)
	}
	return d.DialContext(ctx, "tcp", a.Host)
}

// mostPacket is the greatest size of a packet of a broker in bytes. The library takes memory for
// 256 MB as soon as a packet announces them.
const mostPacket = 1 << 20

// limited is a connection that fails at the head of a packet that is too large.
type limited struct {
	net.Conn
	left   int // bytes of the packet that were not read
	digits int // bytes of its head that were read
	length int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	for b := p[:n]; len(b) > 0; {
		if skip := min(l.left, len(b)); skip > 0 {
			l.left, b = l.left-skip, b[skip:]
			continue
		}
		// the first byte is the kind of the packet, and up to four bytes are its length
		if l.digits > 0 {
			l.length |= int(b[0]&127) << (7 * (l.digits - 1))
		}
		if l.digits++; l.digits > 1 && b[0] < 128 {
			l.left, l.length, l.digits = l.length, 0, 0
		}
		if size := max(l.left, l.length); size > mostPacket || l.digits > 5 {
			return 0, fmt.Errorf("the broker sent a message of more than %d bytes", mostPacket)
		}
		b = b[1:]
	}
	return n, err
}
