// SPDX-License-Identifier: Apache-2.0

package footage

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/faceauth/faceauth/internal/heif"
	"github.com/faceauth/faceauth/internal/raw"
	"github.com/faceauth/faceauth/internal/safefile"
)

// kind is what a file is.
type kind int

const (
	beside  kind = iota // it shows nobody
	film                //
	picture             //
	unread              // it may show people, and cannot be read here
)

// Endings that decide what a file is.
var (
	filmEndings = []string{".avi", ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".mpg", ".mpeg", ".wmv",
		".flv", ".ts", ".m2ts", ".mts", ".3gp", ".mjpeg", ".mjpg", ".gif", ".ogv", ".asf", ".vob",
		".h264", ".264", ".h265", ".hevc", ".dav", ".y4m"}
	pictureEndings = []string{".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".pgm", ".ppm", ".pnm",
		".bmp", ".tif", ".tiff", ".webp", ".heic", ".heif", ".hif", ".heics", ".avci", ".jxl"}
	unreadEndings  = []string{".psd", ".xcf", ".insv", ".braw"}
	listEndings    = []string{".m3u8", ".m3u", ".mpd"}
	archiveEndings = []string{".zip", ".livp", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".zst", ".7z",
		".rar", ".cbz", ".cbr", ".iso"}
	besideEndings = []string{".mka", ".m4a", ".mp3", ".aac", ".wma", ".opus", ".oga", ".flac",
		".wav", ".db", ".nfo", ".lnk", ".xmp", ".aae", ".thm", ".svg", ".ico", ".cur", ".ttc",
		".sqlite", ".crdownload", ".part"}
)

// IsFilm reports whether a file must be a film by its name: then it is an error if it cannot be
// read.
func IsFilm(path string) bool { return slices.Contains(filmEndings, ending(path)) }

// IsPicture reports whether a file is a picture, by its name or else by its content.
func IsPicture(path string) bool {
	k, _ := kindOf(path)
	return k == picture
}

// Unreadable says why nothing can be read of a file, as far as its name and its first bytes tell;
// "" if they do not.
func Unreadable(path string) string {
	info, err := os.Stat(path)
	if err == nil && info.Size() == 0 {
		return "it is empty"
	}
	if k, why := kindOf(path); k == unread {
		return why
	}
	return ""
}

func ending(path string) string { return strings.ToLower(filepath.Ext(path)) }

// kindOf returns what a file is: by its ending, or else by its content. Why says why it cannot be
// read.
func kindOf(path string) (k kind, why string) {
	end := ending(path)
	switch {
	case slices.Contains(filmEndings, end):
		return film, ""
	case slices.Contains(pictureEndings, end), raw.Named(path):
		return picture, ""
	case slices.Contains(listEndings, end):
		return unread, end + " (a list of other files)"
	case slices.Contains(archiveEndings, end):
		return unread, end + " (an archive; unpack it)"
	case slices.Contains(unreadEndings, end):
		return unread, end + " (cannot be read here)"
	case slices.Contains(besideEndings, end):
		return beside, ""
	}
	f, err := safefile.Open(path) // a pipe would wait for its writer
	if err != nil {
		return unread, "file (cannot be opened)"
	}
	defer f.Close()
	head := make([]byte, 1024)
	n, err := io.ReadFull(f, head)
	if n == 0 && err != io.EOF {
		return unread, "file (cannot be read)"
	}
	k = sniff(head[:n])
	if end == ".avif" && k != film { // it may be a film
		return picture, ""
	}
	if k != unread {
		return k, ""
	}
	if end == "" {
		end = "file without an ending"
	}
	return unread, end + " (cannot be read here)"
}

// sniff returns what a file is by its first kilobyte.
func sniff(head []byte) kind {
	begins := func(at int, s string) bool {
		return len(head) >= at && bytes.HasPrefix(head[at:], []byte(s))
	}
	if raw.Begins(head) {
		return picture
	}
	if begins(4, "ftyp") && len(head) >= 12 {
		switch brand := string(head[8:12]); {
		case brand == "M4A " || brand == "M4B ":
			return beside
		case heif.Is(head):
			return picture
		}
		return film
	}
	pnm := len(head) > 2 && head[0] == 'P' && head[1] >= '1' && head[1] <= '6' &&
		strings.ContainsRune(" \t\r\n#", rune(head[2]))
	bmp := begins(0, "BM") && begins(6, "\x00\x00\x00\x00")
	// MPEG-TS
	stream := len(head) > 376 && head[0] == 0x47 && head[188] == 0x47 && head[376] == 0x47
	ogg := begins(0, "OggS")
	sees := ogg && (bytes.Contains(head, []byte("theora")) || bytes.Contains(head, []byte("OVP80")))
	switch {
	case begins(0, "\xff\xd8\xff"), begins(0, "\x89PNG\r\n"),
		begins(0, "RIFF") && begins(8, "WEBP"), begins(4, "JXL \r\n"), bmp, pnm, raw.TIFF(head):
		return picture
	case begins(0, "GIF8"), begins(0, "\x1a\x45\xdf\xa3"), begins(0, "RIFF") && begins(8, "AVI "),
		begins(0, "FLV\x01"), begins(0, "\x00\x00\x01\xba"), begins(0, "\x00\x00\x01\xb3"),
		begins(0, "\x00\x00\x00\x01"), begins(0, "\x30\x26\xb2\x75"), begins(0, "DHAV"),
		begins(0, "YUV4MPEG2 "), stream, sees:
		return film
	case ogg && slices.ContainsFunc([]string{"vorbis", "Opus", "FLAC", "Speex"},
		func(codec string) bool {
			return bytes.Contains(head, []byte(codec))
		}):
		return beside
	case begins(0, "%PDF"), begins(0, "%!PS"), begins(0, "PK\x03\x04"):
		return unread
	case plain(head):
		return beside
	}
	switch is, _, _ := strings.Cut(http.DetectContentType(head), "/"); is {
	case "text", "audio", "font":
		return beside
	}
	return unread
}

// plain reports whether the beginning of a file is text. A character may be cut off at its end.
func plain(head []byte) bool {
	for n := len(head); n >= max(0, len(head)-3); n-- {
		if utf8.Valid(head[:n]) {
			return !bytes.ContainsRune(head[:n], 0)
		}
	}
	return false
}
