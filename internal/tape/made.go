// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
)

// shot is a frame of a source of made-up people.
type shot struct {
	index  int
	at     time.Duration
	actors []Actor
	file   string // of a picture
	still  bool
}

// fewest is the number of pictures from which made-up ones in a folder follow one another.
const fewest = 25

// source gives the frames of a made-up source, and io.EOF after the last one.
type source interface {
	next() (shot, error)
	count() face.Count
	close()
}

// errNoFilm is returned for a source that holds nothing made-up.
var errNoFilm = errors.New("nothing made-up")

// open opens a made-up source: a film, a picture, a folder of pictures, or a camera that sends
// pictures.
func open(q wire.Open[eye.Options]) (source, error) {
	if strings.HasPrefix(q.Name, "rtsp") {
		return nil, errNoFilm
	}
	if input.IsURL(q.Name) {
		c, err := connect(q.Name, q.Options.Timeout)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
	f, declared, err := load(q.Name, q.Options.Files)
	if err != nil {
		return nil, err
	}
	n := len(f.pictures)
	alone := q.Options.Series == face.Photographs || q.Options.Series == face.Followed && n < fewest
	still := n == 1 || n > 0 && (alone || q.Options.Files != nil)
	r := &recording{film: f, still: still, begun: time.Now(),
		live:    q.Options.Live && q.Options.Pace,
		counted: face.Count{Declared: declared, Length: length(f, declared)}}
	if q.Options.FPS > 0 && f.FPS > 0 && !still {
		r.step = max(1, int(f.FPS/q.Options.FPS+.5))
	}
	return r, nil
}

// length returns that of a film.
func length(f Film, declared int) time.Duration {
	if f.FPS == 0 || len(f.pictures) > 0 {
		return 0
	}
	return time.Duration(float64(declared) / f.FPS * float64(time.Second))
}

func load(name string, files []string) (f Film, declared int, err error) {
	if len(files) > 0 {
		return album(files)
	}
	info, err := os.Stat(name)
	if err != nil {
		return f, 0, err
	}
	if !info.IsDir() {
		b, err := os.ReadFile(name)
		if err != nil {
			return f, 0, err
		}
		f, declared, ok := read(b)
		if !ok {
			return f, 0, errNoFilm
		}
		if _, picture := note(b); picture {
			f.pictures = []string{name}
		}
		return f, declared, nil
	}
	names, err := footage.Pictures(name)
	if err != nil {
		return f, 0, err
	}
	return album(names)
}

// album returns the film of pictures.
func album(names []string) (f Film, declared int, err error) {
	f.FPS = 25
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			return f, 0, err
		}
		actors, ok := note(b)
		if !ok {
			return f, 0, errNoFilm
		}
		f.Frames = append(f.Frames, actors)
	}
	if len(names) == 0 {
		return f, 0, errNoFilm
	}
	f.pictures = names
	return f, len(names), nil
}

// recording plays a film.
type recording struct {
	film    Film
	counted face.Count
	still   bool // photographs
	step    int  // each how manieth frame is given; 0 for all
	live    bool
	begun   time.Time
}

func (r *recording) next() (shot, error) {
	for {
		i := r.counted.Read
		if i >= len(r.film.Frames) {
			return shot{}, io.EOF
		}
		r.counted.Read++
		if r.step > 1 && i%r.step != 0 {
			continue
		}
		at := time.Duration(float64(i) / r.film.FPS * float64(time.Second))
		if r.live {
			late := time.Since(r.begun) - at
			if late > time.Second && i+1 < len(r.film.Frames) {
				r.counted.Dropped++
				continue
			}
			time.Sleep(-late)
		}
		if i > 0 {
			r.counted.Gap = max(r.counted.Gap, at-r.counted.Last)
		}
		r.counted.Last = at
		x := shot{index: i, at: at, actors: r.film.Frames[i]}
		if len(r.film.pictures) > 0 {
			x.file, x.still = filepath.Base(r.film.pictures[i]), r.still
		}
		return x, nil
	}
}

func (r *recording) count() face.Count { return r.counted }
func (r *recording) close()            {}

// camera reads pictures from a network camera. Only the newest one is given.
type camera struct {
	body    io.Closer
	parts   *multipart.Reader
	timeout time.Duration
	begun   time.Time

	mu     sync.Mutex // guards the fields below
	newest shot
	read   int
	given  int
	err    error
	come   chan struct{} // a picture has come, or the end
}

func connect(name string, timeout time.Duration) (*camera, error) {
	ctx, cancel := context.WithCancel(context.Background())
	limit := time.AfterFunc(timeout, cancel)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	shown := input.Shown(name)
	a, err := http.DefaultClient.Do(q)
	switch {
	case !limit.Stop():
		return nil, fmt.Errorf("opening source %s: %w: none after %v", shown, face.ErrTimeout,
			timeout)
	case err != nil:
		cancel()
		return nil, fmt.Errorf("opening source %s: %w", shown, face.ErrServer)
	case a.StatusCode != http.StatusOK:
		cancel()
		return nil, fmt.Errorf("opening source %s: %w: %s", shown, face.ErrServer, a.Status)
	}
	_, with, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("opening source %s: %w", shown, face.ErrNotVideo)
	}
	c := &camera{body: a.Body, parts: multipart.NewReader(a.Body, with["boundary"]),
		timeout: timeout, begun: time.Now(), come: make(chan struct{}, 1)}
	go c.receive()
	if err := c.wait(); err != nil {
		c.close()
		cancel()
		return nil, fmt.Errorf("opening source %s: %w", shown, err)
	}
	return c, nil
}

func (c *camera) receive() {
	for ended := false; !ended; {
		actors, err := c.picture()
		ended = err != nil
		c.mu.Lock()
		if ended {
			c.err = err
		} else {
			c.newest = shot{index: c.read, at: time.Since(c.begun), actors: actors}
			c.read++
		}
		c.mu.Unlock()
		select {
		case c.come <- struct{}{}:
		default:
		}
	}
}

func (c *camera) picture() ([]Actor, error) {
	part, err := c.parts.NextPart()
	if err != nil {
		return nil, io.EOF
	}
	b, err := io.ReadAll(part)
	if err != nil {
		return nil, io.EOF
	}
	actors, ok := note(b)
	if !ok {
		return nil, face.ErrNotVideo
	}
	return actors, nil
}

// wait waits for a picture that was not given yet.
func (c *camera) wait() error {
	for end := time.After(c.timeout); ; {
		c.mu.Lock()
		fresh, err := c.read > 0 && c.newest.index >= c.given, c.err
		c.mu.Unlock()
		if fresh {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-c.come:
		case <-end:
			return fmt.Errorf("%w: none after %v", face.ErrTimeout, c.timeout)
		}
	}
}

func (c *camera) next() (shot, error) {
	if err := c.wait(); err != nil {
		return shot{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = c.newest.index + 1
	return c.newest, nil
}

func (c *camera) count() face.Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return face.Count{Declared: -1, Read: c.read}
}

func (c *camera) close() { c.body.Close() }

// viewer answers about a made-up source as a real eye does, except that it holds no face.
type viewer struct {
	source
	space    face.Space
	liveness bool
	open     wire.Open[eye.Options]
	tracks   map[string]int // of the people in the last frame
	last     int            // the last number of a track
}

func (v *viewer) next(q wire.Next) (wire.Message, error) {
	x, err := v.source.next()
	if errors.Is(err, io.EOF) {
		return wire.Message{Kind: wire.End, Count: v.count()}, nil
	}
	if err != nil {
		return wire.Message{}, err
	}
	if err := noted(x); err != nil {
		return wire.Message{}, err
	}
	turned, _, _ := v.open.Options.Rotate.Degrees()
	f := face.Frame{Index: x.index, Time: x.at, Size: size, Turned: turned, Still: x.still,
		File: x.file}
	tracks := make(map[string]int)
	for i, a := range x.actors[:min(len(x.actors), v.open.Options.Faces)] {
		who := a.Who
		if tracks[who] > 0 {
			who = fmt.Sprint(who, i) // a film may show somebody twice
		}
		tracks[who] = v.tracks[who]
		if tracks[who] == 0 {
			v.last++
			tracks[who] = v.last
		}
		f.Samples = append(f.Samples, v.sample(a, tracks[who]))
	}
	v.tracks = tracks
	if q.Picture {
		f.JPEG = JPEG(x.actors...)
	}
	return wire.Message{Kind: wire.Image, Count: v.count(), Frame: f}, nil
}

// Variables of the environment: the file to which the stand-in appends a byte for each picture that
// it looks at, and the length at which it waits to be ended.
const (
	Looks = "FACEAUTH_EYE_LOOKS"
	Hold  = "FACEAUTH_EYE_HOLD"
)

// noted writes down that a picture is looked at.
func noted(x shot) error {
	path := os.Getenv(Looks)
	if path == "" || !x.still {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if most, _ := strconv.ParseInt(os.Getenv(Hold), 10, 64); most > 0 && info.Size() >= most {
		time.Sleep(10 * time.Minute)
	}
	_, err = f.WriteString(".")
	return err
}

func (v *viewer) sample(a Actor, track int) face.Sample {
	s := a.sample(track, v.space)
	if v.open.Options.Picture > 0 {
		s.JPEG = a.crop(v.open.Options.Picture)
	}
	if v.liveness {
		live := float32(.99)
		if a.Lifeless {
			live = .01
		}
		s.Liveness = &live
	}
	if v.open.Options.Gate != eye.Learn && s.Reason == "" && math.Abs(a.Turn) > .6 {
		s.Reason = face.TurnedAway
	}
	if v.open.Options.Gate == eye.Enrol && v.space.Unit && s.Reason == "" {
		s.Turns = &face.Turns{s.Quality.Norm, 1, 1, 1}
	}
	return s
}
