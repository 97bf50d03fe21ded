package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/maruel/natural"
	"github.com/spf13/cobra"
)

// A file with one of these endings is meant to be a recording: one that cannot be read is an error,
// and not a note that somebody left beside the recordings.
var videoExtensions = []string{".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv", ".flv", ".ts", ".3gp", ".mjpeg", ".mjpg"}

func isVideo(path string) bool {
	return slices.Contains(videoExtensions, strings.ToLower(filepath.Ext(path)))
}

// labelledRecordings says what a folder of recordings is, for the help of commands that take one.
const labelledRecordings = "DIR holds one entry for each identity: a video, a folder of images, or a folder of several such\n" +
	"recordings of one person, which are taken in natural order. Of several faces in a frame the largest counts."

// recordings reads the faces of all identities in dir. How says how each is read; nil for with nothing special.
func (o *options) recordings(c *cobra.Command, v *vision, dir string, how func(name string) pipeline.Options) (ids []evaluate.Identity, names []string, err error) {
	paths, err := entries(dir)
	if err != nil {
		return nil, nil, fail(badSource, fmt.Errorf("%w; it should hold one folder of images or one video for each identity", err))
	}
	for _, path := range paths {
		var opt pipeline.Options
		if how != nil {
			opt = how(identityName(path))
		}
		id, err := o.identity(c, v, path, opt)
		if passedOver(c, path, err) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(names, id.Name) {
			return nil, nil, fail(badSource, fmt.Errorf("%s has two recordings of %q", dir, id.Name))
		}
		ids, names = append(ids, id), append(names, id.Name)
	}
	if len(ids) == 0 {
		return nil, nil, fail(badSource, fmt.Errorf("%s holds neither folders of images nor videos", dir))
	}
	return ids, names, nil
}

// passedOver reports whether what lies at path, of which err is the error, is meant to be no recording, and says so.
func passedOver(c *cobra.Command, path string, err error) bool {
	other := errors.Is(err, facedet.ErrNotVideo) && !isVideo(path)
	if other {
		warn(c, path+" is neither a recording nor a folder of images, and is passed over")
	}
	return other
}

// eachRecording calls do with each recording of each identity in dir. What do finds to be none is passed over where it is
// not meant to be one.
func eachRecording(c *cobra.Command, dir string, do func(person, path string) error) error {
	paths, err := entries(dir)
	if err != nil {
		return fail(badSource, err)
	}
	for _, path := range paths {
		all, err := sessions(c, path)
		if err != nil {
			return fail(badSource, err)
		}
		for _, p := range all {
			if err := do(identityName(path), p); err != nil && !passedOver(c, p, err) {
				return err
			}
		}
	}
	return nil
}

// entries returns what is in a folder and not hidden, in natural order.
func entries(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	var paths []string
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s is empty", dir)
	}
	slices.SortFunc(paths, natural.Compare)
	return paths, nil
}

// fakePrefix begins the names of recordings in which a picture or a video of the person is held before the camera.
const fakePrefix = "fake"

func isFake(path string) bool { return strings.HasPrefix(filepath.Base(path), fakePrefix) }

// sessions returns the recordings of the identity at path: the path itself, or what a folder without
// images holds.
func sessions(c *cobra.Command, path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, nil
	}
	inside, err := entries(path)
	if err != nil {
		return []string{path}, nil // its error says what should be there
	}
	var all []string
	for _, p := range inside {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("opening %s: %w", p, err)
		}
		if info.IsDir() || isVideo(p) {
			all = append(all, p)
		}
	}
	if facedet.HasImages(path) {
		for _, p := range all {
			warn(c, p+" lies among images of one recording, and is passed over")
		}
		return []string{path}, nil
	}
	if len(all) == 0 {
		return []string{path}, nil
	}
	return all, nil
}

// identityName returns the name of the identity at path.
func identityName(path string) string {
	name := filepath.Base(path)
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	return name
}

// identity reads the faces of one person from all recordings at path.
func (o *options) identity(c *cobra.Command, v *vision, path string, opt pipeline.Options) (evaluate.Identity, error) {
	id := evaluate.Identity{Name: identityName(path)}
	all, err := sessions(c, path)
	if err != nil {
		return id, fail(badSource, err)
	}
	if len(all) > 1 {
		all = slices.DeleteFunc(all, func(p string) bool {
			if isFake(p) {
				warn(c, p+" is an attack by its name, and is passed over; see --attack replay")
			}
			return isFake(p)
		})
	}
	return o.join(c, v, id.Name, all, opt)
}

// join reads the faces of one person from recordings, one after the other.
func (o *options) join(c *cobra.Command, v *vision, name string, paths []string, opt pipeline.Options) (evaluate.Identity, error) {
	id := evaluate.Identity{Name: name, Refused: make(map[face.Reason]int)}
	for _, path := range paths {
		part, err := o.session(c, v, name, path, opt)
		if err != nil {
			return id, err
		}
		id.Faces, id.Undetected = append(id.Faces, part.Faces...), id.Undetected+part.Undetected
		id.NoVector, id.Several = id.NoVector+part.NoVector, id.Several+part.Several
		for reason, n := range part.Refused {
			id.Refused[reason] += n
		}
	}
	return id, nil
}

// session reads the faces of one recording of a person.
func (o *options) session(c *cobra.Command, v *vision, name, path string, opt pipeline.Options) (evaluate.Identity, error) {
	src, err := o.source(c, path)
	if err != nil {
		return evaluate.Identity{}, err
	}
	defer src.Close()
	bar := newProgress(src.Count().Declared, name)
	defer bar.end()
	opt.Gate = preprocess.LearnGate
	frames := pipeline.New(src, v.detector, v.extractor, opt)
	refused := make(map[face.Reason]int)
	id, err := evaluate.Read(c.Context(), name, counted{frames, bar}, func(q face.Quality) bool {
		reason := preprocess.EnrolGate.Check(q)
		if reason != "" {
			refused[reason]++
		}
		return reason == ""
	})
	id.Refused = refused
	if err != nil {
		return id, o.streamError(c, err)
	}
	if n := src.Count(); n.Declared > n.Read || n.Damaged > 0 {
		warn(c, fmt.Sprintf("%s declares %d frames and gave %d", path, n.Declared, n.Read))
	}
	return id, nil
}

// frames returns what the frames of a source come to.
func (o *options) frames(c *cobra.Command, v *vision, src facedet.Source, name string, opt pipeline.Options) (all []face.Frame, err error) {
	err = o.eachFrame(c, v, src, name, opt, func(f face.Frame) { all = append(all, f) })
	return all, err
}

// eachFrame calls do with what each frame of a source comes to.
func (o *options) eachFrame(c *cobra.Command, v *vision, src facedet.Source, name string, opt pipeline.Options, do func(face.Frame)) error {
	bar := newProgress(src.Count().Declared, name)
	defer bar.end()
	p := pipeline.New(src, v.detector, v.extractor, opt)
	for {
		frame, err := p.Next(c.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return o.streamError(c, err)
		}
		do(frame)
		bar.step()
	}
}

// counted tells a progress bar of each frame.
type counted struct {
	evaluate.Stream
	bar progress
}

func (s counted) Next(ctx context.Context) (face.Frame, error) {
	f, err := s.Stream.Next(ctx)
	if err == nil {
		s.bar.step()
	}
	return f, err
}
