// SPDX-License-Identifier: Apache-2.0

// Package lines keeps a file to which lines are added. Each line has a checksum.
//
// [Open] reads a file and hands over its lines, [File.Append] adds one, and [File.Rewrite] puts a new file in the place
// of the old one, so that nothing of the old lines is left in it.
//
// A line is the CRC-32C of the rest as eight hexadecimal digits, a space, and JSON. It is written with one call. If the
// last line is incomplete, [File.Append] never reported it as written, and [Open] cuts it off.
package lines

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
)

// Errors of [Open].
var (
	ErrVersion = errors.New("file of another version")
	ErrDamaged = errors.New("damaged file")
	ErrBusy    = errors.New("file that another program is using")
)

// patience is how long [Open] waits until another program closes the file.
const patience = 2 * time.Second

// longest is the greatest length of a line in bytes.
const longest = 1 << 24

// Options of a [File].
type Options struct {
	Lazy    bool // lines are not synced: after a crash of the machine the last lines may be lost
	Lenient bool // the file ends before its first damaged line, instead of being refused
	// Version, if it is not 0, must be in the first line, as "version". Open writes it into an empty file. The lines of
	// [File.Rewrite] must begin with it.
	Version int
}

// versioned is the version in a first line.
type versioned struct {
	Version int `json:"version"`
}

// File is an open file of lines. One goroutine at a time may use it. The caller closes it.
type File struct {
	o     Options
	path  string
	file  *os.File
	size  int64
	lines int
	torn  bool // the file may end with a part of a line
}

// Open opens the file at path, or makes it, and passes each line to take, which may refuse it. The error wraps
// [ErrVersion], [ErrDamaged], or [ErrBusy] if another program has the file open for two seconds, or comes from take. On
// error a file that was there is unchanged.
func Open(path string, o Options, take func(line []byte) error) (*File, error) {
	f := &File{o: o, path: path}
	if err := f.open(take); err != nil {
		if f.file != nil {
			f.file.Close()
		}
		return nil, err
	}
	return f, nil
}

func (f *File) open(take func([]byte) error) (err error) {
	if r, err := safefile.Open(f.path); err == nil { // opening a pipe would wait
		r.Close()
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if f.file, err = os.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := lock(f.file); err != nil {
		return err
	}
	os.Remove(f.path + suffix) // left by a program that was killed while it wrote this file
	if err := f.read(f.checked(take)); err != nil {
		return fmt.Errorf("%w; move it away to begin again", err)
	}
	if f.o.Version != 0 && f.lines == 0 {
		return f.Append(versioned{f.o.Version})
	}
	return nil
}

// checked returns take with a check of the version in the first line.
func (f *File) checked(take func([]byte) error) func([]byte) error {
	return func(line []byte) error {
		if f.o.Version == 0 || f.lines > 0 {
			return take(line)
		}
		var v versioned
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if v.Version != f.o.Version {
			return fmt.Errorf("%w: it has version %d, and this program reads version %d", ErrVersion, v.Version,
				f.o.Version)
		}
		return take(line)
	}
}

// lock keeps other programs from opening the file.
func lock(f *os.File) error {
	err := safefile.Lock(f, patience)
	if errors.Is(err, safefile.ErrLocked) {
		return ErrBusy
	}
	return err
}

var table = crc32.MakeTable(crc32.Castagnoli)

// format returns a value as a line.
func format(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(text, table), text), nil
}

// parse returns the JSON of a line.
func parse(text []byte) ([]byte, error) {
	if len(text) < 10 || text[8] != ' ' || text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("%w: a line is cut off", ErrDamaged)
	}
	text, sum := text[9:len(text)-1], string(text[:8])
	if fmt.Sprintf("%08x", crc32.Checksum(text, table)) != sum {
		return nil, fmt.Errorf("%w: a checksum is wrong", ErrDamaged)
	}
	return text, nil
}

// read reads the file.
func (f *File) read(take func([]byte) error) error {
	r := bufio.NewReader(f.file)
	for {
		text, err := readLine(r)
		if f.o.Lenient && errors.Is(err, ErrDamaged) {
			return f.cut()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(text) == 0 {
			return f.cut()
		}
		line, err := parse(text)
		if err != nil {
			if f.o.Lenient {
				return f.cut()
			}
			if _, next := r.Peek(1); errors.Is(next, io.EOF) && f.lines > 0 {
				return f.cut() // the program or the machine stopped while this line was written
			}
			return fmt.Errorf("%w in line %d", err, f.lines+1)
		}
		if err := take(line); err != nil {
			return fmt.Errorf("%w in line %d", err, f.lines+1)
		}
		f.lines++
		f.size += int64(len(text))
	}
}

// readLine returns the next line with its end, or the part of it that exists.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		text = append(text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if len(text) > longest {
			return nil, fmt.Errorf("%w: a line is too long", ErrDamaged)
		}
	}
}

// cut ends the file after the last whole line.
func (f *File) cut() error {
	if err := f.file.Truncate(f.size); err != nil {
		return err
	}
	_, err := f.file.Seek(f.size, io.SeekStart)
	return err
}

// Lines returns the number of lines in the file.
func (f *File) Lines() int { return f.lines }

// Append adds a line. Unless the file is lazy, the line is on disk when Append returns. On error the file is unchanged,
// or ends with a part of the line, which the next call removes.
func (f *File) Append(v any) error {
	text, err := format(v)
	if err != nil {
		return err
	}
	if f.torn {
		if err := f.cut(); err != nil {
			return err
		}
		f.torn = false
	}
	_, err = f.file.Write(text)
	if err == nil && !f.o.Lazy {
		err = f.file.Sync()
	}
	if err != nil {
		cut := f.cut()
		f.torn = cut != nil
		return errors.Join(err, cut)
	}
	f.size += int64(len(text))
	f.lines++
	return nil
}

// Sync writes the lines of a lazy file to disk.
func (f *File) Sync() error { return f.file.Sync() }

// Empty removes all lines. On error the file is unchanged.
func (f *File) Empty() error {
	size, lines := f.size, f.lines
	f.size, f.lines = 0, 0
	if err := f.cut(); err != nil {
		f.size, f.lines = size, lines
		return err
	}
	f.torn = false
	return nil
}

// suffix ends the name of the new file that [File.Rewrite] makes.
const suffix = ".new"

// Rewrite replaces the file with a new one that has only these lines. The new file is on disk when Rewrite returns. It
// is locked before it replaces the old file. On error the file is unchanged.
func (f *File) Rewrite(lines ...any) error {
	var all bytes.Buffer
	for _, v := range lines {
		text, err := format(v)
		if err != nil {
			return err
		}
		all.Write(text)
	}
	temp := f.path + suffix
	next, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = lock(next)
	if err == nil {
		_, err = next.Write(all.Bytes())
	}
	if err == nil {
		err = next.Sync()
	}
	if err == nil {
		err = safefile.Rename(temp, f.path)
	}
	if err != nil {
		next.Close()
		os.Remove(temp)
		return err
	}
	f.file.Close() // the replaced file
	f.file, f.size, f.lines, f.torn = next, int64(all.Len()), len(lines), false
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }
