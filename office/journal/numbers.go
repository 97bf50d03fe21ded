// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/faceauth/faceauth/internal/lines"
)

// Numbers remembers how far numbers of several kinds have come. A program that gives numbers reserves them first, so
// that none is given twice after it was killed. It is used by one goroutine at a time. Close it.
type Numbers struct {
	file *lines.File // nil in memory
	upTo map[string]uint64
}

// OpenNumbers opens the file of numbers at path, and makes it where there is none. Without a path, "", they are in
// memory. The error wraps [ErrDamaged] or [ErrBusy].
func OpenNumbers(path string) (*Numbers, error) {
	n := &Numbers{upTo: make(map[string]uint64)}
	if path == "" {
		return n, nil
	}
	var err error
	n.file, err = lines.Open(path, lines.Options{}, func(line []byte) error {
		var upTo map[string]uint64
		if err := json.Unmarshal(line, &upTo); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		maps.Copy(n.upTo, upTo)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening numbers %s: %w", path, err)
	}
	return n, nil
}

// UpTo returns the number up to which those of a kind are reserved.
func (n *Numbers) UpTo(kind string) uint64 { return n.upTo[kind] }

// Reserve reserves the numbers of a kind up to one, and as many more as more says, where it is not reserved yet.
func (n *Numbers) Reserve(kind string, to, more uint64) error {
	if to <= n.upTo[kind] {
		return nil
	}
	return n.Set(kind, to+more)
}

// Set says up to which number those of a kind are reserved. It holds in memory also where it cannot be written, which
// the error says.
func (n *Numbers) Set(kind string, to uint64) error {
	if n.upTo[kind] == to {
		return nil
	}
	n.upTo[kind] = to
	if n.file == nil {
		return nil
	}
	var err error
	if n.file.Lines() >= 500 {
		err = n.file.Rewrite(n.upTo)
	} else {
		err = n.file.Append(n.upTo)
	}
	if err != nil {
		return fmt.Errorf("writing numbers: %w", err)
	}
	return nil
}

// Close closes the file.
func (n *Numbers) Close() error {
	if n.file == nil {
		return nil
	}
	return n.file.Close()
}
