// SPDX-License-Identifier: Apache-2.0

package network

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/models"
)

// library returns the path of ONNX Runtime.
func library(t testing.TB) string {
	t.Helper()
	path, err := install.Library(fixture.Models(t))
	if err != nil {
		fixture.Missing(t, "%v", err)
	}
	return path
}

// both opens a network in OpenCV and in ONNX Runtime.
func both(t testing.TB, d models.Description, dir string) (opencv, ort *Network) {
	t.Helper()
	t.Setenv(Variable, "opencv")
	opencv = fixture.Must(Open(d, d.Kind, dir))(t)
	t.Cleanup(func() { opencv.Close() })
	t.Setenv(Variable, "")
	ort = fixture.Must(Open(d, d.Kind, dir))(t)
	t.Cleanup(func() { ort.Close() })
	if runs, err := ort.Runs(); err != nil || !strings.HasPrefix(runs, "ONNX Runtime ") {
		t.Fatalf("%s runs %s, because %v", runs, d.Name, err)
	}
	if runs, err := opencv.Runs(); err != ErrChosen || !strings.HasPrefix(runs, "OpenCV ") {
		t.Fatalf("%s runs %s, because %v", runs, d.Name, err)
	}
	return opencv, ort
}

// difference is the largest difference of the outputs for a picture. An embedding's are compared as
// a login does, on the unit sphere.
func difference(t testing.TB, a, b *Network, img *cv.Image) (most float64) {
	t.Helper()
	x := fixture.Must(a.Forward(img))(t)
	y := fixture.Must(b.Forward(img))(t)
	for i := range x {
		if len(x[i].Data) != len(y[i].Data) || len(x[i].Data) == 0 {
			t.Fatalf("%s: output %d has the shapes %v and %v", a.Name, i, x[i].Shape, y[i].Shape)
		}
		scale := 1.
		if a.Kind == models.Embedding {
			scale = 0
			for _, v := range x[i].Data {
				scale += float64(v) * float64(v)
			}
			scale = math.Sqrt(scale)
		}
		for j := range x[i].Data {
			most = max(most, math.Abs(float64(x[i].Data[j]-y[i].Data[j]))/scale)
		}
	}
	return most
}

// The outputs of both agree within 1e-4 on a blank and on pictures of faces, so they are not
// compared each time that a network is opened.
func TestBothAgree(t *testing.T) {
	dir, _ := fixture.Models(t), library(t)
	files, err := filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/lfw"), "*", "*"))
	if err != nil || len(files) < 100 {
		t.Fatalf("%d pictures, error %v", len(files), err)
	}
	blank := fixture.Must(cv.NewImage(image.Pt(320, 240), color.RGBA{}))(t)
	defer blank.Close()
	yunet := fixture.Must(models.Of(models.Detector, "yunet"))(t)
	yunet.File = fixture.Recordings(t, "models/"+yunet.File)
	for _, d := range append(models.Builtin(), yunet) {
		opencv, ort := both(t, d, dir)
		before := Ran()
		fixture.Check(t, fixture.Must(Open(d, d.Kind, dir))(t).Close())
		if n := Ran() - before; n != 1 {
			t.Errorf("%s: it runs %d times to be opened", d.Name, n)
		}
		most := difference(t, opencv, ort, blank)
		pictures := 100
		if testing.Short() {
			pictures = 12
		}
		for i := 0; i < len(files); i += len(files) / pictures {
			img := fixture.Must(cv.ReadImage(files[i]))(t)
			most = max(most, difference(t, opencv, ort, img))
			img.Close()
		}
		t.Logf("%s: %.1e", d.Name, most)
		if most > 1e-4 {
			t.Errorf("%s: the outputs differ by %v", d.Name, most)
		}
	}
}

// model is an ONNX model of one operator, on an input of shape [1,3,4,5]. Its second input has the
// shape dims.
func model(op string, dims []int, values []float32) []byte {
	info := func(number int, name string) []byte {
		var shape []byte
		for _, n := range []int{1, 3, 4, 5} {
			shape = append(shape, bytesField(1, varintField(1, n))...)
		}
		tensor := bytesField(1, append(varintField(1, typeFloat), bytesField(2, shape)...))
		return bytesField(number, append(bytesField(1, name), bytesField(2, tensor)...))
	}
	tensor := append(varintField(fieldDims, dims...), varintField(fieldDataType, typeFloat)...)
	tensor = append(tensor, bytesField(fieldTensorName, "a")...)
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	tensor = append(tensor, bytesField(fieldRaw, raw)...)
	graph := append(node(op, "y", nil, "x", "a"), bytesField(2, "g")...)
	graph = append(graph, bytesField(fieldInitializer, tensor)...)
	graph = append(append(graph, info(11, "x")...), info(12, "y")...)
	b := append(varintField(1, 7), bytesField(fieldGraph, graph)...)
	return append(b, bytesField(8, varintField(2, 12))...)
}

// run returns the output of a model for a picture.
func run(t *testing.T, library string, model []byte, img *cv.Image) []float32 {
	t.Helper()
	net := fixture.Must(cv.OpenRuntime(library, model))(t)
	defer net.Close()
	out := fixture.Must(net.Forward(img, cv.Blob{Size: image.Pt(5, 4), Scale: 1. / 64,
		Mean: [3]float64{128, 128, 128}}))(t)
	return out[0].Data
}

// A rewritten PReLU is the original within the rounding, for slopes below 0, between 0 and 1, and
// above 1.
func TestRewriteIsExact(t *testing.T) {
	path := library(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []float64{1, 3} {
		for range 20 {
			a := make([]float32, 3)
			for i := range a {
				a[i] = float32(most - r.Float64()*4)
			}
			noise := make([]byte, 60)
			for i := range noise {
				noise[i] = byte(r.Uint32())
			}
			img := fixture.Must(cv.FromBGR(image.Pt(5, 4), noise))(t)
			original := model("PRelu", []int{3, 1, 1}, a)
			rewritten, err := rewrite(original)
			if err != nil || strings.Contains(string(rewritten), "PRelu") ||
				!strings.Contains(string(rewritten), "Conv") {
				t.Fatalf("rewritten: %q, error %v", rewritten, err)
			}
			want, got := run(t, path, original, img), run(t, path, rewritten, img)
			for i := range want {
				if math.Abs(float64(want[i]-got[i])) > 2e-6 {
					t.Fatalf("slopes %v, value %d: %v, want %v", a, i, got[i], want[i])
				}
			}
			img.Close()
		}
	}
}

// A PReLU with another kind of slopes stays, and so does another operator. Damaged models are
// errors.
func TestRewriteLeavesOthers(t *testing.T) {
	for name, m := range map[string][]byte{
		"one slope":        model("PRelu", []int{1, 1, 1}, []float32{.5}),
		"one a pixel":      model("PRelu", []int{3, 4, 5}, make([]float32, 60)),
		"too few values":   model("PRelu", []int{3, 1, 1}, []float32{.5}),
		"another operator": model("Mul", []int{3, 1, 1}, []float32{.5, .5, .5}),
	} {
		if got, err := rewrite(m); err != nil || string(got) != string(m) {
			t.Errorf("%s: error %v, or it was changed", name, err)
		}
	}
	whole := model("PRelu", []int{3, 1, 1}, []float32{.5, .5, .5})
	for n := range whole {
		rewrite(whole[:n]) // no panic
	}
	for _, bad := range []string{"\x3a\x05\x01", "\x00",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0b"} {
		if _, err := rewrite([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// FuzzRewrite: no model makes it panic.
func FuzzRewrite(f *testing.F) {
	f.Add(model("PRelu", []int{3, 1, 1}, []float32{.5, 2, -1}))
	f.Fuzz(func(_ *testing.T, b []byte) { rewrite(b) })
}

// A file that is no library, another library, an older version and a network that it refuses are
// errors.
func TestRuntimeErrors(t *testing.T) {
	dir := t.TempDir()
	build := func(name, source string) string {
		path := filepath.Join(dir, name)
		c := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path)
		c.Stdin = strings.NewReader(source)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return path
	}
	text := filepath.Join(dir, "text.so")
	fixture.Check(t, os.WriteFile(text, []byte("no library"), 0o600))
	for _, c := range []struct{ library, want string }{
		{filepath.Join(dir, "none.so"), "cannot open shared object file"},
		{text, "file too short"},
		{build("other.so", "int other;"), "it is not ONNX Runtime"},
		{build("old.so", `static void *table(unsigned v) { return 0; }
static const char *version(void) { return "1.9.0"; }
static const void *base[] = {table, version};
const void *OrtGetApiBase(void) { return base; }`), "its version 1.9.0 is older than 1.17"},
	} {
		// A process loads the library once, so each is tried in another one.
		self := exec.Command(os.Args[0], "-test.run", "^TestLoads$")
		self.Env = append(os.Environ(), "LOADS="+c.library)
		out, err := self.CombinedOutput()
		if want := "loading ONNX Runtime from " + c.library + ": "; err == nil ||
			!strings.Contains(string(out), want) || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: error %v, %s", c.library, err, out)
		}
	}
	path := library(t)
	for name, m := range map[string][]byte{
		"nothing": nil, "garbage": []byte("not a network"),
		"an unknown operator": model("Sorcery", []int{3, 1, 1}, []float32{1, 2, 3}),
	} {
		if net, err := cv.OpenRuntime(path, m); err == nil {
			net.Close()
			t.Errorf("%s: it is taken", name)
		} else if !strings.Contains(err.Error(), "does not take the network: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// ONNX Runtime reports to its publisher, by files at home and in the folder of temporary files.
// Here it writes none.
func TestReportsNothing(t *testing.T) {
	path, dir := library(t), t.TempDir()
	self := exec.Command(os.Args[0], "-test.run", "^TestLoads$")
	self.Env = []string{"LOADS=" + path, "HOME=" + dir, "TMPDIR=" + dir}
	out, err := self.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "does not take the network") {
		t.Fatalf("%v: %s", err, out)
	}
	left := fixture.Must(os.ReadDir(dir))(t)
	if len(left) > 0 {
		t.Errorf("it has left %v", left)
	}
}

// TestLoads is a process of the tests above.
func TestLoads(t *testing.T) {
	if path := os.Getenv("LOADS"); path != "" {
		_, err := cv.OpenRuntime(path, nil)
		t.Fatal(err)
	}
}

// Without a library that can be used, and for a network that it does not take, OpenCV runs, and
// Runs says why.
func TestFallsBackToOpenCV(t *testing.T) {
	from := fixture.Models(t)
	d := models.Default(models.Landmarks)
	content := fixture.Must(os.ReadFile(filepath.Join(from, d.File)))(t)
	for _, c := range []struct {
		name, library, want string
	}{
		{"none", "", "there is no ONNX Runtime in DIR; run: faceauth models install"},
		{"garbled", "garbled",
			"model onnxruntime: the model file does not match its description: "},
	} {
		dir := t.TempDir()
		fixture.Check(t, os.WriteFile(filepath.Join(dir, d.File), content, 0o600))
		if c.library != "" {
			fixture.Check(t, os.WriteFile(filepath.Join(dir, "libonnxruntime.so"),
				[]byte(c.library), 0o600))
		}
		n := fixture.Must(Open(d, d.Kind, dir))(t)
		runs, why := n.Runs()
		if want := strings.ReplaceAll(c.want, "DIR", dir); why == nil ||
			!strings.HasPrefix(why.Error(), want) ||
			!strings.HasPrefix(runs, "OpenCV ") {
			t.Errorf("%s: %s runs it, because %v; want %s", c.name, runs, why, want)
		}
		if err := n.Try(func(blank *cv.Image) error {
			_, err := n.Forward(blank)
			return err
		}); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		n.Close()
	}
}

// BenchmarkNetworks runs each network by turns in OpenCV and in ONNX Runtime: x-time is the time of
// ONNX Runtime as a share of OpenCV's.
func BenchmarkNetworks(b *testing.B) {
	dir, _ := fixture.Models(b), library(b)
	cv.OneThread()
	for _, d := range models.Builtin() {
		b.Run(string(d.Kind), func(b *testing.B) {
			opencv, ort := both(b, d, dir)
			var took [2]float64
			for b.Loop() {
				for i, n := range []*Network{opencv, ort} {
					before := cv.ForwardTime()
					fixture.Check(b, n.Try(func(blank *cv.Image) error {
						_, err := n.Forward(blank)
						return err
					}))
					took[i] += (cv.ForwardTime() - before).Seconds() * 1e3
				}
			}
			b.ReportMetric(took[0]/float64(b.N), "opencv-ms")
			b.ReportMetric(took[1]/float64(b.N), "ort-ms")
			b.ReportMetric(took[1]/took[0], "x-time")
		})
	}
}

// Networks compute with zeros in place of denormal numbers, in both engines, and Go's code on the
// same thread does not.
func TestDenormalsAreZero(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	grey := fixture.Must(cv.NewImage(image.Pt(5, 4), color.RGBA{128, 128, 128, 0}))(t)
	defer grey.Close()
	const tiny = 1e-39
	m := model("Add", []int{1, 3, 4, 5}, slices.Repeat([]float32{tiny}, 60))
	path := filepath.Join(t.TempDir(), "tiny.onnx")
	fixture.Check(t, os.WriteFile(path, m, 0o600))
	opencv := fixture.Must(cv.OpenNet(path))(t)
	defer opencv.Close()
	ort := fixture.Must(cv.OpenRuntime(library(t), m))(t)
	defer ort.Close()
	in := cv.Blob{Size: image.Pt(5, 4), Scale: 1. / 64, Mean: [3]float64{128, 128, 128}}
	for _, n := range []*cv.Net{opencv, ort} {
		out := fixture.Must(n.Forward(grey, in))(t)
		if i := slices.IndexFunc(out[0].Data, func(x float32) bool { return x != 0 }); i >= 0 {
			t.Errorf("%s: %v is not flushed to zero", n.Runs(), out[0].Data[i])
		}
		x := out[0].Data[0] + tiny
		if x/2 == 0 {
			t.Errorf("after %s, this thread flushes denormal numbers, too", n.Runs())
		}
	}
}

// What Prefer keeps decides what Open opens, on this processor with these libraries alone.
func TestPrefer(t *testing.T) {
	library(t)
	d := models.Default(models.Landmarks)
	dir := t.TempDir()
	for _, name := range []string{d.File, "libonnxruntime.so"} {
		fixture.Check(t, os.Symlink(filepath.Join(fixture.Models(t), name),
			filepath.Join(dir, name)))
	}
	runs := func(want error) {
		t.Helper()
		n := fixture.Must(Open(d, d.Kind, dir))(t)
		defer n.Close()
		if name, why := n.Runs(); why != want {
			t.Fatalf("%s runs it, because %v, want %v", name, why, want)
		}
	}
	prefer := func(opencv, want bool) {
		t.Helper()
		if changed, err := Prefer(dir, opencv); err != nil || changed != want {
			t.Fatalf("changed: %v, error %v, want %v", changed, err, want)
		}
	}
	runs(nil)
	prefer(false, false)
	prefer(true, true)
	prefer(true, false)
	runs(ErrSlower)
	prefer(false, true)
	runs(nil)
	fixture.Check(t, os.WriteFile(filepath.Join(dir, faster), []byte("another processor\n"), 0o600))
	runs(nil)
	prefer(true, true)
	runs(ErrSlower)
	c, err := Measure(d, dir)
	if err != nil || c.Runtime <= 0 || c.OpenCV <= 0 {
		t.Fatalf("cost %v, error %v", c, err)
	}
}

// A network of one's own that OpenCV computes otherwise is refused, and where nothing can be
// compared, that is said. OpenCV 4.6 and 4.10 take the slopes of a PRelu for each pixel for those
// of channels; a sum for each pixel is right.
func TestComparesOwn(t *testing.T) {
	values := make([]float32, 60)
	for i := range values {
		values[i] = float32(i%7) / 8
	}
	for _, op := range []string{"PRelu", "Add"} {
		dir := t.TempDir()
		fixture.Check(t, os.Symlink(library(t), filepath.Join(dir, "libonnxruntime.so")))
		m := model(op, []int{1, 3, 4, 5}, values)
		fixture.Check(t, os.WriteFile(filepath.Join(dir, "own.onnx"), m, 0o600))
		d := models.Description{Name: "own", Kind: models.Embedding, File: "own.onnx", Dim: 60,
			SHA256: fmt.Sprintf("%x", sha256.Sum256(m)),
			Input: models.Input{Width: 5, Height: 4, Scale: 1. / 64,
				Mean:   [3]float64{128, 128, 128},
				Colour: "bgr"}}
		n, err := Open(d, d.Kind, dir)
		if op == "Add" {
			fixture.Check(t, err)
			n.Close()
		} else if !errors.Is(err, models.ErrShape) ||
			!strings.Contains(err.Error(), "compute different results") {
			t.Errorf("%s: error %v", op, err)
		}
		t.Setenv(Variable, "opencv")
		n = fixture.Must(Open(d, d.Kind, dir))(t)
		if _, why := n.Runs(); !errors.Is(why, ErrChosen) ||
			!strings.Contains(why.Error(), "not compared") {
			t.Errorf("%s in OpenCV alone: %v", op, why)
		}
		n.Close()
		t.Setenv(Variable, "")
	}
}
