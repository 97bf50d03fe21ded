// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// putSnapshots puts a snapshot into the log whenever one of this device's entries makes the log long enough.
func (d *Device) putSnapshots(ctx context.Context, log Log) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.snap:
		}
		if err := log.PutSnapshot(ctx, 0, strings.NewReader("")); errors.Is(err, errors.ErrUnsupported) {
			return nil // another program makes the snapshots
		}
		if err := d.putSnapshot(ctx, log); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.complain(err) // another device makes the snapshot, or this device later
			d.mu.Unlock()
		}
	}
}

func (d *Device) putSnapshot(ctx context.Context, log Log) error {
	at, data, err := log.Snapshot(ctx)
	if err == nil {
		data.Close()
	} else if !errors.Is(err, ErrNoSnapshot) {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	f, err := os.CreateTemp(d.folder, "snapshot-*")
	if err != nil {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	defer func() {
		f.Close()
		os.Remove(f.Name())
	}()
	d.mu.Lock()
	d.put = max(d.put, at)
	seq := d.base.Seq()
	needed := seq >= d.put+d.s.SnapshotEvery
	if needed {
		err = d.base.Snapshot(f, d.key)
	}
	d.mu.Unlock()
	if err != nil || !needed {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := log.PutSnapshot(ctx, seq, f); err != nil {
		return fmt.Errorf("putting a snapshot: %w", err)
	}
	d.mu.Lock()
	d.put = max(d.put, seq)
	d.mu.Unlock()
	return nil
}

// sweepSnapshots removes unfinished snapshots of a killed program.
func (d *Device) sweepSnapshots() {
	left, err := filepath.Glob(filepath.Join(d.folder, "snapshot-*"))
	for _, path := range left {
		if info, statErr := os.Lstat(path); err == nil && statErr == nil && info.Mode().Type() == fs.FileMode(0) {
			os.Remove(path)
		}
	}
}
