// SPDX-License-Identifier: Apache-2.0

package tablet

import "time"

// Tick exports tick.
func (s *Session) Tick(now time.Time) Result { return s.tick(now) }
