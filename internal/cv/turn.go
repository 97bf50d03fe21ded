// SPDX-License-Identifier: Apache-2.0

package cv

import (
	"encoding/binary"
	"fmt"
	"image"
)

// Turn returns the picture turned clockwise by 0, 90, 180 or 270 degrees. The caller closes it. The error is
// [ErrClosed], or about another angle.
func (m *Image) Turn(degrees int) (*Image, error) {
	size := m.Size()
	right, bottom := float64(size.X-1), float64(size.Y-1)
	switch degrees {
	case 0:
		return m.Clone()
	case 90:
		return m.Warp([6]float64{0, -1, bottom, 1, 0, 0}, image.Pt(size.Y, size.X))
	case 180:
		return m.Warp([6]float64{-1, 0, right, 0, -1, bottom}, size)
	case 270:
		return m.Warp([6]float64{0, 1, 0, -1, 0, right}, image.Pt(size.Y, size.X))
	}
	return nil, fmt.Errorf("turning a picture by %d degrees: 0, 90, 180 and 270 are possible", degrees)
}

// oriented returns a picture as its EXIF orientation says, 1 to 8: turned, and even numbers below 5 and odd ones from 5
// mirrored before. It owns the picture.
func (m *Image) oriented(orientation int) (*Image, error) {
	degrees := map[int]int{3: 180, 4: 180, 5: 270, 6: 90, 7: 90, 8: 270}[orientation]
	if orientation == 2 || orientation == 4 || orientation == 5 || orientation == 7 {
		size := m.Size()
		mirrored, err := m.Warp([6]float64{-1, 0, float64(size.X - 1), 0, 1, 0}, size)
		m.Close()
		if err != nil {
			return nil, err
		}
		m = mirrored
	}
	if degrees == 0 {
		return m, nil
	}
	turned, err := m.Turn(degrees)
	m.Close()
	return turned, err
}

// webpOrientation returns the EXIF orientation of a WebP file, which OpenCV does not apply; 0 for other files.
func webpOrientation(data []byte) int {
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0
	}
	for rest := data[12:]; len(rest) >= 8; {
		n := int64(binary.LittleEndian.Uint32(rest[4:]))
		if n > int64(len(rest)-8) {
			return 0
		}
		if string(rest[:4]) == "EXIF" {
			return exifOrientation(rest[8 : 8+n])
		}
		rest = rest[min(int64(len(rest)), 8+n+n%2):]
	}
	return 0
}

// exifOrientation returns the orientation in the first folder of EXIF, or 0.
func exifOrientation(b []byte) int {
	if len(b) >= 6 && string(b[:4]) == "Exif" {
		b = b[6:]
	}
	if len(b) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(b[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := int64(order.Uint32(b[4:]))
	if at > int64(len(b)-2) {
		return 0
	}
	n := int(order.Uint16(b[at:]))
	for entry := b[at+2:]; n > 0 && len(entry) >= 12; n, entry = n-1, entry[12:] {
		if order.Uint16(entry) == 0x112 {
			return int(order.Uint16(entry[8:]))
		}
	}
	return 0
}
