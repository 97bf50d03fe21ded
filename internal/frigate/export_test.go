// SPDX-License-Identifier: Apache-2.0

package frigate

import (
	"testing"
	"time"
)

// SetSilent changes the time after which an event counts as ended, until the test ends.
func SetSilent(t *testing.T, to time.Duration) {
	was := silent
	silent = to
	t.Cleanup(func() { silent = was })
}
