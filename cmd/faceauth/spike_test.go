//go:build cgo
package main
import ("testing";"time";"fmt";"context";"io"
"github.com/faceauth/faceauth/facedet"
"github.com/faceauth/faceauth/pipeline"
"github.com/faceauth/faceauth/preprocess"
"github.com/faceauth/faceauth/models"
"github.com/faceauth/faceauth/internal/fixture"
"github.com/faceauth/faceauth/still"
)
func TestSpikeStill(t *testing.T) {
	path := "/tmp/gate/still.avi"
	d := stillDay{fps: 10, empty: 100 * time.Second, noise: 3}
	d.write(t, path, fixture.Recordings(t, "faces/vidtimit_rot/p0"), 1)
	det, err := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	if err != nil { t.Fatal(err) }
	e, err := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	if err != nil { t.Fatal(err) }
	for range 2 {
	b := own(t)
	n := decode(t, path)
	fmt.Println("decode", n, (own(t)-b)/time.Duration(n))
	src, _ := facedet.Open(context.Background(), path, facedet.Options{})
	b = own(t)
	var sc still.Scene
	var th, see time.Duration
	n = 0
	for { f, err := src.Next(t.Context()); if err == io.EOF { break }
		s := still.Shrunk(f.Image.Size())
		c := time.Now(); g, _ := f.Image.Thumbnail(s); th += time.Since(c)
		c = time.Now(); sc.See(f.Time, s, g); see += time.Since(c)
		f.Close(); n++
	}
	fmt.Println("decode+thumb+scene", (own(t)-b)/time.Duration(n), "wall thumb", th/time.Duration(n), "scene", see/time.Duration(n))
	src, _ = facedet.Open(context.Background(), path, facedet.Options{})
	p := pipeline.New(src, det, e, pipeline.Options{Gate: preprocess.LearnGate, Picture: 112, Spare: true})
	b = own(t)
	n = 0
	for { _, err := p.Next(t.Context()); if err == io.EOF { break }; n++ }
	fmt.Println("pipeline", (own(t)-b)/time.Duration(n))
	}
}
