// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/internal/clitest"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/footage"
)

// A search for p0 in pictures and films as people have them: what is found in each folder, and what
// is named. They are made of recordings by ffmpeg, as its reports and those of other programs
// describe them. The person was enrolled under a name that a Mac has decomposed.
func TestSystemCases(t *testing.T) {
	t.Parallel()
	clitest.Long(t)
	clitest.Real(t)
	const name, decomposed = "Jos\u00e9", "Jose\u0301"
	heads := fixture.Recordings(t, "faces/vidtimit_rot")
	const setup = `set -eu; ff() { ffmpeg -v error -y "$@"; }
clip() { ff -framerate 25 -start_number 10 -i "$H/$1/%03d.jpg" -frames:v $2 -pix_fmt yuv420p s.mp4; }
`
	cases := map[string]struct{ make, want string }{
		// Portraits before one backdrop are no film.
		"school": {`i=101; for p in p1 p2 p3 p0 p4 p5; do
ff -i "$H/$p/012.jpg" -vf pad=1200:900:344:250:gray DSC_0$i.JPG; i=$((i+1)); done`,
			"DSC_0104.JPG"},
		"album": {`i=10; for n in 012 016 020; do for p in p0 p1 p2 p3; do
cp "$H/$p/$n.jpg" $i.jpg; i=$((i+1)); done; done`, "10.jpg 14.jpg 18.jpg"},
		"page": {`ff -f lavfi -i color=0xEBE1CD:2600x2000 -i "$H/p1/012.jpg" -i "$H/p2/012.jpg" \
-i "$H/p0/012.jpg" -filter_complex "[1]scale=1200:-1[a];[2]scale=1200:-1[b];
[3]scale=800:-1,transpose=1[c];[0][a]overlay=60:60[x];[x][b]overlay=1340:60[y];
[y][c]overlay=900:1050" -frames:v 1 page.jpg`, "page.jpg"},
		"turned": {`for n in 010 012; do ff -i "$H/p0/$n.jpg" -vf transpose=1 $n.jpg; done
cp "$H/p0/011.jpg" .`, "010.jpg 011.jpg 012.jpg"},
		"thumbnail": {`ff -i "$H/p0/012.jpg" -vf scale=60:-1 small.tif; mv small.tif DSCN0001.NRW`,
			"!DSCN0001.NRW"},
		"phone": {`heif-enc -q 70 "$H/p0/012.jpg" -o IMG_0001.HEIC >/dev/null
ff -i "$H/p0/014.jpg" IMG_0002.jxl
printf '\0\0\0\30ftypheic' >IMG_0003.HEIC; echo '<plist/>' >IMG_0002.AAE`,
			"!IMG_0003.HEIC IMG_0001.HEIC IMG_0002.jxl"},
		"storage": {`mkdir -p @eaDir/a.jpg '#recycle' Private; cp "$H/p0/012.jpg" a.jpg
cp a.jpg @eaDir/a.jpg/SYNOPHOTO_THUMB_M.jpg; cp a.jpg '#recycle/'; cp a.jpg Private
touch Private/.nomedia`, "a.jpg"},
		"takeout": {`printf 'PK\3\4' >takeout-001.zip; : >empty.jpg`, "!empty.jpg !takeout-001.zip"},
		"mixed":   {`clip p0 24; cp "$H/p1/050.jpg" thumb.jpg`, "s.mp4@0"},
		"names": {`cp "$H/p0/012.jpg" "$(printf 'new\nline.jpg')"
cp "$H/p0/014.jpg" "$(printf 'tab\there.jpg')"`, "new\nline.jpg tab\there.jpg"},
		"playlist": {`clip p0 24; ff -i s.mp4 -g 8 -f hls -hls_time 0.4 -hls_playlist_type vod i.m3u8
rm s.mp4`, "i0.ts@0 i1.ts@0"},
		"damaged": {`clip p0 24; n=$(stat -c %s s.mp4); at=$(grep -abo mdat s.mp4 | cut -d: -f1)
head -c $at s.mp4 >a.mp4; head -c $((n-at)) /dev/zero >>a.mp4; rm s.mp4`, "!a.mp4"},
		"sound first": {`clip p0 24; for k in mkv mp4; do ff -f lavfi -i sine=duration=8 \
-itsoffset 5 -i s.mp4 -map 0 -map 1 -c:v copy -c:a aac late.$k; done; rm s.mp4`,
			"late.mkv@5 late.mp4@5"},
		"sound after": {`clip p0 150; ff -f lavfi -i sine=duration=8 -i s.mp4 -map 0 -map 1 \
-c:v copy -c:a aac after.mkv; rm s.mp4`, "after.mkv@0"},
	}
	dir := t.TempDir()
	for folder, c := range cases {
		in := filepath.Join(dir, "all", folder)
		fixture.Check(t, os.MkdirAll(in, 0o700))
		sh := exec.Command("sh", "-c", setup+c.make)
		sh.Dir, sh.Env = in, append(os.Environ(), "H="+heads)
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", folder, err, out)
		}
	}
	gallery, all := filepath.Join(dir, "gallery"), filepath.Join(dir, "all")
	faceauth := func(code int, args ...string) []byte {
		t.Helper()
		var out, words bytes.Buffer
		args = append(args, "--gallery", gallery, "--models", fixture.Models(t))
		if got := run(t.Context(), args, &out, &words); got != code {
			t.Fatalf("%v: exit code %d, want %d: %s", args, got, code, &words)
		}
		return out.Bytes()
	}
	faceauth(0, "enroll", filepath.Join(heads, "p0"), "--name", decomposed)
	var r struct {
		Hits []struct {
			Recording, File string
			From            float64
			Box             *[4]int
		}
		Unread []footage.Left
		Left   []footage.Left `json:"left_out"`
	}
	fixture.Check(t, json.Unmarshal(faceauth(9, "search", all, "--name", name, "--no-index",
		"--strangers", "balanced", "--json"), &r))
	got := map[string][]string{}
	note := func(path, mark, after string) {
		name, _ := filepath.Rel(all, path)
		folder, rest, _ := strings.Cut(name, "/")
		got[folder] = append(got[folder], mark+rest+after)
	}
	for _, h := range r.Hits {
		if h.File != "" {
			note(h.File, "", "")
			if h.Box == nil {
				t.Errorf("%s has no box", h.File)
			}
		} else {
			note(h.Recording, "", "@"+string('0'+rune(h.From)))
		}
	}
	for _, l := range append(r.Unread, r.Left...) {
		note(string(l.Path), "!", "")
	}
	for folder, c := range cases {
		slices.Sort(got[folder])
		if said := strings.Join(got[folder], " "); said != c.want {
			t.Errorf("%s: %q, want %q", folder, said, c.want)
		}
	}
}
