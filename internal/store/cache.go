// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/internal/xdg"
)

// Cache is a database of results that can be computed again. It may be deleted while no program uses it. It is safe for
// concurrent use, and several programs may use it at once.
type Cache struct {
	mu sync.Mutex
	db *DB
}

// CachePath returns the path of the default cache of a database: faceauth/cache.db below $XDG_CACHE_HOME or ~/.cache.
// It has the key of the database, if there is one.
func CachePath(database string) (string, error) {
	dir, err := xdg.Cache()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "faceauth", "cache.db")
	if key := Key(database); key != nil {
		sum := sha256.Sum256(key)
		path = filepath.Join(dir, "faceauth", fmt.Sprintf("cache-%x.db", sum[:4]))
		err = SetKey(path, key)
	}
	return path, err
}

// OpenCache opens the cache at path, and makes it if there is none, or one of an older version. The error is that of
// [Open]. Close it after use.
func OpenCache(path string) (*Cache, error) {
	db, err := Open(path, true)
	if errors.Is(err, ErrOld) {
		if err = os.Remove(path); err == nil {
			db, err = Open(path, true)
		}
	}
	if err != nil {
		return nil, err
	}
	return &Cache{db: db}, nil
}

// Close closes the cache.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.db.Close()
}

// Get returns a result, or nil if there is none.
func (c *Cache) Get(key []byte) (body []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.db.Query("select body from cache where key = ?", func(r Row) error {
		body = slices.Clone(r.ColumnRawBlob(0))
		return nil
	}, key)
	return body, err
}

// Put keeps a result of a kind.
func (c *Cache) Put(key []byte, kind string, body []byte, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.db.Write(func() error {
		return c.db.Exec("insert or replace into cache(key, kind, at, body) values(?, ?, ?, ?)", key, kind, now.Unix(),
			body)
	})
}

// Expire removes the results of a kind from before a time.
func (c *Cache) Expire(kind string, before time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.db.Write(func() error {
		return c.db.Exec("delete from cache where kind = ? and at < ?", kind, before.Unix())
	})
}

// Purge removes the results that gone names, so that no trace of them stays, and returns their number.
func (c *Cache) Purge(gone func(kind string, body []byte) bool) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.db.Write(func() error {
		var keys [][]byte
		err := c.db.Query("select key, kind, body from cache", func(r Row) error {
			if gone(r.ColumnText(1), r.ColumnRawBlob(2)) {
				keys = append(keys, slices.Clone(r.ColumnRawBlob(0)))
			}
			return nil
		})
		for _, key := range keys {
			if err == nil {
				err = c.db.Exec("delete from cache where key = ?", key)
			}
		}
		if n = len(keys); err == nil && n > 0 {
			err = c.db.Erasing()
		}
		return err
	})
	if err == nil && n > 0 {
		err = c.db.Erase()
	}
	return n, err
}
