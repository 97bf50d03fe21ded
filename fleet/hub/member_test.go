// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
)

func TestToken(t *testing.T) {
	x := newSite(t).start()
	if err := x.stop(); err != nil { // after the second start nothing that was stored is in doubt
		t.Fatal(err)
	}
	x.start()
	a, b := x.newDevice(), x.newDevice()
	token := x.invite(time.Hour)
	for range 2 { // the answer was lost, and the device asks again
		if answer, err := a.join(token); answer != "" || err != nil {
			t.Fatal(answer, err)
		}
	}
	answer, err := b.join(token)
	const used = "this token was used already by another device; ask for a new one: faceauth fleet invite"
	if answer != used {
		t.Errorf("%q, %v", answer, err)
	}
	if err := b.connect(); err == nil {
		t.Error("B is let in by a used token")
	}
	answer, err = b.join(x.invite(-time.Minute))
	if !strings.HasPrefix(answer, "this token has expired ") {
		t.Errorf("%q, %v", answer, err)
	}
	if err := b.connect(); err == nil {
		t.Error("B is let in by an expired token, shown as its admission")
	}
	other, err := fleet.NewAdminKey(filepath.Join(t.TempDir(), "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Invite(x.url, fleet.Scope{All: true}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := b.join(foreign); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("a token of another fleet:", answer, err)
	}
	b.admission = nil
	if err := b.connect(); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("a key that nobody has invited:", err)
	}
	// A device that claims the id of another one.
	thief := x.newDevice()
	thief.id = a.id
	if answer, err := thief.join(x.invite(time.Hour)); answer != "" || err != nil {
		t.Error("the token names another device, and only its key can use it:", answer, err)
	}
	if err := thief.connect(); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("another key under a known id:", err)
	}
	if err := a.connect(); err != nil {
		t.Error(err)
	}
}

// Invitations are stored nowhere: they cost the server nothing.
func TestManyInvitations(t *testing.T) {
	x := newSite(t).start()
	size := func() (n int64) {
		filepath.WalkDir(filepath.Join(x.folder, "jetstream"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, err := d.Info(); err == nil {
					n += info.Size()
				}
			}
			return nil
		})
		return n
	}
	d := x.member()
	was := size()
	for i := range 1000 {
		token := x.invite(time.Hour)
		if i%20 == 0 { // and connections by them
			key := tokenKey(t, token)
			id, _ := key.PublicKey()
			a, err := token.Admit(d.id, "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			nc, err := x.dial(key, a)
			if err != nil {
				t.Fatal(err)
			}
			for _, subject := range []string{"F.say." + id + ".x", "F.give." + id, "$JS.API.DIRECT.GET.say_admin"} {
				if m, err := nc.Request(subject, a, 10*time.Millisecond); err == nil {
					t.Errorf("the bearer of a token uses %s: %s", subject, m.Data)
				}
			}
			nc.Close()
		}
	}
	if now := size(); now != was {
		t.Errorf("the server stores %d bytes, and stored %d before", now, was)
	}
}

func TestConnections(t *testing.T) {
	x := newSite(t).start()
	d := x.member()
	first := d.nc
	for range 4 {
		if err := d.connect(); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the fifth connection replaces the first", first.IsClosed)
	if err := d.say("x", "still here"); err != nil {
		t.Fatal(err)
	}
}

// A device that connects anew may not send more at once than one that stays.
func TestNewConnections(t *testing.T) {
	x := newSite(t).start()
	d := x.member()
	began := time.Now()
	for range 3 { // 18 MB, of which 8 are free, and each 2 more take a second
		for range 12 {
			if err := d.nc.Publish("F.at."+d.id, make([]byte, 500<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.nc.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		d.nc.Close()
		if err := d.connect(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("18 MB are sent in %v", took)
	}
}

func value(n int) string {
	type payload struct {
		N int `cbor:"1,keyasint"`
	}
	p, _ := cbor.Marshal(payload{n})
	b, _ := cbor.Marshal([]any{fleet.Version, p, []byte("a signature")})
	return string(b)
}

// countValues returns the number of a writer's values.
func countValues(t *testing.T, d *device, writer string) (n int) {
	t.Helper()
	for seq := uint64(1); ; n++ {
		m, err := d.nc.Request("$JS.API.DIRECT.GET.say_"+writer,
			fmt.Appendf(nil, `{"seq":%d,"next_by_subj":"F.say.%s.*"}`, seq, writer), patience)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get("Status") != "" {
			return n
		}
		if seq, err = strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64); err != nil {
			t.Fatal(err)
		}
		seq++
	}
}

func TestRevoke(t *testing.T) {
	x := newSite(t).start()
	a, b := x.member(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})), x.member()
	one, two, three := fmt.Sprintf("%032x", 1), fmt.Sprintf("%032x", 2), fmt.Sprintf("%032x", 3)
	for d, names := range map[*device][]string{a: {one, two, three, "*"}, b: {two}} {
		for i, name := range names {
			if err := d.say(name, value(10+i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	admin := x.admin()
	alone, err := admin.Alone(t.Context(), a.id)
	if err != nil || len(alone) != 2 || alone[one] != 10 || alone[three] != 12 {
		t.Fatal(alone, err)
	}
	delete(alone, three)
	began := time.Now()
	if id, err := admin.Revoke(t.Context(), "device "+a.id[:6], alone); err != nil || id != a.id {
		t.Fatal(id, err)
	}
	until(t, "A is cut off", a.nc.IsClosed)
	if d := time.Since(began); d > time.Second {
		t.Errorf("A is cut off after %v", d)
	}
	for _, name := range []string{one, two, three} {
		if got := b.read(a.id, name); (got != "") != (name == one) {
			t.Errorf("value %s of A: %q", name, got)
		}
	}
	if n := countValues(t, b, a.id); n != 1 { // the value with the name "*" is gone, too
		t.Errorf("%d values of A are left", n)
	}
	// It gets its revocation, and nothing else.
	if err := a.connect(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})); err != nil {
		t.Fatal(err)
	}
	record := []byte(a.read("admin", "r"+a.id))
	m := fleet.NewMembers(x.key.Fleet())
	if _, _, err := m.Add(record); err != nil || !m.Revoked(a.id) {
		t.Error("the revocation:", err)
	}
	for _, subject := range []string{"F.say." + a.id + ".x", "F.give." + a.id, "F.at." + a.id, "F.room." + a.id,
		"$JS.API.DIRECT.GET.say_" + b.id} {
		if m, err := a.nc.Request(subject, nil, 50*time.Millisecond); err == nil {
			t.Errorf("A uses %s: %s", subject, m.Data)
		}
	}
	if answer, err := a.join(x.invite(time.Hour)); !strings.HasPrefix(answer, "this device was revoked") {
		t.Error(answer, err)
	}
	// The same without kept values, and after a start.
	if _, err := admin.Revoke(t.Context(), b.id, nil); err != nil {
		t.Fatal(err)
	}
	until(t, "B is cut off", b.nc.IsClosed)
	if _, err := admin.Revoke(t.Context(), "nobody", nil); !errors.Is(err, hub.ErrDevice) {
		t.Error(err)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	x.start()
	c := x.member()
	if got := c.read(a.id, one) + c.read(b.id, two); got != value(10) {
		t.Errorf("after a start: %q", got)
	}
	if all, err := x.admin().Devices(t.Context()); err != nil || len(all) != 3 {
		t.Error(all, err)
	}
}

func TestQuota(t *testing.T) {
	x := newSite(t)
	x.options.Quota = 1 << 20
	x.start()
	a, b := x.member(), x.member()
	full := ""
	for i := range 100 {
		if err := a.say(fmt.Sprint("v", i), strings.Repeat("x", 100<<10)); err != nil {
			full = err.Error()
			break
		}
	}
	if !strings.Contains(full, "maximum bytes exceeded") {
		t.Fatalf("the quota: %q", full)
	}
	if err := a.say("v1", strings.Repeat("y", 100<<10)); err != nil {
		t.Error("an old value cannot be overwritten:", err)
	}
	if err := b.say("x", "has room"); err != nil {
		t.Error(err)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	x.options.Quota = 2 << 20
	x.start()
	if err := a.connect(); err != nil {
		t.Fatal(err)
	}
	if err := a.say("more", strings.Repeat("x", 100<<10)); err != nil {
		t.Error("with a larger quota:", err)
	}
}

// One device sends as much as it can. What another one enrols is known at a third within a second, no other device
// falls out of step or says what is wrong with it, and the server does not keep answers of gigabytes.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	x := newSite(t).start()
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
	a, office, other := x.member(quiet), x.join("office"), x.join("other")
	for i := range 50 {
		if err := a.say(fmt.Sprint("old", i), strings.Repeat("x", 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	agree(t, office, other)
	all := fmt.Appendf(nil, `{"seq":1,"batch":1000,"next_by_subj":"F.say.%s.>"}`, a.id)
	read := func(reply string) { a.nc.PublishRequest("$JS.API.DIRECT.GET.say_"+a.id, reply, all) }
	number := 0
	// delay returns the median of the times until a new person is known elsewhere, of three people at least.
	delay := func(t *testing.T) time.Duration {
		var delays []time.Duration
		for over := time.Now().Add(time.Second); len(delays) < 3 || time.Now().Before(over); {
			number++
			began := time.Now()
			id, err := office.d.Enroll(fmt.Sprint("p", number), "space",
				[]fleet.Face{{Vector: []float32{float32(number), 1}}})
			if err != nil {
				t.Fatal(err)
			}
			until(t, "the person is known", func() bool { p, _ := other.d.Person(id); return len(p.Faces) == 1 })
			delays = append(delays, time.Since(began))
		}
		slices.Sort(delays)
		t.Logf("%d people, median %v, worst %v", len(delays), delays[len(delays)/2], delays[len(delays)-1])
		return delays[len(delays)/2]
	}
	busy := 20 * delay(t) // others use this machine
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, send := range map[string]func(i int){
		"small values":         func(i int) { a.nc.Publish("F.say."+a.id+".one", make([]byte, 100)) },
		"large values":         func(i int) { a.nc.Publish("F.say."+a.id+".one", make([]byte, 200<<10)) },
		"new names":            func(i int) { a.nc.Publish(fmt.Sprint("F.say.", a.id, ".n", i), make([]byte, 1000)) },
		"records":              func(i int) { a.nc.Publish("F.give."+a.id, a.admission) },
		"readings":             func(int) { read(fleet.Inbox(a.id) + ".q") },
		"answers at a subject": func(int) { read("F.now." + office.d.ID() + "._box") },
		"answers at the room":  func(int) { read("F.room." + a.id) },
		"room":                 func(int) { a.nc.Publish("F.room."+a.id, make([]byte, 1000)) },
		"room, with replies":   func(int) { a.nc.PublishRequest("F.room."+a.id, fleet.Inbox(a.id)+".q", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			if a.nc.IsClosed() {
				if err := a.connect(quiet); err != nil {
					t.Fatal(err)
				}
			}
			var end atomic.Bool
			done := make(chan int)
			go func() {
				i := 0
				for ; !end.Load() && !a.nc.IsClosed(); i++ {
					send(i)
				}
				done <- i
			}()
			if median := delay(t); median > time.Second+busy {
				t.Errorf("a person is known after %v", median)
			}
			end.Store(true)
			a.nc.Close()
			t.Logf("%d messages", <-done)
			for _, m := range []*member{office, other} {
				if s := m.d.State(); s.Trouble != "" || s.Refused[office.d.ID()]+s.Refused[other.d.ID()] != "" {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	agree(t, office, other)
	if runtime.ReadMemStats(&after); after.HeapSys > before.HeapSys+1<<30 {
		t.Errorf("%d MB more memory", (after.HeapSys-before.HeapSys)>>20)
	}
}

// The disk is lost, and an old copy of the folder is put back: devices come in by their admission.
func TestOldCopy(t *testing.T) {
	x := newSite(t).start()
	a := x.member()
	if err := a.say("x", "old"); err != nil {
		t.Fatal(err)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(x.folder)); err != nil {
		t.Fatal(err)
	}
	x.start()
	b := x.member()
	late := x.newDevice() // its token will have expired
	if answer, err := late.join(x.invite(2 * time.Second)); answer != "" || err != nil {
		t.Fatal(answer, err)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	until(t, "the token expires", func() bool {
		_, _, expires, err := fleet.CheckAdmission(x.key.Fleet(), late.admission)
		return err == nil && time.Now().After(expires)
	})
	x.options.Folder, x.folder = copied, copied
	x.start()
	for _, d := range []*device{a, b, late} {
		if err := d.connect(); err != nil {
			t.Fatal(err)
		}
		until(t, "a value is stored", func() bool { return d.say("y", "new") == nil })
	}
	if all, err := x.admin().Devices(t.Context()); err != nil || len(all) != 3 {
		t.Error(all, err)
	}
	// Their records are stored again, and stay after a start.
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	if x.start(); x.ready.Devices != 3 {
		t.Error(x.ready)
	}
}

func TestBackup(t *testing.T) {
	x := newSite(t).start()
	a := x.member()
	names := []string{"x", "y", "a/b", "c%d", "\x01"}
	for _, name := range names {
		if err := a.say(name, "value of "+name); err != nil {
			t.Fatal(err)
		}
	}
	running, stopped := filepath.Join(t.TempDir(), "running.tar"), filepath.Join(t.TempDir(), "stopped.tar")
	if err := hub.Backup(t.Context(), x.folder, running); err != nil {
		t.Fatal(err)
	}
	if err := hub.Backup(t.Context(), x.folder, running); !errors.Is(err, fs.ErrExist) {
		t.Error("a backup is overwritten:", err)
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	if err := hub.Backup(t.Context(), x.folder, stopped); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{running, stopped} {
		info, err := os.Stat(file)
		data, err2 := os.ReadFile(file)
		if err != nil || err2 != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(data), "PRIVATE KEY") {
			t.Error(info.Mode(), err, err2)
		}
		y := *x
		y.folder = filepath.Join(t.TempDir(), "new")
		y.options.Folder = y.folder
		if err := hub.Restore(t.Context(), y.folder, file); err != nil {
			t.Fatal(err)
		}
		if err := hub.Restore(t.Context(), y.folder, file); err == nil {
			t.Error("it is restored into a full folder")
		}
		if err := hub.Serve(t.Context(), y.options); !errors.Is(err, hub.ErrFolder) {
			t.Error("without a certificate:", err)
		}
		address := freeAddress(t)
		y.options.Listen, y.url = address, "tls://"+address
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // records of addresses count seconds
		if err := hub.Move(t.Context(), y.folder, x.key, y.url); err != nil {
			t.Fatal(err)
		}
		if y.start(); y.ready.URL != y.url || y.ready.Devices != 1 {
			t.Error(y.ready)
		}
		b := *a
		b.x = &y
		if err := b.connect(); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if got := b.read(a.id, name); got != "value of "+name {
				t.Errorf("%q is %q", name, got)
			}
		}
		if err := y.stop(); err != nil {
			t.Error(err)
		}
	}
}

// The server takes another address while it runs, and shows another certificate.
func TestMove(t *testing.T) {
	x := newSite(t).start()
	d := x.member()
	live, err := d.nc.SubscribeSync("F.now.admin.address")
	if err != nil {
		t.Fatal(err)
	}
	d.nc.Flush()
	was, err := os.ReadFile(filepath.Join(x.folder, "server.crt"))
	if err != nil {
		t.Fatal(err)
	}
	url := "tls://other.example:4222"
	until(t, "a second has passed since the first address", func() bool {
		if err := hub.Move(t.Context(), x.folder, x.key, url); err != nil {
			t.Fatal(err)
		}
		_, err := live.NextMsg(10 * time.Millisecond)
		return err == nil
	})
	if got, err := hub.Address(x.folder); got != url || err != nil {
		t.Error(got, err)
	}
	now, err := os.ReadFile(filepath.Join(x.folder, "server.crt"))
	if err != nil || string(was) == string(now) {
		t.Error("the certificate is the old one:", err)
	}
	if err := d.connect(); err != nil {
		t.Error(err)
	}
}

func TestDamagedFolder(t *testing.T) {
	for file, data := range map[string]string{"fleet": "x", "address": "x", "server.crt": "x", "server.key": "",
		"jetstream": "a file"} {
		for _, missing := range []bool{true, false} {
			if missing && file == "jetstream" {
				continue
			}
			x := newSite(t)
			os.Remove(filepath.Join(x.folder, file))
			if !missing {
				if err := os.WriteFile(filepath.Join(x.folder, file), []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := hub.Serve(ctx, x.options)
			cancel()
			if err == nil || file != "jetstream" && !errors.Is(err, hub.ErrFolder) && !errors.Is(err, hub.ErrNoFleet) {
				t.Errorf("%s, missing %v: %v", file, missing, err)
			}
		}
	}
	x := newSite(t).start()
	if err := hub.Serve(t.Context(), x.options); !errors.Is(err, hub.ErrRunning) {
		t.Error("a second server:", err)
	}
	if err := hub.Create(x.folder, x.key, x.url); err == nil {
		t.Error("a fleet is made twice")
	}
	other, err := fleet.NewAdminKey(filepath.Join(t.TempDir(), "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.OpenAdmin(t.Context(), x.folder, other); !errors.Is(err, hub.ErrOther) {
		t.Error(err)
	}
	d := x.member()
	for _, junk := range []string{"", "x", strings.Repeat("x", fleet.MaxValue),
		string(d.admission[:len(d.admission)-1])} {
		if got := d.ask("F.give."+d.id, junk); !strings.Contains(got, fleet.ErrRecord.Error()) {
			t.Errorf("a record of %d bytes: %s", len(junk), got)
		}
	}
	if _, err := x.dial(d.key, make([]byte, 300<<10)); err != nil {
		t.Error("a member with junk:", err)
	}
}

func TestMetrics(t *testing.T) {
	x := newSite(t)
	x.options.Metrics = "127.0.0.1:0"
	x.start()
	d := x.member()
	get := func(path string) (int, string) {
		r, err := http.Get("http://" + x.ready.Metrics + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(b)
	}
	if code, text := get("/healthz"); code != 200 || text != "ok\n" {
		t.Error(code, text)
	}
	d.nc.Publish("F.at."+d.id, []byte(`{"in_step":true,"waiting":7,"keys":2}`))
	labels := fmt.Sprintf("device=\"device %s\",id=\"%s\"", d.id[:6], d.id)
	until(t, "the status is known", func() bool {
		_, text := get("/metrics")
		return strings.Contains(text, "faceauth_fleet_devices 1\n") &&
			strings.Contains(text, "faceauth_fleet_waiting{"+labels+"} 7\n") &&
			strings.Contains(text, "faceauth_fleet_connected{"+labels+"} 1\n")
	})
	if err := os.Chmod(x.folder, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(x.folder, 0o700)
	if os.Geteuid() != 0 { // root may write anyway
		if code, text := get("/healthz"); code != 503 || !strings.Contains(text, "cannot store") {
			t.Error(code, text)
		}
	}
}
