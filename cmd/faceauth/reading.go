// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/spf13/cobra"
)

// reading is what a command did not see of the recordings that it was to read. All commands tell it
// in the same words, and by the exit code [cli.Partly].
type reading struct {
	mu     sync.Mutex
	n      int    // recordings, and pictures that are looked at one by one
	noun   string // what they are
	left   []footage.Left
	unread []footage.Left // recordings that gave nothing
	short  []footage.Left // recordings of which a part is missing
}

// cell returns a text for a cell of a table: one line, without tabs, as wide as it is printed.
func cell(text string) string {
	text = string(cli.Printable([]byte(text)))
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text)
}

// inventory returns the recordings that are named, and says what is left out.
func (o *options) inventory(c *cobra.Command, names []string) (footage.Inventory, error) {
	if err := o.contradiction(); err != nil {
		return footage.Inventory{}, err
	}
	found, err := footage.Find(names)
	if err != nil {
		return found, cli.Fail(cli.BadSource, err)
	}
	o.reading.n, o.reading.noun = len(found.Items), "recording"
	o.reading.left = append(o.reading.left, found.Left...)
	if left := found.String(); left != "" {
		cli.Warn(c, left)
		const most = 10
		for i, l := range found.Left {
			if i == most {
				cli.Note(c, fmt.Sprintf("  and %d more", len(found.Left)-most))
				break
			}
			cli.Note(c, "  "+cell(string(l.Path)))
		}
	}
	o.leftAside(c, found)
	return found, nil
}

// leftAside says which folders are passed over on purpose.
func (o *options) leftAside(c *cobra.Command, found footage.Inventory) {
	if text := found.Asides(); text != "" {
		cli.Note(c, text)
	}
}

// isFolder reports whether a source is a folder.
func isFolder(source string) bool {
	info, err := os.Stat(source)
	return err == nil && info.IsDir() && input.IsRecording(source)
}

// single returns the recording that a name stands for, of a command that follows one source: the
// source itself, or what is in a folder.
func (o *options) single(c *cobra.Command, source string) (string, error) {
	if !isFolder(source) {
		return source, nil // opening it says what is wrong
	}
	found, err := o.inventory(c, []string{source})
	if err != nil {
		return "", err
	}
	if n := len(found.Items); n > 1 {
		return "", cli.Fail(cli.BadSource,
			fmt.Errorf("%s holds %d recordings; name one of them, or use faceauth replay",
				cell(source), n))
	}
	return found.Items[0].Path, nil
}

// frames yields the frames of recordings, one after another. If one of several cannot be read, this
// is noted, and the others are read.
func (o *options) frames(c *cobra.Command, v *cli.Vision, paths []string,
	opt eye.Options) iter.Seq2[face.Frame,
	error] {
	return func(yield func(face.Frame, error) bool) {
		for _, path := range paths {
			src, err := o.stream(c.Context(), c, v, path, opt)
			var f face.Frame
			for err == nil {
				f, err = src.Next(c.Context())
				if err == nil && !yield(f, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
			case cli.Code(err) == cli.BadSource && len(paths) > 1:
				o.failed(c, path, err)
			default:
				yield(face.Frame{}, err)
				return
			}
		}
	}
}

// failed notes that a recording gave nothing, and says why.
func (o *options) failed(c *cobra.Command, path string, err error) {
	why := reason(path, err)
	o.reading.mu.Lock()
	defer o.reading.mu.Unlock()
	if o.reading.n != 1 && len(o.reading.unread) < mostNamed { // of one, the error says it
		cli.Warn(c, fmt.Sprintf("%s is not read: %s", cell(path), why))
	}
	o.reading.unread = append(o.reading.unread, footage.Left{Path: footage.Name(path), Why: why})
}

// ended judges how the reading of a recording ended, and says so if a part is missing.
func (o *options) ended(c *cobra.Command, path string, n face.Count) {
	if jumps(n) {
		cli.Note(c, fmt.Sprintf("%s: its time jumps from %s to %s", cell(path), stamp(n.GapAt),
			stamp(n.GapAt+n.Gap)))
	}
	var why string
	switch {
	case n.Cut():
		why = fmt.Sprintf("it ends at %s of %s: it is cut off", stamp(n.Last), stamp(n.Length))
	case n.Others > 0:
		why = fmt.Sprintf("it holds %s more, and only the first was looked at",
			cli.Count(n.Others, "film"))
	case n.Damaged > 0:
		why = fmt.Sprintf("%d of %s could not be read", n.Damaged,
			cli.Count(n.Damaged+n.Read, "picture"))
	case n.Partial > 0 && n.Read == 1:
		why = "it ends too early, and a part is missing"
	case n.Partial == 1:
		why = fmt.Sprintf("1 of %d pictures ends too early, and a part is missing", n.Read)
	case n.Partial > 0:
		why = fmt.Sprintf("%d of %d pictures end too early, and a part is missing", n.Partial,
			n.Read)
	default:
		cli.Detail(c, "%s: %s", cell(path), cli.Count(n.Read, "picture"))
		return
	}
	cli.Warn(c, fmt.Sprintf("%s: %s", cell(path), why))
	o.reading.mu.Lock()
	defer o.reading.mu.Unlock()
	o.reading.short = append(o.reading.short, footage.Left{Path: footage.Name(path), Why: why})
}

// cut notes that a recording could not be read to its end.
func (o *options) cut(c *cobra.Command, path string, n face.Count, err error) {
	why := fmt.Sprintf("it could not be read beyond %s: %s", stamp(n.Last), reason(path, err))
	if n.Length == 0 {
		why = fmt.Sprintf("it could not be read beyond %s: %s", cli.Count(n.Read, "picture"),
			reason(path, err))
	}
	cli.Warn(c, fmt.Sprintf("%s: %s", cell(path), why))
	o.reading.mu.Lock()
	defer o.reading.mu.Unlock()
	o.reading.short = append(o.reading.short, footage.Left{Path: footage.Name(path), Why: why})
}

// moving says in how many photographs there are films.
func moving(c *cobra.Command, n int) {
	if n > 0 {
		cli.Note(c, fmt.Sprintf("not looked at: the film in %s", cli.Count(n, "motion photograph")))
	}
}

// reason returns what an error says beside the name of a recording.
func reason(path string, err error) string {
	why := err.Error()
	for {
		_, rest, found := strings.Cut(why, path+": ")
		if !found {
			return why
		}
		why = rest
	}
}

// missing returns all that could not be read, or not to its end.
func (r *reading) missing() []footage.Left {
	return append(append([]footage.Left{}, r.unread...), r.short...)
}

// end returns the error of a command that has looked at n recordings: that not all could be looked
// at, unless something worse happened. Who may be in the rest; "" for anybody.
func (r *reading) end(err error, n int, who string) error {
	if code := cli.Code(err); err != nil && code != cli.NoFace && code != cli.Refused {
		return err
	}
	if len(r.unread) == n && n > 1 {
		return cli.Fail(cli.BadSource, fmt.Errorf("no %s could be read", r.noun))
	}
	if len(r.unread) == n && n > 0 {
		return cli.Fail(cli.BadSource,
			fmt.Errorf("%s: %s", cell(string(r.unread[0].Path)), r.unread[0].Why))
	}
	var parts []string
	if len(r.unread) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s could not be read: %s", len(r.unread),
			cli.Count(n, r.noun), listed(r.unread)))
	}
	if len(r.short) > 0 {
		parts = append(parts, "a part is missing of "+listed(r.short))
	}
	if left := (footage.Inventory{Left: r.left}).String(); left != "" {
		parts = append(parts, left)
	}
	if len(parts) == 0 {
		return err
	}
	what := strings.Join(parts, "; ")
	if who != "" {
		what += fmt.Sprintf("; %s may be there", who)
	}
	if err != nil {
		return cli.Fail(cli.Partly, fmt.Errorf("%w; %s", err, what))
	}
	return cli.Fail(cli.Partly, errors.New(what))
}

// mostNamed is the number of recordings or pictures that a text names.
const mostNamed = 10

// listed names recordings.
func listed(all []footage.Left) string {
	var names []string
	for _, x := range all[:min(len(all), mostNamed)] {
		names = append(names, cell(string(x.Path)))
	}
	if more := len(all) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// jumps reports whether the times of a film jump: between two frames lies much more time than
// between others.
func jumps(c face.Count) bool {
	const long, usual = 10 * time.Second, 20
	return c.Gap > long && c.Read > 2 && c.Gap > usual*(c.Last-c.Gap)/time.Duration(c.Read-2)
}
