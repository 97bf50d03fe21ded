// SPDX-License-Identifier: Apache-2.0

package online

import "github.com/faceauth/faceauth/quantized"

// Kept returns the centroids from lessons that l uses in its judgements.
func (l *Learner) Kept() []quantized.Summary {
	if s := l.share(); s != nil {
		return s.merged.Kept
	}
	return nil
}
