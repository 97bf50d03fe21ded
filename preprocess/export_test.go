// SPDX-License-Identifier: Apache-2.0

package preprocess

// Surroundings is what the tests of the crop need.
var Surroundings = surroundings
