// SPDX-License-Identifier: Apache-2.0

package preprocess

// Surroundings lets tests call surroundings.
var Surroundings = surroundings
