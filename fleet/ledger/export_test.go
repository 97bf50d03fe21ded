// SPDX-License-Identifier: Apache-2.0

package ledger

import "os"

// LockTail makes every later write to the tail fail; the tail can still be read.
func (s *Store) LockTail() error {
	s.tail.Close()
	f, err := os.Open(s.tail.Name())
	s.tail.File = f
	return err
}
