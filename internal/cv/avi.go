// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// chunks walks over an AVI file. A chunk has four letters, the length of its content as 32 bits, the content, and a
// padding byte if this length is odd. Chunks named RIFF and LIST contain four more letters, and then chunks.
type chunks struct {
	f   *os.File
	at  int64 // of the next chunk
	end int64 // of the file
}

// openChunks opens a file, of whatever kind.
func openChunks(path string) (*chunks, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &chunks{f: f, end: info.Size()}, nil
}

// next returns the name and the length of the next chunk. The length of the last chunk may reach beyond the file. The
// error is io.EOF at the end.
func (c *chunks) next() (name string, size int64, err error) {
	var head [8]byte
	for {
		if _, err := c.f.ReadAt(head[:], c.at); err != nil {
			return "", 0, err
		}
		if name = string(head[:4]); name != "RIFF" && name != "LIST" {
			size = int64(binary.LittleEndian.Uint32(head[4:]))
			c.at += 8 + size + size%2
			return name, size, nil
		}
		c.at += 12
	}
}

// empty returns the number of empty pictures, which mean the picture before, until the next picture.
func (c *chunks) empty() (n int) {
	for {
		name, size, err := c.next()
		picture := err == nil && (name[2:] == "dc" || name[2:] == "db")
		switch {
		case err != nil, picture && size > 0:
			return n
		case picture:
			n++
		}
	}
}

// countFrames returns the number of complete pictures in an AVI file. The libraries that write it do not report a full
// disk: the file just ends early.
func countFrames(path string) (n int, err error) {
	c, err := openChunks(path)
	if err != nil {
		return 0, err
	}
	defer c.f.Close()
	for {
		name, size, err := c.next()
		switch {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		case name == "00dc" && c.at-size%2 <= c.end:
			n++
		}
	}
}
