// SPDX-License-Identifier: Apache-2.0

// Package fleet has many devices share the people that they know.
package fleet
