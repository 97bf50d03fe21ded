// SPDX-License-Identifier: Apache-2.0

package tablet

// Spread is spread.
var Spread = spread
