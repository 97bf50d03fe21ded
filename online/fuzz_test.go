package online_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/faceauth/faceauth/online"
)

// FuzzOperations reads its input as a program of operations on a learner, and checks after each that
// nothing is lost, nothing is no number, and no vertex is one too many.
func FuzzOperations(f *testing.F) {
	f.Add([]byte("\x00\x10\x01\x80\x02\x11\x03\x12\x04\x13\x05\x14\x06\x15\x07\x16"))
	f.Add(bytes.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, 20))
	f.Add(bytes.Repeat([]byte{3, 200, 3, 17, 3, 90, 6, 0}, 30))
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 600 {
			return
		}
		ages := len(program)%4 >= 2
		settings := online.Settings{K: 8, Journal: 20}
		if ages {
			settings.HalfLife = 6
		}
		l, err := online.New(plane, settings)
		if err != nil {
			t.Fatal(err)
		}
		names := []string{"alice", "bob", "carol"}
		learned := 0.
		for i := 0; i+1 < len(program); i += 2 {
			b := program[i+1]
			x := []float32{float32(b&15) / 6, float32(b>>4) / 6}
			forgot := false
			switch program[i] % 8 {
			case 0:
				l.Label(x, names[b%3])
			case 1:
				forgot = l.Forget(names[b%3]) == nil
			case 2:
				undo := func() (int, error) { return l.Undo(int64(b)) }
				if b&1 == 1 {
					undo = func() (int, error) { return l.UndoSince(time.Unix(int64(b), 0)) }
				}
				if n, err := undo(); err == nil {
					learned -= float64(n)
				}
			case 3:
				s := l.Settings()
				s.K = 6 + int(b%4)
				l.Configure(s)
			case 4:
				data, err := l.MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				var back online.Learner
				if err := back.UnmarshalBinary(data); err != nil {
					t.Fatalf("a snapshot cannot be read: %v", err)
				}
				again, err := back.MarshalBinary()
				if err != nil || !bytes.Equal(data, again) {
					t.Fatalf("a snapshot of a snapshot is another one; %v", err)
				}
				l = &back
			case 5:
				before, _ := l.MarshalBinary()
				if _, err := l.Judge(x); err != nil {
					t.Fatal(err)
				}
				if after, _ := l.MarshalBinary(); !bytes.Equal(before, after) {
					t.Fatal("a look changed the learner")
				}
			default:
				l.SetTime(time.Unix(int64(i), 0))
				v, err := l.Observe(x)
				if err != nil {
					t.Fatal(err)
				}
				if math.IsNaN(v.Confidence) || v.Confidence < -1e-8 || v.Confidence > 1+1e-8 {
					t.Fatalf("%+v", v)
				}
				if v.Learned {
					learned++
				}
			}
			g := l.Graph()
			points := 0.
			for i := range g.Len() {
				if _, ok := g.Class(i); !ok {
					points += g.Points(i)
				}
			}
			if forgot || ages && points < learned { // some were evicted
				learned = points
			}
			if m := g.Mass(); points != learned || !ages && m != points || !(m >= 0 && m <= points+1e-9) {
				t.Fatalf("mass %g of %g faces, and %g were learned", m, points, learned)
			}
			if g.Learned() > l.Settings().K+1 {
				t.Fatalf("%d centroids for k = %d", g.Learned(), l.Settings().K)
			}
		}
	})
}

// FuzzUnmarshal checks that whatever bytes are read as a snapshot make an error or a learner that works.
func FuzzUnmarshal(f *testing.F) {
	l, err := online.New(plane, online.Settings{K: 8})
	if err != nil {
		f.Fatal(err)
	}
	l.Label([]float32{0, 0}, "alice")
	for _, x := range faces(2, 30) {
		l.Observe(x)
	}
	data, err := l.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		var l online.Learner
		if l.UnmarshalBinary(data) != nil || l.Space().Dim > 1000 || l.Settings().K > 1000 {
			return
		}
		x := make([]float32, l.Space().Dim)
		x[0] = 1
		if v, err := l.Observe(x); err == nil && math.IsNaN(v.Confidence) {
			t.Fatal("a verdict that is no number")
		}
		l.Undo(0)
		if _, err := l.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
	})
}
