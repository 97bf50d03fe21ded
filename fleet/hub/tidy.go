// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"
)

type purge struct {
	person ledger.ID
	before uint64
}

// keepEvery is the pause between two rounds of keep.
const keepEvery = time.Second

// keep purges the entries about forgotten people, makes snapshots, trims the log, and signs that days begin.
func (s *service) keep(ctx context.Context) {
	for tick := 0; backoff.Wait(ctx, keepEvery); tick++ {
		if err := s.checkDisk(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("free disk space could not be checked; trying again", "error", err)
		}
		if err := s.compact(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the log could not be purged or trimmed; trying again", "error", err)
		}
		s.mu.Lock()
		over := s.ledger.DayOver(time.Now())
		s.mu.Unlock()
		if over {
			if _, err := s.say(ctx, ledger.Allow, ledger.Allowance{}); err != nil && ctx.Err() == nil {
				s.Log.Warn("a new day of forgetting could not be signed; trying again", "error", err)
			}
		}
		if tick%60 == 59 {
			s.writePlaces()
			if s.server != nil {
				s.server.Invite(s.tokens.bearers())
			}
		}
	}
}

// reserve is the free disk space that stays for saving, purging and trimming. On a small disk it is an eighth of the
// disk.
const reserve = 64 << 20

// checkDisk lets the log refuse new entries while the disk is nearly full: a NATS server that cannot write stops
// completely.
func (s *service) checkDisk(ctx context.Context) error {
	if s.server == nil {
		return nil // the cluster's disks are its administrator's
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Folder, &disk); err != nil {
		return err
	}
	free, least := disk.Bavail*uint64(disk.Bsize), min(reserve, disk.Blocks*uint64(disk.Bsize)/8)
	tight := free < least || s.tight && free < least*3/2
	if tight == s.tight {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	config := s.stream.CachedInfo().Config
	config.MaxBytes = logBytes(s.Limits.defaults())
	if tight {
		config.MaxBytes = 1
	}
	if _, err := s.conn.js.UpdateStream(ctx, config); err != nil {
		return storage(err)
	}
	if s.tight = tight; tight {
		s.Log.Error("the disk is nearly full: the log refuses entries until there is room", "folder", s.Folder,
			"free_mb", free>>20)
	} else {
		s.Log.Info("there is room again: the log accepts entries", "free_mb", free>>20)
	}
	return nil
}

// compactTime is the time limit for purging, one snapshot and trimming.
const compactTime = 5 * time.Minute

func (s *service) compact(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, compactTime)
	defer cancel()
	info, err := s.stream.Info(ctx)
	if err != nil {
		return storage(err)
	}
	s.mu.Lock()
	purges := slices.Clone(s.purges)
	seq := s.ledger.Seq()
	s.mu.Unlock()
	// A log that is half full is trimmed up to its end. So garbage and long lessons are removed before the log is full.
	crowded := int64(info.State.Bytes) > logBytes(s.Limits.defaults())/2 && seq > s.snapshot
	due, keep := seq >= s.snapshot+s.SnapshotEvery || crowded, s.Keep
	if crowded {
		keep = 0
	}
	for _, p := range purges {
		// The Forget entry stays: it has the given sequence number.
		err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.log(p.person.String())),
			jetstream.WithPurgeSequence(p.before))
		if err != nil {
			return fmt.Errorf("purging the entries about a forgotten person: %w", storage(err))
		}
		s.mu.Lock()
		s.purges = s.purges[1:]
		s.mu.Unlock()
	}
	// An older snapshot still has the sealed entries about the forgotten person.
	if !due && (len(purges) == 0 || s.snapshot == 0) || seq == 0 {
		return nil
	}
	var b bytes.Buffer
	s.mu.Lock()
	seq = s.ledger.Seq()
	err = s.ledger.Snapshot(&b, s.admin)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := putSnapshot(ctx, s.bucket, s.admin, s.names.fleet, seq, b.Bytes()); err != nil {
		return err
	}
	s.snapshot = seq
	s.Log.Debug("snapshot", "seq", seq, "bytes", b.Len())
	if seq <= keep {
		return nil
	}
	if err := s.stream.Purge(ctx, jetstream.WithPurgeSequence(seq-keep+1)); err != nil {
		return fmt.Errorf("trimming the log: %w", storage(err))
	}
	return nil
}
