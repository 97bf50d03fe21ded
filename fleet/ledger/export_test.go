// SPDX-License-Identifier: Apache-2.0

package ledger

import "os"

// LockTail has the tail be read and not be written any more.
func (s *Store) LockTail() error {
	s.tail.Close()
	f, err := os.Open(s.tail.Name())
	s.tail.File = f
	return err
}
