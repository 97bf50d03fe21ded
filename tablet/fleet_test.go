// SPDX-License-Identifier: Apache-2.0

package tablet_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/internal/stage"
	"github.com/faceauth/faceauth/tablet"
	"github.com/faceauth/faceauth/tablet/profile"
)

// Numbers of people of a fleet.
var (
	first  = strings.Repeat("0a", 16)
	second = strings.Repeat("0b", 16)
)

// told returns faces in the form in which a fleet sends them.
func told(faces ...[]float32) (all []tablet.FleetFace) {
	for i, x := range faces {
		all = append(all, tablet.FleetFace{Vector: x, Taken: time.Unix(int64(1000+i), 0)})
	}
	return all
}

// tells sends a desk all faces of the first person.
func (d *desk) tells(t *testing.T, user string, faces ...[]float32) {
	t.Helper()
	if _, err := d.FleetFaces(user, first, stage.Space.ID, told(faces...)); err != nil {
		t.Fatal(err)
	}
}

// follows returns a desk whose user alice follows the first person. The fleet has these faces of that person.
func follows(t *testing.T, o tablet.Options, faces ...[]float32) *desk {
	t.Helper()
	d := newDesk(t, o)
	if err := d.Follow("alice", first, false); err != nil {
		t.Fatal(err)
	}
	d.tells(t, "alice", faces...)
	return d
}

func (d *desk) password(t *testing.T, user string) {
	t.Helper()
	if err := d.Password(user, 0); err != nil {
		t.Fatal(err)
	}
}

// seen returns n frames of a person, each with a vector of its own, as logins overwrite the vectors that they keep.
func seen(who []float32, n int) (all []face.Frame) {
	for range n {
		all = append(all, stage.Seen(slices.Clone(who), 1)...)
	}
	return all
}

// near returns different faces of a person.
func near(who []float32, n int) (all []face.Frame) {
	for i := range n {
		all = append(all, stage.Seen(stage.At(who, float32(i)/50), 1)...)
	}
	return all
}

// A person known from a fleet logs in once with face and password, and after that with the face alone.
func TestFollow(t *testing.T) { bubble(testFollow)(t) }

func testFollow(t *testing.T) {
	d := newDesk(t, tablet.Options{})
	try := func(frames []face.Frame) (tablet.Word, error) {
		t.Helper()
		d.film.Play(stage.Show{Frames: frames})
		r, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"}, func(tablet.Result) {})
		return r.Word, err
	}
	if err := d.Follow("alice", first, false); err != nil {
		t.Fatal(err)
	}
	if _, err := try(seen(stage.Alice, 9)); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("before the fleet has told anything: %v", err)
	}
	d.password(t, "alice")
	d.tells(t, "alice", stage.At(stage.Alice, .3), stage.At(stage.Alice, .4))
	d.pass(49 * time.Hour) // a password that is due does not prevent a login that asks for it
	if w, err := try(seen(stage.Bob, 9)); err != nil || w != tablet.NoMatch {
		t.Errorf("somebody else: %q, %v", w, err)
	}
	d.pass(time.Minute)
	if w, err := try(seen(stage.Alice, 2)); err != nil || w != tablet.NoMatch {
		t.Errorf("too few frames: %q, %v", w, err)
	}
	d.password(t, "alice")
	if s, err := d.Status("alice"); err != nil || s.Labelled != 0 || s.Fleet.Enrolled != 0 || s.Fleet.Faces != 2 {
		t.Fatalf("after the password, without a face before it: %+v, %+v, %v", s, s.Fleet, err)
	}
	if w, err := try(near(stage.Alice, 9)); err != nil || w != tablet.Unproven {
		t.Fatalf("before the password: %q, %v", w, err)
	}
	d.pass(61 * time.Second)
	d.password(t, "alice")
	if s, _ := d.Status("alice"); s.Labelled != 0 {
		t.Errorf("the password came after a minute, and %d faces are enrolled", s.Labelled)
	}
	if w, err := try(near(stage.Alice, 9)); err != nil || w != tablet.Unproven {
		t.Fatalf("before the password: %q, %v", w, err)
	}
	d.password(t, "alice")
	s, err := d.Status("alice")
	if err != nil || s.Labelled != 3 || s.Fleet.Enrolled != 3 || s.Learned != 0 { // a match takes three frames
		t.Fatalf("after the password: %+v, %+v, %v", s, s.Fleet, err)
	}
	if w, err := try(seen(stage.Alice, 9)); err != nil || w != tablet.Match {
		t.Errorf("the face alone: %q, %v", w, err)
	}
	if w, err := try(seen(stage.Bob, 9)); err != nil || w != tablet.NoMatch {
		t.Errorf("somebody else: %q, %v", w, err)
	}
	d.password(t, "alice")

	// The person is forgotten in the fleet.
	if err := d.FleetForgot("alice", second); !errors.Is(err, tablet.ErrFollow) {
		t.Error(err)
	}
	if err := d.FleetForgot("alice", first); err != nil {
		t.Fatal(err)
	}
	if _, err := try(seen(stage.Alice, 9)); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("forgotten: %v", err)
	}
	if all, err := d.Followed(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// A lying member of the fleet lets nobody in, neither with a stranger's face, nor with a face between two people that
// is near to both.
func TestFollowLiar(t *testing.T) {
	t.Parallel()
	between := []float32{.8, 0, 0, 0} // .7 away from Mallory, .8 away from Alice
	mallory := []float32{1.5, 0, 0, 0}
	t.Run("before the first login", bubble(func(t *testing.T) {
		d := follows(t, tablet.Options{}, stage.Alice, between, mallory)
		d.password(t, "alice")
		w, _ := d.verify(t, "alice", seen(mallory, 9), nil)
		if w != tablet.Unproven {
			t.Fatalf("%q", w)
		}
		d.pass(2 * time.Minute) // the password was not given in time
		if w, _ := d.verify(t, "alice", near(stage.Alice, 9), nil); w != tablet.Unproven {
			t.Fatalf("%q", w)
		}
		d.password(t, "alice")
		if w, _ := d.verify(t, "alice", seen(mallory, 9), nil); w != tablet.NoMatch {
			t.Errorf("a stranger is let in by a face between: %q", w)
		}
		d.pass(time.Minute)
		if w, _ := d.verify(t, "alice", seen(between, 9), nil); w == tablet.Unproven {
			t.Errorf("the fleet is asked again: %q", w)
		}
	}))
	t.Run("after it", bubble(func(t *testing.T) {
		d := follows(t, tablet.Options{}, stage.Alice)
		d.verify(t, "alice", near(stage.Alice, 9), nil)
		d.password(t, "alice")
		d.tells(t, "alice", stage.Alice, between, mallory)
		if w, _ := d.verify(t, "alice", seen(mallory, 9), nil); w != tablet.NoMatch {
			t.Errorf("%q", w)
		}
		d.password(t, "alice") // within the minute, but nothing is learned
		if w, _ := d.verify(t, "alice", seen(mallory, 9), nil); w != tablet.NoMatch {
			t.Errorf("after the password: %q", w)
		}
		d.password(t, "alice")
		if w, _ := d.verify(t, "alice", seen(stage.Alice, 9), nil); w != tablet.Match {
			t.Errorf("the user herself: %q", w)
		}
	}))
	t.Run("liveness", bubble(func(t *testing.T) {
		d := follows(t, tablet.Options{Policy: tablet.Policy{MinLiveness: .5}}, stage.Alice)
		if w, _ := d.verify(t, "alice", lively(stage.Alice, 9, .1), nil); w != tablet.NotLive {
			t.Errorf("a picture: %q", w)
		}
		d.password(t, "alice")
		if s, err := d.Status("alice"); err != nil || s.Labelled != 0 {
			t.Errorf("a picture is enrolled: %+v, %v", s, err)
		}
	}))
	t.Run("another asks", bubble(func(t *testing.T) {
		d := follows(t, tablet.Options{}, stage.Alice)
		var r *tablet.Refused
		other := tablet.Attempt{User: "alice", Asker: 1000}
		if _, err := d.Verify(t.Context(), other, func(tablet.Result) {}); !errors.As(err, &r) ||
			r.Why != tablet.PasswordDue {
			t.Error(err)
		}
		d.password(t, "alice")
		d.film.Play(stage.Show{Frames: seen(stage.Alice, 9)})
		if r, err := d.Verify(t.Context(), other, func(tablet.Result) {}); err != nil ||
			r.Word != tablet.Unproven {
			t.Errorf("%v, %v", r, err)
		}
		d.password(t, "alice")
		if s, err := d.Status("alice"); err != nil || s.Labelled != 0 {
			t.Errorf("what another's login shows is enrolled: %+v, %v", s, err)
		}
	}))
	t.Run("another user's face", bubble(func(t *testing.T) {
		d := follows(t, tablet.Options{}, stage.Bob)
		d.enrol(t, "bob", stage.Bob)
		if w, _ := d.verify(t, "alice", near(stage.Bob, 9), nil); w != tablet.Unproven {
			t.Errorf("%q", w)
		}
		d.password(t, "alice")
		if s, err := d.Status("alice"); err != nil || s.Labelled != 0 {
			t.Errorf("bob is enrolled as alice: %+v, %v", s, err)
		}
	}))
}

// Five attempts with the fleet's faces count like any other five attempts.
func TestFollowTries(t *testing.T) { bubble(testFollowTries)(t) }

func testFollowTries(t *testing.T) {
	d := follows(t, tablet.Options{}, stage.Alice)
	for range 5 {
		d.verify(t, "alice", near(stage.Alice, 9), nil)
		d.pass(time.Minute)
	}
	var r *tablet.Refused
	if _, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"}, func(tablet.Result) {}); !errors.As(err, &r) ||
		r.Why != tablet.TooManyFailures {
		t.Errorf("after five: %v", err)
	}
	d.pass(time.Minute)
	d.password(t, "alice")
	if w, _ := d.verify(t, "alice", near(stage.Alice, 9), nil); w != tablet.Unproven {
		t.Errorf("%q", w)
	}
}

// When the fleet takes a face back, the faces that were enrolled only because of it are removed, and no others.
func TestFollowTakenBack(t *testing.T) { bubble(testFollowTakenBack)(t) }

func testFollowTakenBack(t *testing.T) {
	one, other := stage.At(stage.Alice, .7), stage.At(stage.Alice, -.7) // both are near to some of the faces seen
	d := follows(t, tablet.Options{}, one, other)
	frames := slices.Concat(stage.Seen(stage.At(stage.Alice, .4), 1), stage.Seen(stage.At(stage.Alice, -.4), 1),
		seen(stage.Alice, 1))
	if w, _ := d.verify(t, "alice", frames, nil); w != tablet.Unproven {
		t.Fatalf("%q", w)
	}
	d.password(t, "alice")
	if w, _ := d.verify(t, "alice", seen(stage.Alice, 9), nil); w != tablet.Match {
		t.Fatalf("%q", w)
	}
	is := func(labelled int64, learned bool, faces int) {
		t.Helper()
		s, err := d.Status("alice")
		if err != nil || s.Labelled != labelled || (s.Learned > 0) != learned || int(s.Fleet.Faces) != faces ||
			int64(s.Fleet.Enrolled) != labelled {
			t.Fatalf("%+v, %+v, %v", s, s.Fleet, err)
		}
	}
	is(3, true, 2)
	d.tells(t, "alice", one, other) // the same faces again
	is(3, true, 2)
	d.tells(t, "alice", one, other, stage.Alice) // one more face
	is(3, true, 3)
	d.tells(t, "alice", one)
	is(2, false, 1) // the face at -.4 was enrolled only because of the other
	if w, _ := d.verify(t, "alice", seen(stage.Alice, 9), nil); w != tablet.Match {
		t.Errorf("%q", w)
	}
	d.tells(t, "alice")
	is(0, false, 0)
	_, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"}, func(tablet.Result) {})
	if !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("all was taken back: %v", err)
	}
	d.tells(t, "alice", one)
	if w, _ := d.verify(t, "alice", near(stage.Alice, 9), nil); w != tablet.Unproven { // it starts again
		t.Errorf("%q", w)
	}
	// The fleet takes the face back after the face was seen, and before the password is given.
	d.tells(t, "alice")
	d.password(t, "alice")
	is(0, false, 0)
}

// Faces that the device has enrolled itself do not depend on a fleet. When the following ends, all other faces go.
func TestUnfollow(t *testing.T) { bubble(testUnfollow)(t) }

func testUnfollow(t *testing.T) {
	d := ready(t, tablet.Options{})
	if err := d.Unfollow("alice"); !errors.Is(err, tablet.ErrFollow) {
		t.Error(err)
	}
	if err := d.Unfollow("bob"); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
	if err := d.Follow("alice", first, false); err != nil {
		t.Fatal(err)
	}
	d.tells(t, "alice", stage.Bob)
	for _, c := range []struct {
		who  []float32
		want tablet.Word
	}{{stage.Bob, tablet.NoMatch}, {stage.Alice, tablet.Match}} {
		if w, _ := d.verify(t, "alice", seen(c.who, 9), nil); w != c.want {
			t.Errorf("%v: %q", c.who, w)
		}
		d.password(t, "alice")
	}
	if users, err := d.FleetRevoked(); err != nil || !slices.Equal(users, []string{"alice"}) {
		t.Errorf("%v, %v", users, err)
	}
	if users, err := d.FleetRevoked(); err != nil || len(users) != 0 {
		t.Errorf("twice: %v, %v", users, err)
	}
	if s, err := d.Status("alice"); err != nil || s.Labelled != 4 || s.Fleet.Faces != 0 || !s.Fleet.Revoked {
		t.Errorf("%+v, %+v, %v", s, s.Fleet, err)
	}
	if err := d.Unfollow("alice"); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status("alice"); err != nil || s.Labelled != 4 || s.Fleet != nil {
		t.Errorf("%+v, %v", s, err)
	}

	// Alice enrols here after the fleet has sent faces: none of her faces depends on the fleet any more.
	if err := d.Follow("bob", first, false); err != nil {
		t.Fatal(err)
	}
	d.tells(t, "bob", stage.Bob)
	d.verify(t, "bob", near(stage.Bob, 9), nil)
	d.password(t, "bob")
	d.enrol(t, "bob", stage.Bob)
	d.tells(t, "bob")
	if s, err := d.Status("bob"); err != nil || s.Labelled != 4 || s.Fleet.Enrolled != 0 {
		t.Errorf("%+v, %+v, %v", s, s.Fleet, err)
	}
	// The account follows another person: all faces that depended on the first person go.
	if err := d.Follow("carol", first, false); err != nil {
		t.Fatal(err)
	}
	d.tells(t, "carol", stage.Carol)
	d.verify(t, "carol", near(stage.Carol, 9), nil)
	d.password(t, "carol")
	if err := d.Follow("carol", first, false); err != nil { // the same again
		t.Fatal(err)
	}
	if s, err := d.Status("carol"); err != nil || s.Labelled != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := d.Follow("carol", second, false); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status("carol"); err != nil || s.Labelled != 0 || s.Fleet.Faces != 0 || s.Fleet.Number != second {
		t.Errorf("%+v, %+v, %v", s, s.Fleet, err)
	}
	if err := d.Unfollow("carol"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Status("carol"); !errors.Is(err, profile.ErrUnknown) {
		t.Errorf("nothing is left: %v", err)
	}
}

// Invalid faces change nothing.
func TestFollowRefused(t *testing.T) { bubble(testFollowRefused)(t) }

func testFollowRefused(t *testing.T) {
	d := follows(t, tablet.Options{}, stage.Alice, stage.At(stage.Alice, .1))
	before, err := d.Status("alice")
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := stage.At(stage.Alice, float32(math.NaN())), stage.At(stage.Alice, float32(math.Inf(1)))
	var many [][]float32
	for i := range tablet.MostFaces + 1 {
		many = append(many, stage.At(stage.Alice, float32(i)/1000))
	}
	for _, c := range []struct {
		name, user, number, space string
		faces                     [][]float32
		want                      error
		says                      string
	}{
		{"not a number", "alice", first, stage.Space.ID, [][]float32{stage.Alice, nan}, tablet.ErrFaces, "face 2"},
		{"infinite", "alice", first, stage.Space.ID, [][]float32{inf}, tablet.ErrFaces, "finite"},
		{"too short", "alice", first, stage.Space.ID, [][]float32{stage.Alice[:2]}, tablet.ErrFaces,
			"2 values, want 4"},
		{"empty", "alice", first, stage.Space.ID, [][]float32{nil}, tablet.ErrFaces, "0 values"},
		{"another space", "alice", first, "another", [][]float32{stage.Alice}, tablet.ErrFaces,
			"another feature space"},
		{"too many", "alice", first, stage.Space.ID, many, tablet.ErrFaces, "33 of one person, and at most 32"},
		{"another person", "alice", second, stage.Space.ID, [][]float32{stage.Bob}, tablet.ErrFollow,
			"does not follow"},
		{"nobody", "alice", "", stage.Space.ID, nil, tablet.ErrFollow, "does not follow"},
		{"another user", "bob", first, stage.Space.ID, nil, profile.ErrUnknown, ""},
	} {
		changed, err := d.FleetFaces(c.user, c.number, c.space, told(c.faces...))
		if changed || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %t, %v", c.name, changed, err)
		}
		if after, err := d.Status("alice"); err != nil || *after.Fleet != *before.Fleet {
			t.Errorf("%s: %+v, %v", c.name, after.Fleet, err)
		}
	}
	if changed, err := d.FleetFaces("alice", first, stage.Space.ID, told(many[:tablet.MostFaces]...)); !changed ||
		err != nil {
		t.Errorf("as many as are taken: %t, %v", changed, err)
	}
	for _, person := range []string{"", "a\nb", strings.Repeat("x", 2000)} {
		if err := d.Follow("alice", person, false); !errors.Is(err, tablet.ErrPerson) {
			t.Errorf("%q: %v", person, err)
		}
	}

	// A name is looked up once.
	if err := d.Follow("dora", "Dora", false); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Followed(); err != nil || !slices.Contains(all, tablet.Followed{User: "dora", Asked: "Dora"}) {
		t.Errorf("%+v, %v", all, err)
	}
	for _, c := range []struct {
		asked, number string
		want          error
	}{{"Dora", "x", tablet.ErrPerson}, {"Alice", first, tablet.ErrFollow}, {"Dora", second, nil}, {"Dora", second, nil},
		{"Dora", first, tablet.ErrFollow}} {
		if err := d.FleetFound("dora", c.asked, c.number); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := d.FleetSays("dora", "in-step", time.Unix(7, 0)); err != nil {
		t.Error(err)
	}
	if s, err := d.Status("dora"); err != nil || s.Fleet.Number != second || s.Fleet.Word != "in-step" ||
		s.Fleet.Since.Unix() != 7 ||
		s.Labelled != 0 {
		t.Errorf("%+v, %+v, %v", s, s.Fleet, err)
	}
	if err := d.FleetSays("bob", "in-step", time.Unix(7, 0)); !errors.Is(err, profile.ErrUnknown) {
		t.Error(err)
	}
}

// The fleet gets only faces that an enrolment at this device took, and only if an administrator allowed it.
func TestFollowShare(t *testing.T) { bubble(testFollowShare)(t) }

func testFollowShare(t *testing.T) {
	d := follows(t, tablet.Options{}, stage.Alice)
	none := func(user, number string) {
		t.Helper()
		if faces, err := d.FleetOwn(user, number); !errors.Is(err, tablet.ErrFollow) &&
			!errors.Is(err, profile.ErrUnknown) ||
			len(faces) != 0 {
			t.Errorf("%d faces, %v", len(faces), err)
		}
	}
	share := func(yes bool, want bool) {
		t.Helper()
		if err := d.Follow("alice", first, yes); err != nil {
			t.Fatal(err)
		}
		if all, err := d.Followed(); err != nil || len(all) != 1 || all[0].Share != want {
			t.Errorf("%+v, %v", all, err)
		}
	}
	none("alice", first)
	none("alice", second)
	none("bob", first)
	d.verify(t, "alice", near(stage.Alice, 9), nil)
	d.password(t, "alice")
	share(true, true)
	if faces, err := d.FleetOwn("alice", first); err != nil || len(faces) != 0 {
		t.Errorf("what a login saw is given away: %v, %v", faces, err)
	}
	none("alice", second)
	d.enrol(t, "alice", stage.At(stage.Alice, .1))
	faces, err := d.FleetOwn("alice", first)
	if err != nil || len(faces) != 4 || !slices.Equal(faces[0].Vector, stage.At(stage.Alice, 0)) ||
		time.Since(faces[0].Taken) > time.Minute {
		t.Errorf("%v, %v", faces, err)
	}
	d.verify(t, "alice", near(stage.At(stage.Alice, .3), 9), nil) // some of these faces are learned
	d.password(t, "alice")
	if faces, err := d.FleetOwn("alice", first); err != nil || len(faces) != 4 {
		t.Errorf("what was learned is given away: %v, %v", faces, err)
	}
	if _, err := d.FleetRevoked(); err != nil {
		t.Fatal(err)
	}
	none("alice", first)
	share(false, false)
	none("alice", first)
	if s, err := d.Status("alice"); err != nil || s.Labelled != 4 {
		t.Errorf("%+v, %v", s, err)
	}
}

// All of this survives a restart of the process, and no profile of a fleet makes an enrolment fail.
func TestFollowOutlives(t *testing.T) { bubble(testFollowOutlives)(t) }

func testFollowOutlives(t *testing.T) {
	d := follows(t, tablet.Options{}, stage.Alice, stage.At(stage.Alice, .2))
	if err := d.Follow("carol", "Carol", false); err != nil { // no face of Carol is known
		t.Fatal(err)
	}
	d.verify(t, "alice", near(stage.Alice, 9), nil)
	d.password(t, "alice")
	before, err := d.Status("alice")
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	d.store.Close()
	d.open(t)
	after, err := d.Status("alice")
	if err != nil || *after.Fleet != *before.Fleet || after.Labelled != 3 {
		t.Errorf("%+v, %+v, %v", after, after.Fleet, err)
	}
	if w, _ := d.verify(t, "alice", seen(stage.Alice, 9), nil); w != tablet.Match {
		t.Errorf("%q", w)
	}
	d.film.Play(stage.Show{Frames: stage.Enrolling(stage.Alice)})
	if r, err := d.Enroll(t.Context(), "bob", func(tablet.Result) {}); err != nil || r.Word != tablet.Taken {
		t.Errorf("alice is enrolled as bob: %+v, %v", r, err)
	}
	d.enrol(t, "bob", stage.Bob)
}

// A search through all choices finds the same faces.
func TestSpread(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var faces [][]float32
		for range random.IntN(12) {
			faces = append(faces, []float32{float32(random.IntN(6)), float32(random.IntN(6))})
		}
		got := tablet.Spread(faces, 4, 1)
		var want [][]float32
		for len(want) < 4 && len(faces) > 0 {
			distance := func(x []float32) float64 {
				d := math.Inf(1)
				for _, y := range want {
					d = min(d, graph.Distance(x, y, 1))
				}
				return d
			}
			best := faces[0]
			for _, x := range faces {
				if distance(x) > distance(best) {
					best = x
				}
			}
			if distance(best) == 0 {
				break
			}
			want = append(want, best)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v: %v, want %v", faces, got, want)
		}
	}
}

// The password may be given at the very moment in which it is asked for.
func TestFollowAtOnce(t *testing.T) { bubble(testFollowAtOnce)(t) }

func testFollowAtOnce(t *testing.T) {
	d := follows(t, tablet.Options{}, stage.Alice)
	d.film.Play(stage.Show{Frames: near(stage.Alice, 9)})
	_, err := d.Verify(t.Context(), tablet.Attempt{User: "alice"}, func(r tablet.Result) {
		if r.Word == tablet.Unproven {
			d.password(t, "alice")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := d.Status("alice"); err != nil || s.Labelled != 3 {
		t.Errorf("%+v, %v", s, err)
	}
}
