// SPDX-License-Identifier: Apache-2.0

package boottest

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/tablet/profile"
	"github.com/fxamacker/cbor/v2"
)

// memoryOf returns where in a process's memory any of the needles lies, as root can see it.
func memoryOf(t testing.TB, pid string, needles map[string][]byte) (found map[string]int) {
	t.Helper()
	found = make(map[string]int)
	maps := fixture.Must(os.ReadFile("/proc/" + pid + "/maps"))(t)
	mem := fixture.Must(os.Open("/proc/" + pid + "/mem"))(t)
	defer mem.Close()
	total := 0
	for _, m := range regexp.MustCompile(
		`(?m)^([0-9a-f]+)-([0-9a-f]+) r[w-]..`).FindAllStringSubmatch(string(maps),
		-1) {
		from, _ := strconv.ParseUint(m[1], 16, 64)
		to, _ := strconv.ParseUint(m[2], 16, 64)
		if to-from > 1<<30 || from > math.MaxInt64 {
			continue
		}
		b, err := io.ReadAll(io.NewSectionReader(mem, int64(from), int64(to-from)))
		total += len(b)
		if err != nil && len(b) == 0 {
			continue
		}
		for name, needle := range needles {
			found[name] += bytes.Count(b, needle)
		}
	}
	if total < 10<<20 {
		t.Fatalf("only %d bytes of memory could be read", total)
	}
	return found
}

// After a profile is forgotten, no copy of its faces is left in the daemon's memory or in a file.
func TestForgotten(t *testing.T) {
	s := people(t)
	s.camera(t, "vidtimit_rot/p5")
	s.run(t, "faceauth login enroll --user bob")
	s.run(t, ask("password", "bob", "0", "", ""))
	s.run(t, "faceauth login try --user bob")
	s.camera(t, "vidtimit_rot/p2")

	// The test searches for bob's vectors, which it reads with the key from a copy of the store.
	s.run(t,
		"rm -rf /srv/share/copy; cp -a /var/lib/faceauth /srv/share/copy; "+
			"systemd-creds decrypt --name=faceauth-key /srv/share/copy/key.sealed "+
			"/srv/share/copy/key; "+
			"chown -R root /srv/share/copy")
	copied := filepath.Join(s.dir, "copy")
	key := fixture.Must(profile.ReadKey(filepath.Join(copied, "key")))(t)
	space := models.Default(models.Embedding).Space()
	store := fixture.Must(profile.Open(filepath.Join(copied, "profiles"), key, space))(t)
	needles := map[string][]byte{"what is there": []byte("no user of this system has that name")}
	for _, user := range []string{"alice", "bob"} {
		b := fixture.Must(store.Load(user))(t)
		var p struct {
			Learner []byte `cbor:"learner"`
		}
		fixture.Check(t, cbor.Unmarshal(b, &p))
		l := new(online.Learner)
		fixture.Check(t, l.UnmarshalBinary(p.Learner))
		for i, label := range l.Labels() {
			var piece []byte // as it is in memory
			for _, f := range l.Vector(label.ID)[100:116] {
				piece = binary.LittleEndian.AppendUint32(piece, math.Float32bits(f))
			}
			needles[fmt.Sprintf("%s, vector %d", user, i)] = piece
		}
		needles[user+", record"] = p.Learner[len(p.Learner)/2:][:48]
	}
	fixture.Check(t, store.Close())
	pid := s.outside(t)
	before := memoryOf(t, pid, needles)
	t.Logf("before: %v", before)
	s.run(t, "faceauth login forget --user bob")
	after := memoryOf(t, pid, needles)
	t.Logf("after: %v", after)
	if after["what is there"] == 0 {
		t.Error("the memory was not looked through")
	}
	for name, n := range after {
		if strings.HasPrefix(name, "bob") && n > 0 {
			t.Errorf("%s is in memory %d times after it was forgotten", name, n)
		}
	}
	// Neither the faces nor the key are on the disk in clear.
	delete(needles, "what is there")
	secret := fixture.Must(os.ReadFile(filepath.Join(copied, "key")))(t)
	needles["the key"] = secret
	// Beside this system others may work on the machine of which it is a copy, as root.
	disk, err := base64.StdEncoding.DecodeString(strings.TrimSpace(s.run(t,
		"echo what is there >/var/lib/faceauth/in-clear; find /etc /var /home /root -xdev -type f "+
			"-not -path '/root/.cache/*' -not -path '/root/go/*' -newer /etc/machine-id -print0 "+
			"| xargs -0 cat | base64 -w0; rm /var/lib/faceauth/in-clear")))
	if err != nil || !bytes.Contains(disk, []byte("what is there")) {
		t.Fatalf("%d bytes of the disk were read, %v", len(disk), err)
	}
	for name, needle := range needles {
		if bytes.Contains(disk, needle) {
			t.Errorf("%s is on the disk in clear", name)
		}
	}
	// Only the daemon's user and root may read the files and the memory, and no core dump is
	// written.
	if out := s.run(t, "find /var/lib/faceauth -type f ! -perm 600"); out != "" {
		t.Errorf("others may read %s", out)
	}
	if out, code := s.try(t, "head -c 1 /proc/$(systemctl show -p MainPID --value faceauth)/mem",
		"--property=User=faceauth"); code == 0 {
		t.Errorf("a process of the same user reads the memory: %s", out)
	}
	limits := s.run(t,
		"grep -i 'VmLck\\|VmSwap' /proc/$(systemctl show -p MainPID --value faceauth)/status; "+
			"cat /proc/$(systemctl show -p MainPID --value faceauth)/limits")
	if !regexp.MustCompile(`core file size\s+0\s+0`).MatchString(limits) {
		t.Errorf("crashes are written down: %s", limits)
	}
	m := regexp.MustCompile(`VmLck:\s+(\d+) kB`).FindStringSubmatch(limits)
	switch locked := m != nil && len(m[1]) > 5; {
	case regexp.MustCompile(`locked memory\s+unlimited`).MatchString(limits) && !locked:
		t.Errorf("memory is not locked: %s\n%s", limits, s.journal(t))
	case !locked: // systemd cannot raise the limit here
		if out := s.run(t, "journalctl -q --no-pager -o cat -u faceauth"); !strings.Contains(out,
			"faces may get into swap") {
			t.Errorf("memory is not locked, and nobody is told: %s", limits)
		}
	}
}

// outside returns the number of the daemon's process as seen from outside the system.
func (s *system) outside(t testing.TB) string {
	t.Helper()
	inside := strings.TrimSpace(s.run(t, "systemctl show -p MainPID --value faceauth"))
	all := fixture.Must(filepath.Glob("/proc/[0-9]*/status"))(t)
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if regexp.MustCompile(`(?m)^Name:\s+faceauth$`).Match(b) &&
			regexp.MustCompile(`(?m)^NSpid:\s+\d+\s+`+inside+`$`).Match(b) {
			return filepath.Base(filepath.Dir(path))
		}
	}
	t.Fatalf("process %s is not to be seen from outside", inside)
	return ""
}
