// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
)

// OpenCV reads the first video stream of a file. This may be a cover picture, and there may be others. To read another
// one, the first is hidden from FFmpeg: the file is read as a chain of its parts, in which another byte of the file
// stands for the one that says that the stream is a video.

// stream is a video stream of a file.
type stream struct {
	id     int64 // of an MKV
	at     int64 // where the file says that it is a video, or a track at all
	frames int   // in its index, or up to mostCounted of its first ones; -1 if unknown
}

// mostCounted and mostSearched are the frames that are counted, and the bytes that are passed, to find a stream that has
// more than one picture.
const (
	mostCounted  = 32
	mostSearched = 64 << 20
	mostHeader   = 64 << 20 // bytes of the tables of an MP4
)

// choose returns a name by which FFmpeg reads the film in a file, and the number of further films in it that are not
// read. The name is the path itself where the first stream is the film, or the file is of another kind.
func choose(path string) (name string, others int) {
	f, err := os.Open(path)
	if err != nil {
		return path, 0
	}
	defer f.Close()
	var head [12]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return path, 0
	}
	var all []stream
	hides, size := int64(0), int64(1) // a place in the file with bytes that mean no video
	switch {
	case string(head[4:8]) == "ftyp":
		all, hides, size = mp4Streams(f)
	case binary.BigEndian.Uint32(head[:]) == ebmlID:
		all = mkvStreams(f) // its first byte is no kind of a track
	}
	film := slices.IndexFunc(all, func(s stream) bool { return s.frames != 1 })
	if film < 0 {
		return path, 0
	}
	for _, s := range all[film+1:] {
		if s.frames != 1 {
			others++
		}
	}
	if film == 0 || strings.Contains(path, "|") {
		return path, others
	}
	var parts []string
	part := func(from, to int64) {
		if to > from {
			parts = append(parts, fmt.Sprintf("subfile,,start,%d,end,%d,,:%s", from, to, path))
		}
	}
	info, err := f.Stat()
	if err != nil {
		return path, others
	}
	from := int64(0)
	for _, s := range all[:film] {
		part(from, s.at)
		part(hides, hides+size)
		from = s.at + size
	}
	part(from, info.Size())
	return "concat:" + strings.Join(parts, "|"), others
}

// box is a box of an MP4 in memory.
type box struct {
	kind  string
	named int64 // where its kind stands in the file
	at    int64 // of its content
	body  []byte
}

// boxes returns the boxes in a content that begins at a place in the file.
func boxes(body []byte, at int64) (all []box) {
	for len(body) >= 8 {
		n, head := int64(binary.BigEndian.Uint32(body)), int64(8)
		if n == 1 && len(body) >= 16 {
			n, head = int64(binary.BigEndian.Uint64(body[8:])), 16
		}
		if n == 0 {
			n = int64(len(body))
		}
		if n < head || n > int64(len(body)) {
			return all
		}
		all = append(all, box{string(body[4:8]), at + 4, at + head, body[head:n]})
		body, at = body[n:], at+n
	}
	return all
}

// within returns the first box on a path.
func (b box) within(path ...string) (found box, ok bool) {
	for _, kind := range path {
		inside := boxes(b.body, b.at)
		i := slices.IndexFunc(inside, func(b box) bool { return b.kind == kind })
		if i < 0 {
			return b, false
		}
		b = inside[i]
	}
	return b, true
}

// mp4Streams returns the video streams of an MP4, and a place with four letters that name no box.
func mp4Streams(f *os.File) (all []stream, hides, size int64) {
	at := int64(0)
	for range 1 << 16 {
		var head [16]byte
		n, err := f.ReadAt(head[:], at)
		if err != nil && (err != io.EOF || n < 8) {
			return nil, 0, 4
		}
		length, begin := int64(binary.BigEndian.Uint32(head[:])), int64(8)
		if length == 1 {
			length, begin = int64(binary.BigEndian.Uint64(head[8:])), 16
		}
		if length < begin {
			return nil, 0, 4
		}
		if string(head[4:8]) != "moov" {
			if at > math.MaxInt64-length {
				return nil, 0, 4
			}
			at += length
			continue
		}
		if length-begin > mostHeader {
			return nil, 0, 4
		}
		body, err := io.ReadAll(io.NewSectionReader(f, at+begin, length-begin))
		if err != nil {
			return nil, 0, 4
		}
		for _, track := range boxes(body, at+begin) {
			if track.kind != "trak" {
				continue
			}
			handler, ok := track.within("mdia", "hdlr")
			if !ok || len(handler.body) < 12 || string(handler.body[8:12]) != "vide" {
				continue
			}
			s := stream{at: track.named, frames: -1}
			if sizes, ok := track.within("mdia", "minf", "stbl", "stsz"); ok && len(sizes.body) >= 12 {
				if n := int(binary.BigEndian.Uint32(sizes.body[8:])); n > 0 { // 0 in fragments
					s.frames = n
				}
			}
			all = append(all, s)
		}
		return all, 8, 4 // the brand of the file, which is no kind of a box
	}
	return nil, 0, 4
}

// Elements of Matroska.
const (
	ebmlID, segmentID, tracksID, entryID, clusterID = 0x1a45dfa3, 0x18538067, 0x1654ae6b, 0xae, 0x1f43b675
	trackNumberID, trackTypeID, groupID             = 0xd7, 0x83, 0xa0
	blockID, simpleBlockID                          = 0xa1, 0xa3
)

// element reads the head of an element: its name, and where its content begins and ends. The end of an element of
// unknown length is that of the file.
func element(f *os.File, at, end int64) (id uint32, from, to int64, ok bool) {
	var b [12]byte
	n, err := f.ReadAt(b[:], at)
	if err != nil && err != io.EOF || n < 2 || b[0] == 0 {
		return 0, 0, 0, false
	}
	wide := bits.LeadingZeros8(b[0]) + 1
	if wide > 4 || n < wide+1 {
		return 0, 0, 0, false
	}
	for _, x := range b[:wide] {
		id = id<<8 | uint32(x)
	}
	size, width, ok := number(b[wide:n])
	if !ok {
		return 0, 0, 0, false
	}
	from = at + int64(wide+width)
	if size == 1<<(7*width)-1 || size > uint64(end-from) { // unknown, or cut off
		return id, from, end, from <= end
	}
	return id, from, from + int64(size), true
}

// number reads a number whose leading bits say how wide it is.
func number(b []byte) (n uint64, width int, ok bool) {
	if len(b) == 0 || b[0] == 0 {
		return 0, 0, false
	}
	width = bits.LeadingZeros8(b[0]) + 1
	if len(b) < width {
		return 0, 0, false
	}
	n = uint64(b[0]) & (1<<(8-width) - 1)
	for _, x := range b[1:width] {
		n = n<<8 | uint64(x)
	}
	return n, width, true
}

// mkvStreams returns the video streams of an MKV or WebM, with the number of their first frames.
func mkvStreams(f *os.File) (all []stream) {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	end := info.Size()
	for at := int64(0); at < min(end, mostSearched); {
		id, from, to, ok := element(f, at, end)
		if !ok {
			return all
		}
		switch id {
		case segmentID, clusterID, groupID: // what they hold comes next
			at = from
			continue
		case tracksID:
			all = mkvTracks(f, from, to)
			if len(all) < 2 {
				return all
			}
		case blockID, simpleBlockID:
			var b [8]byte
			f.ReadAt(b[:], from)
			track, _, _ := number(b[:])
			done := true
			for i := range all {
				if all[i].id == int64(track) {
					all[i].frames++
				}
				done = done && all[i].frames >= mostCounted
			}
			if done && len(all) > 0 {
				return all
			}
		}
		at = to
	}
	return all
}

// mkvTracks returns the video streams of a list of tracks.
func mkvTracks(f *os.File, at, end int64) (all []stream) {
	for at < end {
		id, from, to, ok := element(f, at, end)
		if !ok {
			return all
		}
		if at = to; id != entryID {
			continue
		}
		s, video := stream{id: -1}, false
		for inside := from; inside < to; {
			id, from, next, ok := element(f, inside, to)
			if !ok {
				break
			}
			var b [8]byte
			value := b[:min(8, max(0, next-from))]
			f.ReadAt(value, from)
			n := int64(0)
			for _, x := range value {
				n = n<<8 | int64(x)
			}
			switch {
			case id == trackNumberID:
				s.id = n
			case id == trackTypeID && next-from == 1:
				s.at, video = from, n == 1
			}
			inside = next
		}
		if video {
			all = append(all, s)
		}
	}
	return all
}
