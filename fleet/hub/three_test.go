// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestNATS is a NATS server of [TestThreeServers], in a process of its own.
func TestNATS(t *testing.T) {
	file := os.Getenv("FACEAUTH_TEST_NATS")
	if file == "" {
		t.Skip("it is a part of TestThreeServers")
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	n.WaitForShutdown()
}

// Three servers of a cluster are killed in turn while devices say things: with the NATS of this program, and with that
// of Debian 12. Nothing is lost, and a device that joins later gets all.
func TestThreeServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute for each version")
	}
	this := func(file string) *exec.Cmd {
		c := exec.Command(os.Args[0], "-test.run", "^TestNATS$")
		c.Env = append(os.Environ(), "FACEAUTH_TEST_NATS="+file)
		return c
	}
	t.Run(server.VERSION, func(t *testing.T) { threeServers(t, this) })
	t.Run("debian", func(t *testing.T) {
		path, err := exec.LookPath("nats-server")
		if err != nil {
			fixture.Missing(t, "nats-server is not installed (%v); run: sudo apt-get install nats-server", err)
		}
		threeServers(t, func(file string) *exec.Cmd { return exec.Command(path, "-c", file) })
	})
}

func threeServers(t *testing.T, run func(file string) *exec.Cmd) {
	const servers = 3
	var urls, routes, ports []string
	var commands [servers]*exec.Cmd
	for range servers {
		address, route := freeAddress(t), freeAddress(t)
		ports, urls, routes = append(ports, address), append(urls, "nats://"+address), append(routes, route)
	}
	dir := t.TempDir()
	start := func(i int) {
		commands[i] = run(filepath.Join(dir, fmt.Sprint(i)))
		if err := commands[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func(i int) {
		commands[i].Process.Kill()
		commands[i].Wait()
	}
	for i := range servers {
		text := fmt.Sprintf("server_name: n%d\nlisten: %q\njetstream { store_dir: %q }\n"+
			"cluster { name: fleet, listen: %q, routes: [%q, %q] }\n",
			i, ports[i], filepath.Join(dir, fmt.Sprint("store", i)), routes[i],
			"nats-route://"+routes[(i+1)%servers], "nats-route://"+routes[(i+2)%servers])
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		start(i)
		defer func() { kill(i) }()
	}
	url := strings.Join(urls, ",")
	until(t, "the servers listen", func() bool {
		c, err := net.Dial("tcp", ports[0])
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(do func(context.Context) bool) func() bool {
		return func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return do(ctx)
		}
	}
	until(t, "the cluster stores", ask(func(ctx context.Context) bool {
		_, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "try", Replicas: servers})
		return err == nil
	}))
	x := newSiteAt(t, url)
	x.options.Cluster, x.options.Replicas = url, servers
	x.creds = filepath.Join(dir, "creds")
	if err := os.WriteFile(x.creds, []byte("user:password"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.start()
	all := []*member{x.join("one"), x.join("two")}
	agree(t, all...)
	said := make(map[fleet.ID]fleet.FaceID)
	number := 0
	say := func() {
		for range 10 {
			for _, m := range all {
				number++
				v := []float32{float32(number), 1}
				id, err := m.d.Enroll(fmt.Sprint("p", number), "space", []fleet.Face{{Vector: v}})
				if err != nil {
					t.Fatal(err)
				}
				said[id] = fleet.NewFaceID("space", v)
			}
		}
	}
	for i := range servers {
		say()
		kill(i)
		say()
		agree(t, all...)
		start(i)
		for _, of := range []string{fleet.AdminWriter, all[0].d.ID(), all[1].d.ID()} {
			until(t, "the killed server has all again", ask(func(ctx context.Context) bool {
				s, err := js.Stream(ctx, fleet.StreamOf(of))
				if err != nil {
					return false
				}
				c := s.CachedInfo().Cluster
				current := 0
				for _, r := range c.Replicas {
					if r.Current && !r.Offline {
						current++
					}
				}
				return c.Leader != "" && current == servers-1
			}))
		}
	}
	all = append(all, x.join("three"))
	agree(t, all...)
	for id, face := range said {
		if p, _ := all[2].d.Person(id); len(p.Faces) != 1 || p.Faces[0].ID != face {
			t.Errorf("%s is lost: %+v", id, p)
		}
	}
}
