// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
)

// append repeats an append until the entry is stored, as a device does.
func appendAll(t testing.TB, ctx context.Context, c *hub.Conn, name string, n int, between func()) {
	for i := range n {
		for {
			try, cancel := context.WithTimeout(ctx, 3*time.Second)
			err := c.Append(try, "", fmt.Appendf(nil, "%s-%d.", name, i))
			cancel()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Errorf("%s: entry %d: %v", name, i, err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		between()
	}
}

// once fails if an entry is missing, or out of its author's order.
func once(t testing.TB, read []string, authors []string, n int) {
	t.Helper()
	next := make(map[string]int)
	for _, line := range read {
		_, what, _ := strings.Cut(line, " ")
		author, number, ok := strings.Cut(strings.TrimSuffix(what, "."), "-")
		if !ok || !slices.Contains(authors, author) {
			continue
		}
		if number != fmt.Sprint(next[author]) {
			t.Fatalf("after entry %d of %s comes %s", next[author]-1, author, number)
		}
		next[author]++
	}
	for _, a := range authors {
		if next[a] != n {
			t.Errorf("of %s there are %d entries, want %d", a, next[a], n)
		}
	}
}

// The server is killed at random moments, many times, while devices append. No entry that was reported as stored is
// lost, and all devices read one order.
func TestServerKilled(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := startChild(t, childConfig{Folder: filepath.Join(t.TempDir(), "server"), Listen: "127.0.0.1:0"})
	a := admin(t, c.config.Folder)
	authors := []string{"alpha", "beta", "gamma"}
	var conns []*hub.Conn
	var readers []*reader
	for _, name := range authors {
		_, conn := joined(t, a, name)
		isUp(t, conn)
		conns, readers = append(conns, conn), append(readers, follow(t, conn))
	}
	ctx := within(t, 2*time.Minute)
	stop := make(chan struct{})
	var work, killing sync.WaitGroup
	killing.Go(func() {
		for range rounds {
			time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
			c.kill()
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			c = c.again(t)
		}
		close(stop)
	})
	counts := make([]int, len(conns))
	for i, conn := range conns {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id := counts[i]
				for {
					try, cancel := context.WithTimeout(ctx, 2*time.Second)
					err := conn.Append(try, "",
						fmt.Appendf(nil, "%s-%d.", authors[i], id))

					cancel()
					if err == nil {
						break
					}
					if ctx.Err() != nil {
						t.Error(err)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
				counts[i]++
			}
		})
	}
	killing.Wait()
	work.Wait()
	total := counts[0] + counts[1] + counts[2]
	t.Logf("%d kills, %d entries", rounds, total)
	if total < rounds {
		t.Errorf("only %d entries were stored", total)
	}
	for i, rd := range readers {
		eventually(t, "all entries", func() bool { return len(rd.all()) >= total+3 })
		for n, author := range authors {
			once(t, rd.all(), []string{author}, counts[n])
		}
		if i > 0 && !slices.Equal(rd.all(), readers[0].all()) {
			t.Errorf("reader %d has another order", i)
		}
	}
}

// Garbage on the subjects that a device may use stops neither the server nor another device.
func TestGarbage(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	_, door := joined(t, a, "door")
	isUp(t, door)
	bad, hall := joined(t, a, "hall")
	isUp(t, hall)
	r := follow(t, door)
	key := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		garbage := make([]byte, key.IntN(3000))
		for i := range garbage {
			garbage[i] = byte(key.Uint32())
		}
		if err := hall.Append(within(t, 10*time.Second), "", garbage); err != nil {
			t.Fatal(err)
		}
		if _, err := hall.AskKeys(within(t, time.Second), "", garbage); !errors.Is(err, fleet.ErrNoAnswer) {
			t.Errorf("keys: %v", err)
		}
	}
	eventually(t, "what others say", func() bool { return len(r.all()) == 62 })
	eventually(t, "the device that says it in the list", func() bool {
		all, err := a.Devices(within(t, 5*time.Second))
		return err == nil && len(all) == 2 && all[1].ID == bad.ID
	})
	if _, err := a.Revoke(within(t, 10*time.Second), "hall"); err != nil {
		t.Error(err)
	}
	// Bytes of a stranger on the socket do not end the server either.
	for range 20 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "tls://"))
		if err != nil {
			t.Fatal(err)
		}
		c.Write(bytes.Repeat([]byte("CONNECT {}\r\nPUB a 5\r\nxxxxx\r\n"), 10))
		c.Close()
	}
	if err := door.Append(within(t, 10*time.Second), "", []byte("x")); err != nil {
		t.Error(err)
	}
}

// A device catches up over a connection that is cut again and again.
func TestCutWhileCatchingUp(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	near := h.device(t)
	isUp(t, near)
	const entries = 1500
	appendAll(t, within(t, time.Minute), near, "near", entries, func() {})
	p := newProxy(t, h.Address())
	key, id := deviceKey(t)
	h.devices = append(h.devices, id)
	h.Admit(h.devices)
	far := h.connect(t, p.url(), key)
	r := follow(t, far)
	for range 6 {
		before := len(r.all())
		eventually(t, "some entries", func() bool { return len(r.all()) > before || len(r.all()) == entries })
		p.set(true)
		time.Sleep(30 * time.Millisecond)
		p.set(false)
	}
	eventually(t, "all entries", func() bool { return len(r.all()) >= entries })
	once(t, r.all(), []string{"near"}, entries)
}

// smallDisk mounts a file system of 24 MB.
func smallDisk(t testing.TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a small file system is mounted, which only root can do")
	}
	dir := t.TempDir()
	if err := unix.Mount("faceauth", dir, "tmpfs", 0, "size=24m,mode=0700"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// While the disk is nearly full the server refuses every entry with an error that says so. It takes entries again when
// there is space.
func TestDiskNearlyFull(t *testing.T) {
	dir := smallDisk(t)
	s := serve(t, hub.Options{Folder: filepath.Join(dir, "server")})
	_, c := joined(t, admin(t, s.folder), "door")
	isUp(t, c)
	n := 0
	put := func() error {
		n++
		return c.Append(within(t, 3*time.Second), "", make([]byte, 1000))
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 21<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a refusal", func() bool { return errors.Is(put(), hub.ErrFull) })
	if err := put(); !errors.Is(err, hub.ErrFull) {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room", func() bool { return put() == nil })
}

// A disk that fills up suddenly ends the server with an error that says so. After a restart, every entry that it had
// stored is there.
func TestDiskFull(t *testing.T) {
	dir := smallDisk(t)
	c := startChild(t,
		childConfig{Folder: filepath.Join(dir, "server"), Listen: "127.0.0.1:0", Limits: hub.Limits{Disk: 1 << 30}})
	_, conn := joined(t, admin(t, c.config.Folder), "door")
	isUp(t, conn)
	ballast := filepath.Join(dir, "ballast")
	put := func(n int) error {
		return conn.Append(within(t, 3*time.Second), "", bytes.Repeat([]byte{byte(n)}, 200_000))
	}
	stored, failed := 0, 0
	for n := range 20 {
		if err := put(n); err != nil {
			t.Fatal(err)
		}
		stored++
	}
	// From now on there is no space for another entry.
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	f.Close()
	for n := 20; n < 25; n++ {
		if err := put(n); err == nil {
			stored++
		} else {
			failed++
		}
	}
	if failed == 0 {
		t.Fatal("the disk is not full")
	}
	ended := make(chan error, 1)
	go func() { ended <- c.cmd.Wait() }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(c.said.String(), "check the disk") {
			t.Errorf("it ended with %v: %s", err, c.said)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server goes on, and can store nothing")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c = c.again(t)
	eventually(t, "the connection", func() bool { return conn.Err() == nil })
	if err := conn.Append(within(t, 20*time.Second), "", []byte("after")); err != nil {
		t.Fatal(err)
	}
	r := follow(t, conn)
	eventually(t, "what was stored", func() bool {
		all := r.all()
		return len(all) > 0 && strings.HasSuffix(all[len(all)-1], "after")
	})
	if n := len(r.all()) - 2; n < stored || n > stored+failed {
		t.Errorf("%d entries; %d were stored, and %d failed", n, stored, failed)
	}
}

// The snapshot is larger than the part that the server sends before it waits for an acknowledgement.
func TestLargeSnapshot(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	data := make([]byte, 40<<20)
	if err := hub.PutSnapshot(within(t, 30*time.Second), h.bucket, h.admin, h.fleet, 7, data); err != nil {
		t.Fatal(err)
	}
	c := h.device(t)
	isUp(t, c)
	seq, body, err := c.Snapshot(within(t, 30*time.Second))
	if err != nil || seq != 7 {
		t.Fatalf("snapshot of %d, %v", seq, err)
	}
	body.Close()
}

// A snapshot with a flipped bit is refused, and so is one that somebody else signed.
func TestBadSnapshot(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	c := h.device(t)
	isUp(t, c)
	if _, _, err := c.Snapshot(within(t, 5*time.Second)); !errors.Is(err, fleet.ErrNoSnapshot) {
		t.Errorf("none: %v", err)
	}
	data := make([]byte, 300_000)
	if err := hub.PutSnapshot(within(t, 10*time.Second), h.bucket, h.admin, h.fleet, 7, data); err != nil {
		t.Fatal(err)
	}
	seq, body, err := c.Snapshot(within(t, 10*time.Second))
	if err != nil || seq != 7 {
		t.Fatalf("snapshot of %d, %v", seq, err)
	}
	body.Close()
	other, _ := fleetKey(t)
	if err := hub.PutSnapshot(within(t, 10*time.Second), h.bucket, other, h.fleet, 7, data); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Snapshot(within(t, 10*time.Second)); !errors.Is(err, hub.ErrSnapshot) {
		t.Errorf("another key: %v", err)
	}
	// The bytes of one snapshot with the metadata of another.
	if err := hub.PutSnapshot(within(t, 10*time.Second), h.bucket, h.admin, h.fleet, 7, data); err != nil {
		t.Fatal(err)
	}
	info, err := h.bucket.GetInfo(within(t, 5*time.Second), "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	data[12345] ^= 1
	if _, err := h.bucket.Put(within(t, 10*time.Second),
		jetstream.ObjectMeta{Name: "snapshot", Metadata: info.Metadata}, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Snapshot(within(t, 10*time.Second)); !errors.Is(err, hub.ErrSnapshot) {
		t.Errorf("a flipped bit: %v", err)
	}
	// A snapshot of an earlier place, as a backup would have it.
	info.Metadata["seq"] = "6"
	data[12345] ^= 1
	if _, err := h.bucket.Put(within(t, 10*time.Second),
		jetstream.ObjectMeta{Name: "snapshot", Metadata: info.Metadata}, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Snapshot(within(t, 10*time.Second)); !errors.Is(err, hub.ErrSnapshot) {
		t.Errorf("another place: %v", err)
	}
}

// A device that has read further than the log reaches reports it: the server was put back from a backup.
func TestRewound(t *testing.T) {
	h := newHouse(t, hub.Limits{})
	c := h.device(t)
	isUp(t, c)
	if err := c.Follow(within(t, 5*time.Second), 10, nil); !errors.Is(err, hub.ErrRewound) {
		t.Errorf("error %v", err)
	}
}

// natsServer returns Debian's NATS server.
func natsServer(t testing.TB) string {
	for _, p := range []string{"nats-server", "/usr/sbin/nats-server"} {
		if path, err := exec.LookPath(p); err == nil {
			return path
		}
	}
	t.Skip("there is no nats-server; install Debian's package nats-server (make setup-test)")
	return ""
}

// clusterNode is one of the three servers of a cluster, each Debian's NATS server.
type clusterNode struct {
	program, config, url string
	cmd                  *exec.Cmd
	log                  *os.File
}

func (n *clusterNode) start(t testing.TB) {
	t.Helper()
	n.cmd = exec.Command(n.program, "-c", n.config)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

func (n *clusterNode) kill() {
	if n.cmd.ProcessState == nil {
		n.cmd.Process.Kill()
		n.cmd.Wait()
	}
}

// ports returns free TCP ports.
func ports(t testing.TB, n int) []int {
	t.Helper()
	var all []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all = append(all, l.Addr().(*net.TCPAddr).Port)
	}
	return all
}

// newCluster starts three of Debian's NATS servers with JetStream, one account, and passwords.
func newCluster(t testing.TB) (nodes []*clusterNode, url string) {
	t.Helper()
	program, p := natsServer(t), ports(t, 6)
	var routes, urls []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", p[3+i]))
	}
	for i := range 3 {
		dir := t.TempDir()
		config := fmt.Sprintf(`
server_name: n%d
listen: "127.0.0.1:%d"
jetstream { store_dir: %q, max_mem: 64MB, max_file: 1GB }
cluster { name: test, listen: "127.0.0.1:%d", routes: [%s] }
accounts {
  FLEET: { jetstream: enabled, users: [ {user: service, password: made-up}, {user: device, password: made-up} ] }
  SYS: { users: [ {user: sys, password: made-up} ] }
}
system_account: SYS
`, i, p[i], dir, p[3+i], strings.Join(routes, ", "))
		path := filepath.Join(dir, "nats.conf")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		n := &clusterNode{program: program, config: path, url: fmt.Sprintf("nats://127.0.0.1:%d", p[i]), log: log}
		n.start(t)
		t.Cleanup(func() { n.kill(); log.Close() })
		nodes, urls = append(nodes, n), append(urls, n.url)
	}
	return nodes, strings.Join(urls, ",")
}

// ready waits until the cluster has elected a leader for streams.
func clusterReady(t testing.TB, url, creds string) {
	t.Helper()
	login, err := hub.Creds(creds)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a cluster with a leader", func() bool {
		nc, err := hub.Dial(within(t, 5*time.Second), url, login)
		if err != nil {
			return false
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			return false
		}
		_, err = js.CreateOrUpdateStream(within(t, 5*time.Second),
			jetstream.StreamConfig{Name: "probe", Subjects: []string{"probe"}, Replicas: 3})
		if err == nil {
			js.DeleteStream(within(t, 5*time.Second), "probe")
		}
		return err == nil
	})
}

func credsFile(t testing.TB, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), user)
	if err := os.WriteFile(path, []byte(user+":made-up\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A fleet uses a cluster of Debian's NATS servers. Each server is killed in turn while entries are appended. No entry
// is lost, and all devices read one order.
func TestCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers are killed in turn")
	}
	nodes, url := newCluster(t)
	creds := credsFile(t, "service")
	clusterReady(t, url, creds)
	s := serve(t, hub.Options{Cluster: url, Creds: creds, Replicas: 3, Limits: hub.Limits{Disk: 512 << 20}})
	a := admin(t, s.folder)
	authors := []string{"alpha", "beta", "gamma"}
	var conns []*hub.Conn
	var readers []*reader
	for _, name := range authors {
		m, err := hub.Join(within(t, 20*time.Second), filepath.Join(t.TempDir(), name), invite(t, a),
			hub.Joining{Name: name, Creds: credsFile(t, "device")})
		if err != nil {
			t.Fatal(err)
		}
		c := open(t, m)
		isUp(t, c)
		conns, readers = append(conns, c), append(readers, follow(t, c))
	}
	ctx := within(t, 4*time.Minute)
	const each = 300
	var work sync.WaitGroup
	for i, c := range conns {
		work.Go(func() {
			appendAll(t, ctx, c, authors[i], each, func() { time.Sleep(40 * time.Millisecond) })
		})
	}
	for round := range 3 {
		time.Sleep(2 * time.Second)
		n := nodes[round]
		n.kill()
		time.Sleep(2 * time.Second)
		n.start(t)
		eventually(t, "the server's return", func() bool {
			nc, err := nats.Connect(n.url, nats.UserInfo("service", "made-up"))
			if err == nil {
				nc.Close()
			}
			return err == nil
		})
		time.Sleep(2 * time.Second) // the server joins the cluster again
	}
	work.Wait()
	for i, r := range readers {
		for end := time.Now().Add(60 * time.Second); len(r.all()) < 3*each+3 &&
			time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		}
		once(t, r.all(), authors, each)
		if i > 0 && !slices.Equal(r.all(), readers[0].all()) {
			t.Errorf("%s reads another order", authors[i])
		}
		if n := len(r.all()); n != 3*each+3 {
			t.Errorf("%s has read %d entries, want %d: %v", authors[i], n, 3*each+3, r.errs)
		}
	}
	a = admin(t, s.folder) // the earlier connection went to a server that was killed
	all, err := a.Devices(within(t, 10*time.Second))
	if err != nil || len(all) != 3 {
		t.Errorf("%d devices, %v", len(all), err)
	}
	if _, err := a.Revoke(within(t, 20*time.Second), "beta"); err != nil {
		t.Error(err)
	}
}
