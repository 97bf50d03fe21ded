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

// keepEvery is how often the service looks whether there is something to purge or trim.
const keepEvery = time.Second

// keep purges what was said of people who are forgotten, makes snapshots, and trims the log.
func (s *service) keep(ctx context.Context) {
	for tick := 0; backoff.Wait(ctx, keepEvery); tick++ {
		if err := s.room(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the room on the disk is not looked after; it is tried again", "error", err)
		}
		if err := s.tidy(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the log is not tidied; it is tried again", "error", err)
		}
		if tick%60 == 59 {
			s.writePlaces()
			if s.server != nil {
				s.server.Invite(s.tokens.bearers())
			}
		}
	}
}

// reserve is how much room is left on the disk of the server, so that what is stored can be kept, purged and trimmed. On a
// small disk it is an eighth.
const reserve = 64 << 20

// room has the log take nothing while the disk is nearly full: a NATS server that cannot write stops altogether.
func (s *service) room(ctx context.Context) error {
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
		s.Log.Error("the disk is nearly full: the log takes no entry until there is room", "folder", s.Folder, "free_mb", free>>20)
	} else {
		s.Log.Info("there is room again: the log takes entries", "free_mb", free>>20)
	}
	return nil
}

// tidyTime is how long a purge or a snapshot may take.
const tidyTime = 5 * time.Minute

func (s *service) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	info, err := s.stream.Info(ctx)
	if err != nil {
		return storage(err)
	}
	s.mu.Lock()
	purges := slices.Clone(s.purges)
	seq := s.ledger.Seq()
	s.mu.Unlock()
	// A log that is half full is trimmed to its end: garbage and long lessons leave it before it takes nothing more.
	crowded := int64(info.State.Bytes) > logBytes(s.Limits.defaults())/2 && seq > s.snapshot
	due, keep := seq >= s.snapshot+s.SnapshotEvery || crowded, s.Keep
	if crowded {
		keep = 0
	}
	for _, p := range purges {
		// The entry that forgets stays: it is the last one before the place that is given.
		err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.log(p.person.String())), jetstream.WithPurgeSequence(p.before))
		if err != nil {
			return fmt.Errorf("purging what was said of a person who is forgotten: %w", storage(err))
		}
		s.mu.Lock()
		s.purges = s.purges[1:]
		s.mu.Unlock()
	}
	// A snapshot from before a forgetting has the person in it, sealed.
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
