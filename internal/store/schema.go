// SPDX-License-Identifier: Apache-2.0

package store

const (
	application = 0x66616365 // "face": SQLite's application_id
	magic       = "SQLite format 3\x00"
	pageSize    = 8192 // a face of 512 values and its row fit four times
)

// Schema says which tables a database has, beside table meta, which every one has.
type Schema struct {
	Version int64 // no other version is read; 0: any
	Tables  string
}

const meta = "create table meta(key text primary key, value any) strict;"
