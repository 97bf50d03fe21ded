// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// backedUp are the files of a backup besides the values, which are in say/WRITER/NAME.
var backedUp = []string{fleetFile, addressFile, certFile}

// largestFile bounds the files besides the values.
const largestFile = 1 << 20

// restoreBatch is the number of values that are stored at once.
const restoreBatch = 256

// Backup writes a new file with all values and records of a server, running or not. The key of the server is not in it:
// a thief of the file can read the names of devices, and no name and no face of a person, and cannot act as the server
// or as a device.
func Backup(ctx context.Context, folder, to string) (err error) {
	a, err := OpenAdmin(ctx, folder, nil)
	if errors.Is(err, ErrNoServer) {
		var s *service
		if s, err = open(Options{Folder: folder}); err == nil {
			defer s.close()
			a = &Admin{folder: folder, fleet: s.fleet, nc: s.nc}
		}
	}
	if err != nil {
		return err
	}
	defer a.Close()
	m, err := a.members(ctx)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("the backup: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(to)
		}
	}()
	w := tar.NewWriter(f)
	put := func(name string, data []byte, at time.Time) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600,
			ModTime: at}); err != nil {
			return fmt.Errorf("the backup: %w", err)
		}
		_, err := w.Write(data)
		return err
	}
	now := time.Now()
	for _, name := range backedUp {
		data, err := safefile.ReadBytes(filepath.Join(folder, name))
		if err == nil {
			err = put(name, data, now)
		}
		if err != nil {
			return fmt.Errorf("the backup: %w", err)
		}
	}
	writers := []string{admin}
	for _, x := range m.Devices() {
		writers = append(writers, x.ID)
	}
	for _, writer := range writers {
		err := pull(ctx, a.nc, writer, func(v fleet.Stored) error {
			return put("say/"+writer+"/"+url.PathEscape(v.Name), v.Data, v.At) // a liar may choose any name
		})
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Sync()
}

// Restore makes a folder for a server from a backup. The server then needs a certificate: see [Move]. Devices bring
// back what they said after the backup.
func Restore(ctx context.Context, folder, from string) (err error) {
	if some, err := os.ReadDir(folder); err == nil && len(some) > 0 {
		return fmt.Errorf("%s is not empty; give a new folder with --state", folder)
	}
	f, err := safefile.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var s *service
	defer func() {
		if s != nil {
			s.close()
		}
		if err != nil {
			err = fmt.Errorf("restoring %s: %w", from, err)
			os.RemoveAll(folder)
		}
	}()
	made := make(map[string]bool) // streams
	var stored []jetstream.PubAckFuture
	wait := func() error {
		for _, x := range stored {
			select {
			case <-x.Ok():
			case err := <-x.Err():
				return storing(err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		stored = stored[:0]
		return nil
	}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("it is not a backup of a server, or a damaged one: %w", err)
		}
		data, err := io.ReadAll(io.LimitReader(r, largestFile+1))
		if err != nil || len(data) > largestFile {
			return fmt.Errorf("it is not a backup of a server, or a damaged one: the file %s in it", h.Name)
		}
		part := strings.Split(h.Name, "/")
		if len(part) != 3 || part[0] != "say" {
			for _, name := range backedUp {
				if h.Name == name {
					err = safefile.Write(filepath.Join(folder, name), data)
				}
			}
			if err == nil && h.Name == fleetFile {
				err = safefile.Write(filepath.Join(folder, restoredFile),
					h.ModTime.UTC().AppendFormat(nil, time.RFC3339))
			}
			if err != nil {
				return err
			}
			continue
		}
		if s == nil {
			if s, err = open(Options{Folder: folder}); err != nil {
				return err
			}
		}
		writer := part[1]
		name, err := url.PathUnescape(part[2])
		if err != nil || name == "" || strings.ContainsAny(name, ". \t\r\n*>") ||
			writer != admin && !nkeys.IsValidPublicUserKey(writer) {
			s.Log.Warn("a value of the backup is skipped", "file", h.Name)
			continue
		}
		if !made[writer] {
			made[writer] = true
			if err := s.ensure(ctx, writer, nil); err != nil {
				return err
			}
		}
		x, err := s.js.PublishAsync(fleet.SayPrefix+writer+"."+name, bytes.Clone(data))
		if err != nil {
			return storing(err)
		}
		if stored = append(stored, x); len(stored) == restoreBatch {
			if err := wait(); err != nil {
				return err
			}
		}
	}
	if s == nil {
		return errors.New("it is not a backup of a server: it has no records")
	}
	return wait()
}
