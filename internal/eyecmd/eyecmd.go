// SPDX-License-Identifier: Apache-2.0

// Package eyecmd is the program faceauth-eye: everything that the other programs do with OpenCV, in
// processes of its own.
//
// [Main] is the program. Without a command it is an eye. The commands check what is installed,
// draw, and make the demo's recordings, for trusted input: they have no sandbox.
package eyecmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"strings"
	"time"

	"github.com/faceauth/faceauth/eye/serve"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/cli"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/demo/film"
	"github.com/faceauth/faceauth/internal/drawing"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/models"
	"github.com/spf13/cobra"
)

// Main runs the command line of the process, and ends it.
func Main() {
	var of string
	command := func(use, short string, run func(c *cobra.Command, args []string) (answer any,
		err error)) *cobra.Command {
		arguments := strings.Count(use, " ")
		return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(arguments),
			RunE: func(c *cobra.Command, args []string) error {
				answer, err := run(c, args)
				if err != nil || answer == nil {
					return err
				}
				return json.NewEncoder(c.OutOrStdout()).Encode(answer)
			}}
	}
	root := cli.Root(command("faceauth-eye",
		"decode and see for other programs of faceauth; not for people",
		func(c *cobra.Command, _ []string) (any,
			error) {
			return nil, serve.Main(c.Context(), 3, of)
		}),
		command("check MODELS", "print which parts of the machine work",
			func(_ *cobra.Command, args []string) (any, error) { return check(args[0]), nil }),
		command("demo FOLDER", "make the demo's recordings",
			func(c *cobra.Command, args []string) (any, error) {
				stills, err := demo.Find()
				if err != nil {
					return nil, err
				}
				return film.Write(c.Context(), stills, args[0])
			}),
		command("show", "show the frames of the input in a window",
			func(c *cobra.Command, _ []string) (any, error) { return nil, show(c.InOrStdin()) }),
		command("film FILE", "write the frames of the input to a video",
			func(c *cobra.Command, args []string) (any,
				error) {
				return nil, write(c.InOrStdin(), args[0])
			}))
	root.Flags().StringVar(&of, "for", "",
		"the only user for whom it looks (default: the user who runs it)")
	cli.Main(func() *cobra.Command { return root }, "")
}

// check tries what only this program can try, with the networks of a folder.
func check(dir string) (all cli.Findings) {
	add := func(what, good string, err error) { all.Add("optional", what, err, good) }
	add("OpenCV", cv.Version(), nil)
	if install.Missing(dir) == nil { // the row of the neural networks says so
		running, err := runs(dir)
		add("ONNX Runtime", running, err)
		one, err := cost(dir)
		add("one face", one, err)
	} else { // what else would find faces
		haar, err := facedet.Haar()
		if err == nil {
			haar.Close()
		}
		add("Haar cascade", "of opencv-data", err)
	}
	sandbox, err := serve.Available()
	add("sandbox of the decoders", sandbox, err)
	_, err = demo.Find()
	if err != nil {
		err = errors.New("its photographs are not here; faceauth demo says where they come from")
	}
	add("demo", "its photographs are there", err)
	return all
}

// runs opens the networks, and names what runs them. The error says why it is OpenCV, for at least
// one.
func runs(dir string) (running string, err error) {
	for _, d := range models.Present(dir) {
		n, err := network.Open(d, d.Kind, dir)
		if err != nil {
			continue // the row of the model says why
		}
		n.Close()
		name, err := n.Runs()
		if err != nil {
			return "", fmt.Errorf("%w; %s runs the networks", err, name)
		}
		running = strings.TrimPrefix(name, "ONNX Runtime ") + " runs the networks"
	}
	if running == "" {
		return "", errors.New("no neural network can be opened")
	}
	return running, nil
}

// cost measures what one face costs in both engines, and keeps for all eyes which one is faster.
func cost(dir string) (string, error) {
	cv.OneThread() // as eyes run them
	var total network.Cost
	both := false
	var parts []string
	what := map[models.Kind]string{
		models.Detector: "detection", models.Landmarks: "landmarks", models.Embedding: "embedding",
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }
	for _, d := range models.Builtin() {
		name := what[d.Kind]
		if name == "" {
			continue // liveness is scored at logins only
		}
		if d.Kind == models.Detector {
			d = models.Best(dir)
		}
		c, err := network.Measure(d, dir)
		if err != nil {
			return "", err
		}
		if c.Runtime == 0 {
			c.Runtime = c.OpenCV // which runs it for want of the other
		} else {
			both = true
		}
		total.Runtime += c.Runtime
		total.OpenCV += c.OpenCV
		parts = append(parts, fmt.Sprintf("%s %s", name, ms(c.Runtime)))
	}
	if !both {
		return fmt.Sprintf("%s in OpenCV", strings.Join(parts, ", ")), nil
	}
	text := fmt.Sprintf("%s in ONNX Runtime; together %s, in OpenCV %s", strings.Join(parts, ", "),
		ms(total.Runtime), ms(total.OpenCV))
	// A tenth is within the noise.
	slower := total.Runtime > total.OpenCV*11/10
	changed, err := network.Prefer(dir, slower)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s, but it could not be kept that OpenCV is to run the networks: "+
			"%w; run faceauth doctor as the owner of the folder", text, err)
	case slower:
		text += ": OpenCV is faster on this processor, and runs the networks"
	case changed:
		text += ": ONNX Runtime is faster again, and runs the networks"
	}
	return text, nil
}

// draw returns the picture of a frame with its boxes. The caller closes it.
func draw(f drawing.Frame) (*facedet.Picture, error) {
	small, err := facedet.DecodePicture(f.JPEG)
	if err != nil {
		return nil, err
	}
	defer small.Close()
	img, err := small.Resize(f.Size)
	if err != nil {
		return nil, err
	}
	for _, b := range f.Boxes {
		img.DrawBox(b.Rect, b.Text, b.Colour)
	}
	return img, nil
}

// show shows frames in a window until the user closes it.
func show(frames io.Reader) error {
	w, err := cv.NewWindow("faceauth")
	if err != nil {
		return err
	}
	defer w.Close()
	return drawing.Read(frames, func(f drawing.Frame) (bool, error) {
		img, err := draw(f)
		if err != nil {
			return false, err
		}
		defer img.Close()
		return w.Show(img), nil
	})
}

// write writes frames to a video of 25 frames a second, which only its owner can read: motion JPEG
// if path ends in .avi; otherwise path gets the ending .mp4, for H.264, or .avi, where that cannot
// be written.
func write(frames io.Reader, path string) error {
	file, codec := path, "MJPG"
	path, avi := strings.CutSuffix(path, ".avi")
	if !avi {
		file, codec = path+".mp4", "avc1"
	}
	rec := cv.NewVideoWriter(file, codec, 25)
	record := func(img *facedet.Picture) error {
		err := rec.Write(img)
		if errors.Is(err, cv.ErrNoCodec) && file != path+".avi" {
			os.Remove(file)
			file = path + ".avi"
			rec = cv.NewVideoWriter(file, "MJPG", 25)
			err = rec.Write(img)
		}
		return err
	}
	var size image.Point // of the first frame
	err := drawing.Read(frames, func(f drawing.Frame) (bool, error) {
		img, err := draw(f)
		if err != nil {
			return false, err
		}
		defer img.Close()
		if size == (image.Point{}) {
			size = f.Size
		}
		if f.Size == size {
			return true, record(img)
		}
		// pictures of a folder may differ in size; frames of a video may not
		same, err := img.Resize(size)
		if err != nil {
			return false, err
		}
		defer same.Close()
		return true, record(same)
	})
	err = errors.Join(err, rec.Close())
	if err == nil && size != (image.Point{}) {
		err = os.Chmod(file, 0o600)
	}
	return err
}
