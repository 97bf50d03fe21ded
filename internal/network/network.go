// SPDX-License-Identifier: Apache-2.0

// Package network runs the neural network of a model description on pictures.
//
// [Open] verifies the file and reads it; whatever does not fit the description is an error that
// names the model and wraps [models.ErrShape].
//
// ONNX Runtime runs a network if its library is installed beside the networks and takes this one,
// unless [Prefer] kept that OpenCV is faster on this processor. Else OpenCV does; [Network.Runs]
// says which, and why. The networks of the catalogue that are used have the same results in both.
// Of another network both are compared when it is opened, where both are there. With [Variable] set
// to "opencv" it is always OpenCV.
package network

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/models"
)

// Network is the network of a description. It is used by one goroutine at a time.
type Network struct {
	models.Description
	net     *cv.Net
	refused error // why ONNX Runtime does not run it, or nil
}

// Variable is the environment variable that chooses OpenCV. An eye gets it.
const Variable = "FACEAUTH_EYE_NETWORKS"

// ErrChosen is returned by [Network.Runs] if the environment chooses OpenCV.
var ErrChosen = errors.New(Variable + " is opencv")

// Open opens the network of a description from the folder dir. The error wraps the errors of
// [models.Description.Path], or [models.ErrShape] if the network is of another kind or cannot be
// read.
func Open(d models.Description, kind models.Kind, dir string) (*Network, error) {
	return open(d, kind, dir, opencvFirst(dir))
}

// open opens a network in ONNX Runtime, or, if that is refused or does not work, in OpenCV.
func open(d models.Description, kind models.Kind, dir string, refused error) (*Network, error) {
	n := &Network{Description: d, refused: refused}
	if d.Kind != kind {
		return nil, n.Unfit("it is of kind %s, want %s", d.Kind, kind)
	}
	path, err := d.Path(dir)
	if err != nil {
		return nil, err
	}
	own := !slices.ContainsFunc(models.Catalogue(), func(b models.Description) bool {
		return b.SHA256 == d.SHA256 && b.Tuned() == nil
	})
	var ort *cv.Net
	if refused == nil || own && errors.Is(refused, ErrSlower) {
		ort, err = n.accelerated(path, dir)
		n.refused = cmp.Or(refused, err)
		// Another engine would compute it in silence, and in more time.
		if own && err != nil && !errors.Is(err, install.ErrNoRuntime) &&
			!errors.Is(err, models.ErrHash) {
			return nil, n.Unfit("%w; correct the description, or set %s=opencv to have OpenCV run "+
				"it", err, Variable)
		}
	}
	if ort != nil && own {
		err = n.compare(ort, path)
		if err != nil {
			ort.Close()
			return nil, err
		}
	}
	if n.refused == nil {
		n.net = ort
		return n, nil
	}
	switch {
	case ort != nil:
		ort.Close()
	case own:
		n.refused = fmt.Errorf("%w; what OpenCV computes was not compared with ONNX Runtime",
			n.refused)
	}
	n.net, err = cv.OpenNet(path)
	if errors.Is(err, cv.ErrMemory) {
		return nil, fmt.Errorf("model %s: %w", n.Name, err)
	} else if err != nil { // what OpenCV says of it is about OpenCV's own code
		return nil, n.Unfit("%s holds no network that OpenCV can read", path)
	}
	return n, nil
}

// libraries has the function that checks the library of a folder once: its hash takes longer than
// loading it.
var libraries sync.Map

// accelerated opens the network in ONNX Runtime and runs it once: some faults of a network show
// only then.
func (n *Network) accelerated(path, dir string) (*cv.Net, error) {
	check, _ := libraries.LoadOrStore(dir,
		sync.OnceValues(func() (string, error) { return install.Library(dir) }))
	library, err := check.(func() (string, error))()
	if err != nil {
		return nil, err
	}
	model, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	model, err = rewrite(model)
	if err != nil {
		return nil, err
	}
	net, err := cv.OpenRuntime(library, model)
	if err != nil {
		return nil, err
	}
	trial := &Network{Description: n.Description, net: net}
	if err := trial.Try(func(blank *cv.Image) error {
		_, err := trial.Forward(blank)
		return err
	}); err != nil {
		net.Close()
		return nil, err
	}
	return net, nil
}

// mostApart is how far outputs of both engines may be apart, as a share of the largest value, or of
// 1 if that is less. The built-in networks differ by 1e-6.
const mostApart = 1e-3

// compare returns an error if OpenCV computes another result than ONNX Runtime, of a picture of
// many colours. OpenCV 4.6 and 4.10 read attributes of some operators and leave them out in
// silence, such as alpha and beta of Gemm, count_include_pad, SAME_LOWER, and slopes of PRelu for
// each pixel. A network that OpenCV does not read is not compared.
func (n *Network) compare(ort *cv.Net, path string) error {
	opencv, err := cv.OpenNet(path)
	if err != nil {
		return nil
	}
	defer opencv.Close()
	size := n.tried()
	pix := make([]byte, 3*size.X*size.Y)
	for i := range pix {
		pix[i] = byte(i * i / 7)
	}
	img, err := cv.FromBGR(size, pix)
	if err != nil {
		return n.Unfit("%w", err)
	}
	defer img.Close()
	a, err := (&Network{Description: n.Description, net: ort}).Forward(img)
	if err != nil {
		return err
	}
	b, err := (&Network{Description: n.Description, net: opencv}).Forward(img)
	if errors.Is(err, cv.ErrMemory) {
		return err
	}
	for i := range b {
		apart, most := 0., 1.
		if len(a[i].Data) != len(b[i].Data) {
			apart = math.Inf(1)
		}
		for j := range min(len(a[i].Data), len(b[i].Data)) {
			x, y := float64(a[i].Data[j]), float64(b[i].Data[j])
			apart, most = max(apart, math.Abs(x-y)), max(most, math.Abs(x))
		}
		if apart > mostApart*most {
			return n.Unfit("ONNX Runtime and OpenCV %s compute different results of it, by %.2g "+
				"in the output %d; export it without the attributes that OpenCV leaves out",
				cv.Version(), apart, i+1)
		}
	}
	return nil
}

// Runs names the program that runs the network, with its version. The error says why it is not ONNX
// Runtime.
func (n *Network) Runs() (string, error) { return n.net.Runs(), n.refused }

// ran counts the runs of all networks.
var ran atomic.Int64

// Ran returns how often networks have run in this process: by this others see that it goes on.
func Ran() int64 { return ran.Load() }

// Forward returns the outputs of the network for a picture, in the order of the description.
func (n *Network) Forward(img *cv.Image) ([]cv.Tensor, error) {
	return n.ForwardAs(img, n.Feed(img.Size(), n.Input.Width))
}

// ForwardAs is Forward with an input of this size.
func (n *Network) ForwardAs(img *cv.Image, size image.Point) ([]cv.Tensor, error) {
	defer ran.Add(1)
	out, err := n.net.Forward(img, cv.Blob{
		Size: size, Scale: n.Input.Scale, Mean: n.Input.Mean,
		RGB: n.Input.Colour == "rgb", Gray: n.Input.Colour == "gray",
	}, n.Outputs...)
	if errors.Is(err, cv.ErrMemory) {
		return nil, fmt.Errorf("model %s: %w", n.Name, err)
	}
	if err != nil {
		return nil, n.Unfit("it does not run with an input of %dx%d, colour %s, and the outputs %q",
			size.X, size.Y, n.Input.Colour, n.Outputs)
	}
	return out, nil
}

// Try calls f with a black picture of the input's size, or, if that is free, of a small one.
// Callers use it after Open, to find a network with wrong outputs before the first face.
func (n *Network) Try(f func(blank *cv.Image) error) error { return n.try(n.tried(), f) }

// tried is the size of an input that is only tried.
func (n *Network) tried() image.Point {
	if step := n.Input.Step; step > 0 {
		return image.Pt(3*step, 2*step)
	}
	return image.Pt(n.Input.Width, n.Input.Height)
}

func (n *Network) try(size image.Point, f func(blank *cv.Image) error) error {
	blank, err := cv.NewImage(size, color.RGBA{})
	if err != nil {
		return n.Unfit("%w", err)
	}
	defer blank.Close()
	return f(blank)
}

// Unfit returns an error that says why the network does not fit its description.
func (n *Network) Unfit(format string, args ...any) error {
	return fmt.Errorf("model %s: %w: %w", n.Name, models.ErrShape, fmt.Errorf(format, args...))
}

// Close frees the network. It may be called twice.
func (n *Network) Close() error { return n.net.Close() }

// ErrSlower is returned by [Network.Runs] if [Prefer] kept that OpenCV is faster.
var ErrSlower = errors.New("OpenCV was faster on this processor when faceauth doctor measured both")

// Cost is the time of one run of a network in each engine: the least of several, which a busy
// machine disturbs least. Runtime is 0 if ONNX Runtime does not run it.
type Cost struct{ Runtime, OpenCV time.Duration }

// Measure runs a network by turns in ONNX Runtime and in OpenCV. The errors are those of [Open].
func Measure(d models.Description, dir string) (c Cost, err error) {
	opencv, err := open(d, d.Kind, dir, ErrChosen)
	if err != nil {
		return c, err
	}
	defer opencv.Close()
	ort, err := open(d, d.Kind, dir, nil)
	if err != nil {
		return c, err
	}
	defer ort.Close()
	for range 8 {
		if ort.refused == nil {
			if err := ort.least(&c.Runtime); err != nil {
				return c, err
			}
		}
		if err := opencv.least(&c.OpenCV); err != nil {
			return c, err
		}
	}
	return c, nil
}

// least runs the network once, and keeps the time if it is the least. An input of any size gets the
// least part of a frame that is looked at.
func (n *Network) least(took *time.Duration) error {
	size := n.tried()
	if n.Input.Step > 0 {
		size = image.Pt(640, 480)
	}
	before := cv.ForwardTime()
	err := n.try(size, func(blank *cv.Image) error { _, err := n.Forward(blank); return err })
	if t := cv.ForwardTime() - before; *took == 0 || t < *took {
		*took = t
	}
	return err
}

// faster is the file beside the networks that says that OpenCV is faster, and on what. Every eye
// reads it there, also the eye of another user's daemon, and only doctor changes it: the choice is
// the same in all runs between.
const faster = "opencv-is-faster"

// on names what the comparison holds for: a machine with another processor or other libraries
// compares anew.
func on() string {
	return fmt.Sprintf("%s, OpenCV %s, ONNX Runtime %s\n", cv.Processor(), cv.Version(),
		install.Version)
}

// opencvFirst returns nil, or why OpenCV runs the networks of a folder.
func opencvFirst(dir string) error {
	if os.Getenv(Variable) == "opencv" {
		return ErrChosen
	}
	if kept, err := os.ReadFile(filepath.Join(dir, faster)); err == nil && string(kept) == on() {
		return ErrSlower
	}
	return nil
}

// Prefer keeps in the folder of the networks whether OpenCV runs them from now on, and reports
// whether that is new. An error says that the folder cannot be written.
func Prefer(dir string, opencv bool) (changed bool, err error) {
	path := filepath.Join(dir, faster)
	kept, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	switch is := err == nil && string(kept) == on(); {
	case is == opencv:
		return false, nil
	case opencv:
		return true, os.WriteFile(path, []byte(on()), 0o644)
	}
	return true, os.Remove(path)
}
