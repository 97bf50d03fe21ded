// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/faceauth/faceauth/internal/broker"
	"github.com/faceauth/faceauth/internal/fixture"
)

func TestAt(t *testing.T) {
	u, _ := url.Parse("mqtt://me:hidden@[::1]")
	for tls, port := range map[bool]string{false: "1883", true: "8883"} {
		want := broker.Address{Host: "[::1]:" + port, TLS: tls, User: "me", Password: "hidden"}
		if a := broker.At(u, tls); a != want {
			t.Errorf("%+v", a)
		}
	}
}

func TestSystemDial(t *testing.T) {
	b := fixture.NewBroker(t)
	at := broker.Address{Host: b.Address}
	if _, _, err := broker.Dial(t.Context(), at, mqtt.NewClientOptions()); err == nil ||
		!strings.Contains(err.Error(), "refused") {
		t.Errorf("without a broker: %v", err)
	}
	b.Start()
	c, lost, err := broker.Dial(t.Context(), at, mqtt.NewClientOptions())
	fixture.Check(t, err)
	got := make(chan int, 2)
	c.Subscribe("#", 1, func(_ mqtt.Client, m mqtt.Message) { got <- len(m.Payload()) }).Wait()
	for _, size := range []int{0, 1, 127, 128, 16384, 1<<20 - 100} {
		c.Publish("a", 1, false, make([]byte, size)).Wait()
		select {
		case n := <-got:
			if n != size {
				t.Fatalf("%d bytes came of %d", n, size)
			}
		case <-time.After(time.Minute):
			t.Fatalf("a message of %d bytes did not come", size)
		}
	}
	c.Publish("a", 1, false, make([]byte, 1<<20))
	select {
	case err := <-lost:
		if !strings.Contains(err.Error(), "more than 1048576 bytes") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("a message that is too large was taken")
	}
}

// A server that says nothing does not hold the program.
func TestDialSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fixture.Check(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/5)
	defer cancel()
	_, _, err = broker.Dial(ctx, broker.Address{Host: l.Addr().String()}, mqtt.NewClientOptions())
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
