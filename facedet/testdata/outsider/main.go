// This program is a module of its own, which the tests of facedet build: it sees what every user of the library sees.
// It brings its own source, detector and extractor, and makes its pictures with gocv and with package image.
package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"os"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"gocv.io/x/gocv"
	"gonum.org/v1/gonum/mat"
)

// squares is a source of three frames with a bright square that moves.
type squares struct{ next int }

func (s *squares) Next(ctx context.Context) (*facedet.Frame, error) {
	if s.next == 3 {
		return nil, io.EOF
	}
	at := image.Rect(20, 20, 60, 60).Add(image.Pt(5*s.next, 0))
	var p *facedet.Picture
	var err error
	if s.next == 1 { // once by package image
		m := image.NewGray(image.Rect(0, 0, 120, 90))
		for y := at.Min.Y; y < at.Max.Y; y++ {
			for x := at.Min.X; x < at.Max.X; x++ {
				m.SetGray(x, y, color.Gray{Y: 200})
			}
		}
		p, err = facedet.FromImage(m)
	} else {
		mat := gocv.NewMatWithSize(90, 120, gocv.MatTypeCV8UC1)
		defer mat.Close()
		gocv.Rectangle(&mat, at, color.RGBA{200, 200, 200, 255}, -1)
		bgr := gocv.NewMat()
		defer bgr.Close()
		gocv.CvtColor(mat, &bgr, gocv.ColorGrayToBGR)
		p, err = facedet.FromBGR(image.Pt(120, 90), bgr.ToBytes())
	}
	if err != nil {
		return nil, err
	}
	s.next++
	return &facedet.Frame{Index: s.next - 1, Time: time.Duration(s.next) * time.Second, Image: p}, ctx.Err()
}

func (s *squares) Count() face.Count { return face.Count{Declared: 3, Read: s.next} }
func (s *squares) Close() error      { return nil }

// bright finds the box of what is bright.
type bright struct{}

func (bright) Detect(p *facedet.Picture) ([]facedet.Face, error) {
	pix, err := p.BGR()
	if err != nil {
		return nil, err
	}
	m, err := gocv.NewMatFromBytes(p.Size().Y, p.Size().X, gocv.MatTypeCV8UC3, pix)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	grey := gocv.NewMat()
	defer grey.Close()
	gocv.CvtColor(m, &grey, gocv.ColorBGRToGray)
	gocv.Threshold(grey, &grey, 100, 255, gocv.ThresholdBinary)
	contours := gocv.FindContours(grey, gocv.RetrievalExternal, gocv.ChainApproxSimple)
	defer contours.Close()
	var faces []facedet.Face
	for i := range contours.Size() {
		faces = append(faces, facedet.Face{Box: gocv.BoundingRect(contours.At(i)), Score: 1})
	}
	return faces, nil
}

func (bright) Close() error { return nil }

// means is an extractor: a face is the mean colour of its box.
type means struct{}

func (means) Space() face.Space {
	return face.Space{ID: "means", Dim: 3, Scale: 1, Sigma: 10, Gamma: 1e-3}
}

func (means) Align(p *facedet.Picture, box image.Rectangle, _ []face.Point) (*facedet.Picture, error) {
	return p.Crop(box)
}

func (means) Vector(p *facedet.Picture) ([]float32, float64, error) {
	one, err := p.Resize(image.Pt(1, 1))
	if err != nil {
		return nil, 0, err
	}
	defer one.Close()
	m, err := one.Image()
	if err != nil {
		return nil, 0, err
	}
	c := m.RGBAAt(0, 0)
	return []float32{float32(c.R), float32(c.G), float32(c.B)}, 0, nil
}

func (means) Close() error { return nil }

var (
	_ facedet.Source       = (*squares)(nil)
	_ facedet.Detector     = bright{}
	_ preprocess.Extractor = means{}
)

func main() {
	p := pipeline.New(&squares{}, bright{}, means{}, pipeline.Options{Picture: 32})
	for {
		f, err := p.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, s := range f.Samples {
			fmt.Println(f.Index, s.Track, s.Box, s.Vector, len(s.JPEG) > 0)
		}
	}
}
