// SPDX-License-Identifier: Apache-2.0

package tablet

// Spread exports spread.
var Spread = spread
