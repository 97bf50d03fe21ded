// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/internal/footage"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/fxamacker/cbor/v2"
)

// Variables of the environment, which a program gives to its eye.
const (
	realEye  = "FACEAUTH_EYE_REAL"  // the real program
	tapes    = "FACEAUTH_EYE_TAPES" // the folder of the tapes that it made
	realOnly = "FACEAUTH_EYE_ONLY"  // not empty: the real program, and no tape
)

// RealOnly is what the environment of a program has whose eye is the real one.
const RealOnly = realOnly + "=1"

// Environment returns what [Prepare] has put into the environment, for programs that get none of
// this process.
func Environment() []string {
	return []string{realEye + "=" + os.Getenv(realEye), tapes + "=" + os.Getenv(tapes)}
}

// Folder returns the folder of the cache with the tapes of all versions of the eye.
func Folder() (string, error) {
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "faceauth-tapes"), err
}

// Prepare builds faceauth-eye from the sources in a folder, so that [Main] finds it and its tapes.
// Tapes of a version that nobody has used for a week are removed. It returns the path of the
// program.
func Prepare(project string) (real string, err error) {
	all, err := Folder()
	if err != nil {
		return "", err
	}
	at, err := filepath.Abs(project)
	if err != nil {
		return "", err
	}
	of := sha256.Sum256([]byte(at)) // tests of two working copies may run at once
	real = filepath.Join(all, fmt.Sprintf("faceauth-eye-%x", of[:4]))
	build := exec.Command("go", "build", "-C", project, "-buildvcs=false", "-trimpath", "-tags",
		"osusergo", "-o", real, "./cmd/faceauth-eye")
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building faceauth-eye: %w: %s", err, out)
	}
	b, err := os.ReadFile(real)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	dir := filepath.Join(all, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now()
	os.Chtimes(dir, now, now)
	prune(all, now)
	return real, errors.Join(os.Setenv(realEye, real), os.Setenv(tapes, dir))
}

// prune removes the tapes of versions that nobody has used for a week.
func prune(all string, now time.Time) {
	entries, _ := os.ReadDir(all)
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && now.Sub(info.ModTime()) > 7*24*time.Hour {
			os.RemoveAll(filepath.Join(all, e.Name()))
		}
	}
}

// Recording returns the demo's recordings, which the real eye makes once: the folder has alice.avi,
// bob.avi and recording.avi.
func Recording(real string) (folder string, err error) {
	folder = filepath.Join(os.Getenv(tapes), "demo")
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	made, err := os.MkdirTemp(os.Getenv(tapes), "demo-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if out, err := exec.Command(real, "demo", made).CombinedOutput(); err != nil {
		return "", fmt.Errorf("making the demo's recordings: %w: %s", err, out)
	}
	err = os.Rename(made, folder)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) { // another test was faster
		err = nil
	}
	return folder, err
}

// player answers questions about one source from its tape. If the tape has no answer, it asks a
// real eye all questions so far, and keeps what is new.
type player struct {
	setup wire.Setup[eye.Vision]
	name  string // of the source
	kept  bool   // the answers are kept
	asked []request
	chain [sha256.Size]byte // of the source and all questions so far
	real  net.Conn          // nil while the tape has the answers
	child *exec.Cmd
}

// newPlayer returns a player for a source, or, without one, for the setup alone.
func newPlayer(setup wire.Setup[eye.Vision], q *wire.Open[eye.Options]) *player {
	p := &player{setup: setup}
	v := setup.Vision
	key := []any{v.Features, v.Detector, v.Liveness}
	for _, own := range []string{v.DetectorModel, v.EmbeddingModel, v.LivenessModel} {
		key = append(key, content(own))
	}
	// The hashes of the other networks are part of the eye.
	for _, f := range []string{"fr_detect.onnx", "fr_landmark.onnx", "fr_feature.onnx",
		"libonnxruntime.so"} {
		info, err := os.Stat(filepath.Join(v.Models, f))
		if err == nil {
			key = append(key, f, info.Size(), info.ModTime().UnixNano())
		}
	}
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "FACEAUTH_EYE_NETWORKS=") {
			key = append(key, e)
		}
	}
	if q != nil {
		p.name = q.Name
		p.kept = input.IsRecording(q.Name) && !q.Options.Live
		o := q.Options
		key = append(key, filepath.Base(q.Name), content(q.Name), o.Gate, o.AsIs, o.Faces,
			o.Picture, o.Width, o.FPS, o.Spare, o.Rotate, o.From, o.Series)
		for _, f := range o.Files {
			key = append(key, filepath.Base(f), content(f))
		}
	}
	p.chain = sha256.Sum256(fmt.Appendf(nil, "%q", key))
	return p
}

// content returns what a file or a folder holds, as a hash or an error.
func content(name string) string {
	if name == "" {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil {
		return "cannot be read"
	}
	h := sha256.New()
	files := []string{name}
	if info.IsDir() {
		files, _ = footage.Pictures(name)
		for _, f := range files {
			fmt.Fprintf(h, "%q", filepath.Base(f))
		}
	}
	for _, f := range files {
		b, err := os.Open(f)
		if err != nil {
			return "cannot be read"
		}
		io.Copy(h, b)
		b.Close()
	}
	return hex.EncodeToString(h.Sum(nil))
}

// nameless stands for the name of the source in kept texts.
const nameless = "\x00"

// ask returns the messages that answer a question.
func (p *player) ask(q request) ([][]byte, error) {
	p.asked = append(p.asked, q)
	if q.Next != nil {
		p.chain = sha256.Sum256(fmt.Appendf(p.chain[:], "%v", *q.Next))
	}
	path := ""
	if dir := os.Getenv(tapes); dir != "" && (p.kept || q.Setup != nil) {
		path = filepath.Join(dir, hex.EncodeToString(p.chain[:1]), hex.EncodeToString(p.chain[1:]))
	}
	if p.real == nil && path != "" {
		var answer [][]byte
		b, err := os.ReadFile(path)
		if err == nil && gob.NewDecoder(bytes.NewReader(b)).Decode(&answer) == nil {
			return p.renamed(answer, nameless, p.name), nil
		}
	}
	answer, err := p.look()
	if err == nil && path != "" {
		err = keep(path, p.renamed(answer, p.name, nameless))
	}
	return answer, err
}

// look asks the real eye the last question, and before it all others that it was not asked.
func (p *player) look() (answer [][]byte, err error) {
	ask := p.asked[len(p.asked)-1:]
	if p.real == nil {
		if err := p.start(); err != nil {
			return nil, err
		}
		if p.asked[0].Setup == nil {
			ask = append([]request{{Setup: &p.setup}}, p.asked...)
		}
	}
	for _, q := range ask {
		if _, err := p.real.Write(wire.AppendRequest(nil, q)); err != nil {
			return nil, err
		}
		answer, err = p.hear(q)
		if err != nil {
			return nil, err
		}
		if last := answer[len(answer)-1]; q.Setup != nil && wire.Kind(last[0]) == wire.Failed {
			return answer, nil // it says why
		}
	}
	return answer, nil
}

// start starts a real eye.
func (p *player) start() error {
	real := os.Getenv(realEye)
	if real == "" {
		return fmt.Errorf("%s is no made-up recording, and there is no real eye", p.name)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "eye"), os.NewFile(uintptr(pair[1]), "program")
	defer ours.Close()
	defer theirs.Close()
	p.child = exec.Command(real)
	p.child.ExtraFiles, p.child.Stderr = []*os.File{theirs, os.NewFile(4, "line")}, os.Stderr
	if err := p.child.Start(); err != nil {
		return err
	}
	p.real, err = net.FileConn(ours)
	return err
}

// hear reads the answer to a question. How often a slow eye says that it is still there does not
// belong on a tape.
func (p *player) hear(q request) (answer [][]byte, err error) {
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(p.real, head); err != nil {
			return nil, fmt.Errorf("the real eye has ended: %w", err)
		}
		n := int(head[1]) | int(head[2])<<8 | int(head[3])<<16 | int(head[4])<<24
		b := append(head, make([]byte, n)...)
		if _, err := io.ReadFull(p.real, b[5:]); err != nil {
			return nil, fmt.Errorf("the real eye has ended: %w", err)
		}
		kind := wire.Kind(b[0])
		if kind != wire.Beat && (kind != wire.Progress || !p.kept) {
			answer = append(answer, b)
		}
		if kind != wire.Beat && kind != wire.Progress && kind != wire.Damaged {
			return answer, nil
		}
	}
}

// renamed returns an answer in which another name of the source stands in the texts.
func (p *player) renamed(answer [][]byte, from, to string) [][]byte {
	answer = slices.Clone(answer)
	for i, b := range answer {
		kind := wire.Kind(b[0])
		if kind != wire.Damaged && kind != wire.Failed || p.name == "" {
			continue
		}
		var text struct {
			Code wire.Code
			Text string
		}
		if cbor.Unmarshal(b[5:], &text) == nil {
			m := wire.Message{Kind: kind, Code: text.Code,
				Text: strings.ReplaceAll(text.Text, from, to)}
			answer[i] = wire.Append(nil, m)
		}
	}
	return answer
}

// keep writes an answer, as a whole or not at all.
func keep(path string, answer [][]byte) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(answer); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

func (p *player) close() {
	if p.real == nil {
		return
	}
	p.real.Close()
	p.child.Process.Kill()
	p.child.Wait()
	p.real = nil
}
