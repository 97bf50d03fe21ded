// SPDX-License-Identifier: Apache-2.0

// Package ledger is what a fleet of devices knows, as a pure state machine.
package ledger
