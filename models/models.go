// SPDX-License-Identifier: Apache-2.0

// Package models describes neural networks: where their files are, what input they need, and
// whether a file is the expected one.
//
// [Builtin] lists the networks that the program installs, and [Description.Path] finds and verifies
// a file; the command faceauth-models fetches missing files. For your own detector or embedding in
// ONNX, write a description, a JSON file that [ParseDescription] reads.
//
// # Description files
//
// For an embedding of 512 values:
//
//	{
//	  "name": "my-embedding", "kind": "embedding", "file": "my.onnx",
//	  "sha256": "87aacdfe57510db2af90c0251df680e8eec88f122ee94712121d09bcaaaf3581",
//	  "licence": "MIT", "source": "where it came from",
//	  "input": {"width": 112, "height": 112, "scale": 0.0078125, "mean": [127, 127, 127],
//	    "colour": "bgr"},
//	  "dim": 512, "sigma": 0.2, "gamma": 0.001, "reach": 0.86, "impostor_radius": 0.93,
//	  "genuine_radius": 1.3
//	}
//
// A liveness network has, in place of the last line, the part of the frame that it sees and the
// least mean score for a login:
//
//	"crop": "square", "box_scale": 1.65, "threshold": 0.5
//
// A relative file is looked for beside the description, and then in the folder of the installed
// networks. A channel x of the input is fed as (x - mean)·scale. Without sigma and gamma nobody can
// be recognised yet: faceauth-lab tune measures them and the radii on pictures of a few people.
package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
)

// Errors of [Description.Path].
var (
	ErrMissing = errors.New("model is not installed")
	ErrHash    = errors.New("the model file does not match its description")
)

// ErrShape is wrapped if the inputs or outputs of a network do not fit its description.
var ErrShape = errors.New("model does not fit its description")

// ErrDescription is wrapped by the errors of [ParseDescription] and [Description.Check].
var ErrDescription = errors.New("unusable model description")

// Kind is the task of a network.
type Kind string

const (
	Detector  Kind = "detector"  // finds faces in a picture
	Landmarks Kind = "landmarks" // finds 68 points in a face
	Embedding Kind = "embedding" // turns an aligned face into a vector
	Liveness  Kind = "liveness"  // tells a live face from a picture of a face
)

// Input says how a picture is converted into the input of a network.
type Input struct {
	Width  int        `json:"width"`
	Height int        `json:"height"`
	Scale  float64    `json:"scale"`
	Mean   [3]float64 `json:"mean"`
	Colour string     `json:"colour"` // "rgb", "bgr" or "gray"
	// Step is for a detector whose input may have any size: both sides are multiples of it, and
	// Width and Height are the longest that a look at a frame takes. 0 is a fixed size.
	Step int `json:"step,omitempty"`
}

// Description describes a network and its file. Fields for other kinds are empty.
type Description struct {
	Name    string `json:"name"`
	Kind    Kind   `json:"kind"`
	File    string `json:"file"`
	SHA256  string `json:"sha256"` // in hexadecimal
	Licence string `json:"licence,omitempty"`
	Source  string `json:"source,omitempty"`
	Input   Input  `json:"input"`
	// names of the outputs, in order; default: the last output
	Outputs []string `json:"outputs,omitempty"`

	// Layout says how a detector writes boxes: "", corners [1 N 4] relative to the input, and
	// scores [1 N 2], the second of which is a face's; "yunet", cls_8, cls_16, cls_32, obj_8 to
	// obj_32, bbox_8 to bbox_32, and perhaps kps_8 to kps_32, one box a cell; or "scrfd", three
	// scores [N 1] and three distances to the sides of the box [N 4], two boxes a cell. The last
	// two have outputs for cells of 8, 16 and 32 pixels, in this order, and both sides of the
	// input are multiples of 32. Landmarks that a detector finds may be named and are not used: a
	// network of the kind [Landmarks] finds 68 in each box. With five points of a head that is
	// turned in its plane, the vector is as far from that of the same face upright as from
	// another person's (lab/NOTES.md).
	Layout    string  `json:"layout,omitempty"`
	Threshold float64 `json:"threshold,omitempty"` // detector: least score; liveness: see below
	// detector: overlap above which the weaker of two boxes is dropped
	NMS float64 `json:"nms,omitempty"`
	// Least is the least side, in pixels of its input, of faces that a detector finds for certain.
	// Default 20.
	Least int `json:"least,omitempty"`
	// Sure is the score of a detector from which what it found is a face. Default .85.
	Sure float64 `json:"sure,omitempty"`

	Dim            int     `json:"dim,omitempty"`             // embedding: length of the vector
	Sigma          float64 `json:"sigma,omitempty"`           // embedding: default kernel width
	Gamma          float64 `json:"gamma,omitempty"`           // embedding: default regulariser
	Reach          float64 `json:"reach,omitempty"`           // embedding: see face.Space
	ImpostorRadius float64 `json:"impostor_radius,omitempty"` // embedding: see face.Space
	GenuineRadius  float64 `json:"genuine_radius,omitempty"`  // embedding: see face.Space
	Look           float64 `json:"look,omitempty"`            // embedding: see face.Space

	LearnNorm float64 `json:"learn_norm,omitempty"` // embedding: see face.Space
	ClearNorm float64 `json:"clear_norm,omitempty"` // embedding: see face.Space

	Stills  face.Impostors `json:"stills,omitzero"`  // embedding: see face.Space
	Streams face.Impostors `json:"streams,omitzero"` // embedding: see face.Space

	// For liveness: the part of the frame that the network sees: "square", whose side is the longer
	// side of the box times BoxScale, or "box", the box itself, each side of it times BoxScale.
	// Threshold is the least mean score for a login.
	Crop string `json:"crop,omitempty"`
	// size of this part, relative to the box or its longer side
	BoxScale float64 `json:"box_scale,omitempty"`
}

// outputs is the number of outputs of each layout, without landmarks.
var outputs = map[string]int{"": 2, "yunet": 9, "scrfd": 6}

// Bounds of BoxScale. A smaller part of the frame does not contain the face; in a larger part the
// face is too small.
const (
	minBoxScale = .5
	maxBoxScale = 10
)

// Builtin returns the networks that faceauth-models installs: one of each kind.
func Builtin() []Description {
	const source = "npm package faceplugin-face-recognition-js-0.0.1"
	half := [3]float64{127, 127, 127}
	return []Description{{
		Name: "fr_detect", Kind: Detector, File: "fr_detect.onnx", Licence: "MIT", Source: source,
		SHA256:    "6c0256ccd3164f844736a401faf936ec2930764a87ae39442180887d0c5c8854",
		Input:     Input{Width: 320, Height: 240, Scale: 1. / 128, Mean: half, Colour: "rgb"},
		Outputs:   []string{"boxes", "scores"},
		Threshold: .65, NMS: .4,
	}, {
		Name: "fr_landmark", Kind: Landmarks, File: "fr_landmark.onnx", Licence: "MIT",
		Source: source, SHA256: "f10b0ba1d2a8a099adefede1ebf3733e44fe370715e7303dbeb7f59c02142258",
		Input: Input{Width: 64, Height: 64, Scale: 1. / 256, Colour: "gray"},
	}, {
		Name: "fr_feature", Kind: Embedding, File: "fr_feature.onnx", Licence: "MIT",
		Source: source, SHA256: "87aacdfe57510db2af90c0251df680e8eec88f122ee94712121d09bcaaaf3581",
		Input: Input{Width: 112, Height: 112, Scale: 1. / 128, Mean: half, Colour: "bgr"},
		Dim:   512, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93, GenuineRadius: 1.3,
		Look: .22,
		// lab/NOTES.md says on which recordings they were chosen and checked
		LearnNorm: 2, ClearNorm: 2.8,
		// Measured as lab/NOTES.md says, on lfw and on umist.
		Stills: face.Impostors{People: 2211, Pairs: 7429191,
			Distances: [5]float64{1.230, 1.153, 1.085, 1.023, .947},
			Missed:    [5]float64{.0025, .0075, .0198, .0503, .1222}},
		Streams: face.Impostors{People: 20, Pairs: 22631, Distances: [5]float64{1.125, .986, .876}},
	}, {
		Name: "fr_liveness", Kind: Liveness, File: "fr_liveness.onnx", Licence: "MIT",
		Source: source, SHA256: "afa783b7e902fdfcf323a7240cac2a1c580c25314ea4161129dc1b0d100dc32d",
		Input: Input{Width: 128, Height: 128, Scale: 1, Colour: "bgr"},
		// The middle of the scales 1.5 to 1.8 that others measured on their recordings; here 1.5 to
		// 2.1 give the same results (lab/NOTES.md).
		Crop: "square", BoxScale: 1.65, Threshold: .5,
	}}
}

// Default returns the builtin network of a kind.
func Default(k Kind) Description {
	for _, d := range Builtin() {
		if d.Kind == k {
			return d
		}
	}
	panic("models: no builtin network of kind " + string(k))
}

// Of returns the network of a kind: the builtin one, or, if which is not empty, that of the
// [Catalogue] with this name, or the one described in this file. The errors are those of
// [ParseDescription].
func Of(k Kind, which string) (Description, error) {
	if which == "" {
		return Default(k), nil
	}
	for _, d := range Catalogue() {
		if d.Name == which && d.Kind == k {
			return d, nil
		}
	}
	return ParseDescription(which)
}

// Dir returns the folder of the model files: $FACEAUTH_MODELS, or faceauth/models below
// $XDG_DATA_HOME or ~/.local/share. If this folder does not exist, it is the folder for all users
// below $XDG_DATA_DIRS or /usr/local/share and /usr/share, if there is one.
func Dir() string {
	if dir := os.Getenv("FACEAUTH_MODELS"); dir != "" {
		return dir
	}
	below := filepath.Join("faceauth", "models")
	own := filepath.FromSlash("/.local/share")
	if dir, err := xdg.Data(); err == nil {
		own = dir
	}
	for _, dir := range append([]string{own}, xdg.Shared()...) {
		if info, err := os.Stat(filepath.Join(dir, below)); err == nil && info.IsDir() {
			return filepath.Join(dir, below)
		}
	}
	return filepath.Join(own, below)
}

// in returns the path of the network's file, if the folder of the installed networks is dir.
func (d Description) in(dir string) string {
	if !filepath.IsAbs(d.File) {
		return filepath.Join(dir, d.File)
	}
	installed := filepath.Join(dir, filepath.Base(d.File))
	if _, err := os.Stat(d.File); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(installed); err == nil {
			return installed
		}
	}
	return d.File
}

// Missing returns nil if the network's file exists, without a check of its content, or else the
// error of [Description.Path].
func (d Description) Missing(dir string) error {
	path := d.in(dir)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return nil
	}
	_, err := d.Path(dir)
	return err
}

// Path checks the SHA-256 of the file in dir, or at d.File if that is absolute, and returns its
// path. The error wraps [ErrMissing] or [ErrHash].
func (d Description) Path(dir string) (string, error) {
	path := d.in(dir)
	f, err := safefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("model %s: %w: there is no %s; run: faceauth models install", d.Name,
			ErrMissing, path)
	}
	if err != nil {
		return "", fmt.Errorf("model %s: %w", d.Name, err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("model %s: %w", d.Name, err)
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != strings.ToLower(d.SHA256) {
		return "", fmt.Errorf(
			"model %s: %w: the SHA-256 of %s is %s…, want %s…; run: faceauth models install",
			d.Name, ErrHash, path, sum[:12], d.SHA256[:12])
	}
	return path, nil
}

// Space returns the feature space of an embedding. Its ID has the hash of the network and of its
// input settings: another network, or another order of colours, gives another space.
func (d Description) Space() face.Space {
	in := d.Input
	feed := sha256.Sum256(fmt.Appendf(nil, "%dx%d %g %g %s", in.Width, in.Height, in.Scale, in.Mean,
		in.Colour))
	return face.Space{
		ID: fmt.Sprintf("embedding:%s:%x", d.SHA256[:12], feed[:4]), Dim: d.Dim, Scale: 1,
		Unit:  true,
		Sigma: d.Sigma, Gamma: d.Gamma, Reach: d.Reach, ImpostorRadius: d.ImpostorRadius,
		GenuineRadius: d.GenuineRadius, LearnNorm: d.LearnNorm, ClearNorm: d.ClearNorm,
		Look: d.Look, Stills: d.Stills, Streams: d.Streams,
	}
}

// PixelSide is the width and the height in pixels of the picture in a vector of the space [Pixels].
// The vector holds its grey values in [0,1], row by row.
const PixelSide = 96

// Pixels returns the feature space of the thesis, which needs no network: preprocess.Pixels makes
// its vectors. Sigma comes from the thesis. Gamma limits edges to .107, below the distance at which
// faces of two people begin to occur on att, umist, faces94_subset and fast_videos (lab/NOTES.md).
func Pixels() face.Space {
	return face.Space{ID: "pixels", Dim: PixelSide * PixelSide, Scale: 1. / PixelSide, Sigma: .025,
		Gamma: 1e-3, Reach: .107, ImpostorRadius: .118}
}

// ParseDescription reads your own description from a JSON file. The error wraps [ErrDescription]
// and names the field that cannot be used.
func ParseDescription(path string) (Description, error) {
	var d Description
	f, err := safefile.Open(path)
	if err != nil {
		return d, fmt.Errorf("model description: %w", err)
	}
	defer f.Close()
	dec := json.NewDecoder(io.LimitReader(f, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("%w %s: %w", ErrDescription, path, err)
	}
	if dec.More() {
		return d, fmt.Errorf("%w %s: something follows the description", ErrDescription, path)
	}
	if what := d.flaw(); what != "" {
		return d, fmt.Errorf("%w %s: %s", ErrDescription, path, what)
	}
	if !filepath.IsAbs(d.File) {
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return d, fmt.Errorf("%w %s: %w", ErrDescription, path, err)
		}
		d.File = filepath.Join(dir, d.File)
	}
	return d, nil
}

// Tuned returns nil if the space of an embedding has settings, and otherwise an error that says how
// to get them. It wraps [ErrDescription].
func (d Description) Tuned() error {
	if d.Kind != Embedding || d.Sigma > 0 {
		return nil
	}
	return fmt.Errorf("%w: model %s has no sigma and gamma; measure them: faceauth-lab tune "+
		"PICTURES --embedding-model DESCRIPTION", ErrDescription, d.Name)
}

// flaw says why a description cannot be used, or nothing.
func (d Description) flaw() string {
	positive := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	side := func(n int) bool { return n >= 1 && n <= 4096 }
	sum, err := hex.DecodeString(d.SHA256)
	switch {
	case d.Name == "":
		return "it has no name"
	case d.File == "":
		return "it names no file"
	case err != nil || len(sum) != sha256.Size:
		return "sha256 is not 64 hexadecimal digits"
	case !side(d.Input.Width) || !side(d.Input.Height):
		return fmt.Sprintf("the input is %dx%d; each side must be 1 to 4096", d.Input.Width,
			d.Input.Height)
	case !positive(d.Input.Scale):
		return "the scale of the input is not positive"
	case d.Input.Colour != "rgb" && d.Input.Colour != "bgr" && d.Input.Colour != "gray":
		return fmt.Sprintf("the colour of the input is %q; use rgb, bgr or gray", d.Input.Colour)
	}
	switch d.Kind {
	case Detector:
		n, known := outputs[d.Layout]
		switch {
		case !known:
			return fmt.Sprintf("the layout is %q; use yunet, scrfd, or none for boxes and scores",
				d.Layout)
		case len(d.Outputs) != n && (d.Layout == "" || len(d.Outputs) != n+3) ||
			!positive(d.Threshold) || !positive(d.NMS):
			return fmt.Sprintf(
				"this detector needs the names of %d outputs, a threshold and an nms", n)
		case d.Least < 0 || !(d.Sure >= 0) || !(d.Sure < 1):
			return fmt.Sprintf("a detector finds faces from %d pixels on, and is sure at %v",
				d.Least, d.Sure)
		case d.Input.Step < 0 || d.Input.Step > 0 && d.Layout == "":
			return "a step needs the layout yunet or scrfd"
		case d.Layout != "" && (d.Input.Width%32 != 0 || d.Input.Height%32 != 0):
			return fmt.Sprintf("the input is %dx%d; both sides must be multiples of 32",
				d.Input.Width, d.Input.Height)
		}
	case Embedding:
		both := positive(d.Sigma) && positive(d.Gamma) || d.Sigma == 0 && d.Gamma == 0
		if d.Dim < 1 || d.Dim > 1<<16 || !both || !(d.Reach >= 0) ||
			!(d.ImpostorRadius >= 0) || !(d.GenuineRadius >= 0) || !(d.Look >= 0) {
			return "an embedding needs a dim of 1 to 65536, and a sigma and a gamma, or neither"
		}
		if !(d.LearnNorm >= 0) || !(d.LearnNorm <= d.ClearNorm) || math.IsInf(d.ClearNorm, 1) {
			return "an embedding needs a learn_norm of at most its clear_norm, or neither"
		}
		if err := errors.Join(d.Stills.Check(), d.Streams.Check()); err != nil {
			return err.Error()
		}
	case Liveness:
		switch {
		case d.Crop != "square" && d.Crop != "box":
			return fmt.Sprintf("the crop of a liveness network is %q; use square or box", d.Crop)
		case !(d.BoxScale >= minBoxScale && d.BoxScale <= maxBoxScale):
			return fmt.Sprintf("a liveness network needs a box_scale of %v to %v, got %v",
				minBoxScale, maxBoxScale, d.BoxScale)
		case !(d.Threshold > 0 && d.Threshold < 1):
			return fmt.Sprintf("a liveness network needs a threshold between 0 and 1, got %v",
				d.Threshold)
		}
	case Landmarks:
	default:
		return fmt.Sprintf("the kind is %q; use detector, landmarks, embedding or liveness", d.Kind)
	}
	return ""
}
