// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/faceauth/faceauth/internal/lines"
)

// Numbers stores the last reserved number of several kinds. A program reserves numbers before it uses them, so that
// none is used twice after a crash. One goroutine may use it at a time. The caller closes it.
type Numbers struct {
	file *lines.File // nil in memory
	upTo map[string]uint64
}

// OpenNumbers opens the file at path, and makes a missing one. With an empty path the numbers are in memory. The error
// wraps [ErrDamaged] or [ErrBusy].
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

// UpTo returns the last reserved number of a kind.
func (n *Numbers) UpTo(kind string) uint64 { return n.upTo[kind] }

// Reserve reserves the numbers of a kind up to "to". If they are not reserved yet, it reserves "more" numbers beyond.
func (n *Numbers) Reserve(kind string, to, more uint64) error {
	if to <= n.upTo[kind] {
		return nil
	}
	return n.Set(kind, to+more)
}

// Set sets the last reserved number of a kind. After an error it holds in memory only.
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
