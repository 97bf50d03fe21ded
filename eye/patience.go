// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// glance is the pause between two looks at an eye that says nothing.
const glance = time.Second

// patience waits for an eye as long as it may still answer. No clock decides that: an eye that is
// stopped, that waits for the processor or for a disk, or that computes, is slow and not silent. It
// is silent if it has used much processor time since its last message, or if this program, again
// and again, finds all its threads asleep.
type patience struct {
	ctx  context.Context
	conn net.Conn
	eye  *child
	work time.Duration // processor time that may be used
	idle time.Duration // for which it may sleep

	next   time.Time // of the next look; zero if there was one just now
	begun  bool
	used   time.Duration // its processor time at the first look
	asleep time.Duration
}

// Read implements io.Reader. The error is [os.ErrDeadlineExceeded] for a silent eye.
func (p *patience) Read(b []byte) (int, error) {
	return p.repeat(p.conn.SetReadDeadline, p.conn.Read, b)
}

// Write implements io.Writer.
func (p *patience) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = p.repeat(p.conn.SetWriteDeadline, p.conn.Write, b[n:])
		n += more
	}
	return n, err
}

// repeat reads or writes something, and looks at the eye meanwhile.
func (p *patience) repeat(limit func(time.Time) error, do func([]byte) (int, error),
	b []byte) (int, error) {
	for {
		if p.next.IsZero() {
			p.next = time.Now().Add(glance)
		}
		limit(p.next)
		err := p.ctx.Err() // after the deadline is set, which the end of ctx brings forward
		if err != nil {
			return 0, err
		}
		n, err := do(b)
		switch {
		case n > 0 && errors.Is(err, os.ErrDeadlineExceeded):
			return n, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case p.silent():
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// silent looks at the eye.
func (p *patience) silent() bool {
	used, asleep := p.eye.look()
	if !p.begun {
		p.begun, p.used = true, used
	}
	p.asleep += glance
	p.next = time.Time{}
	if !asleep {
		p.asleep = 0
	}
	return used-p.used > p.work || p.asleep > p.idle
}

// tick is the unit of times in /proc: a hundredth of a second on all architectures of Go.
const tick = 10 * time.Millisecond

// look returns the processor time that a child has used, and whether all its threads sleep. Of an
// eye that the system manager has started, whose process is not known, nothing is seen: it counts
// as asleep.
func (c *child) look() (used time.Duration, asleep bool) {
	if c == nil {
		return 0, true
	}
	process := fmt.Sprintf("/proc/%d", c.pid)
	_, used, err := stat(process)
	if err != nil {
		return 0, false // it has ended, which its socket says, or nothing is to be seen
	}
	threads, err := filepath.Glob(process + "/task/*")
	for _, t := range threads {
		state, _, err := stat(t)
		if err == nil && state != 'S' {
			return used, false
		}
	}
	return used, err == nil && len(threads) > 0
}

// stat reads the state and the processor time of a process or a thread: proc_pid_stat(5).
func stat(dir string) (state byte, used time.Duration, err error) {
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // a name may hold anything
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, 0, errors.New("unknown kind of /proc")
	}
	for _, i := range []int{user, system} {
		n, err := strconv.ParseInt(string(fields[i]), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		used += time.Duration(n) * tick
	}
	return fields[0][0], used, nil
}
