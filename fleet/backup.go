// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// saved is a value in a backup.
type saved struct {
	Name, Write, Key string
	Data             []byte
}

type backup struct {
	Books  books
	Values []saved
}

// Backup writes what the server of a fleet, which runs with this folder, has. Who reads it can pose as
// the server, and learns no name and no face.
func Backup(ctx context.Context, folder, path string) error {
	b, err := readBooks(folder)
	if err != nil {
		return fmt.Errorf("there is no server of a fleet in %s: %w", folder, err)
	}
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s exists already; name a new file", path)
	}
	m := membership{URLs: b.URLs, Pin: b.pin(), Seed: b.Local}
	nc, _, s, err := m.stream(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	out := backup{Books: b}
	c, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return err
	}
	for left := s.CachedInfo().State.Msgs; left > 0; {
		m, err := c.Next(jetstream.FetchMaxWait(answer))
		if err != nil {
			return fmt.Errorf("reading the bucket: %w", err)
		}
		h := m.Headers()
		out.Values = append(out.Values, saved{m.Subject()[len(place):], h.Get("Write"), h.Get("Key"), m.Data()})
		info, err := m.Metadata()
		if err != nil {
			return err
		}
		left = info.NumPending
	}
	return safefile.Write(path, encode(out))
}

// Restore makes the folder of a server of a backup. What the devices know better they give the server
// by themselves.
func Restore(path, folder string) error {
	b, err := safefile.ReadBytes(path)
	if err != nil {
		return err
	}
	var in backup
	if err := decoding.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("%s is no backup of a server: %w", path, err)
	}
	s := &Server{folder: folder, books: in.Books}
	if _, err := os.Stat(filepath.Join(folder, "server.json")); err == nil {
		return fmt.Errorf("%s has a server already; name another folder", folder)
	}
	if err := s.save(); err != nil {
		return err
	}
	return safefile.Write(filepath.Join(folder, "restore"), encode(in.Values))
}

// putBack puts the values of a backup into the new bucket.
func (s *Server) putBack(ctx context.Context, js jetstream.JetStream) error {
	path := filepath.Join(s.folder, "restore")
	b, err := safefile.ReadBytes(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var all []saved
	if err == nil {
		err = decoding.Unmarshal(b, &all)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, v := range all {
		m := nats.NewMsg(place + v.Name)
		m.Header.Set("Write", v.Write)
		m.Header.Set("Key", v.Key)
		m.Data = v.Data
		if _, err := js.PublishMsgAsync(m); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(5 * time.Minute):
		return errors.New("putting the values of the backup back takes too long")
	}
	return os.Remove(path)
}
