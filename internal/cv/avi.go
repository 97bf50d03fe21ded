// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// countFrames returns the number of complete pictures in an AVI file. The libraries that write it do not report a full
// disk: the file just ends early.
func countFrames(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	// A chunk has four letters, the length of its content as 32 bits, the content, and a padding byte if this length is
	// odd. Chunks named RIFF and LIST contain four more letters, and then chunks.
	var head [8]byte
	for at := int64(0); at+8 <= info.Size(); {
		if _, err := f.ReadAt(head[:], at); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		size := int64(binary.LittleEndian.Uint32(head[4:]))
		switch string(head[:4]) {
		case "RIFF", "LIST":
			at += 12
			continue
		case "00dc":
			if at+8+size <= info.Size() {
				n++
			}
		}
		at += 8 + size + size%2
	}
	return n, nil
}
