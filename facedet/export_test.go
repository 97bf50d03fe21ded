// SPDX-License-Identifier: Apache-2.0

package facedet

// Certain exports certain.
var Certain = certain
