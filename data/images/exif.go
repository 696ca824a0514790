package images

import (
	"bytes"
	"encoding/binary"

	"cne/internal/selection"
)

// orientation returns the value of Exif's tag Orientation in a PNG, JPEG or WebP file: 1
// to 8, where 1 is upright. If the tag is missing or invalid, it returns 1.
func orientation(file []byte) int {
	// Of PNG and WebP the chunk is not searched for one by one: what follows a name that is
	// none is no TIFF file.
	if _, tiff, ok := bytes.Cut(file, []byte("eXIf")); ok && bytes.HasPrefix(file, []byte(pngMagic)) {
		return tiffOrientation(tiff)
	}
	if _, chunk, ok := bytes.Cut(file, []byte("EXIF")); ok && isWebP(file) {
		return tiffOrientation(bytes.TrimPrefix(chunk[min(4, len(chunk)):], []byte("Exif\x00\x00")))
	}
	for rest := file[min(2, len(file)):]; len(rest) >= 4 && rest[0] == 0xff; {
		const app1, startOfScan = 0xe1, 0xda
		marker, length := rest[1], int(binary.BigEndian.Uint16(rest[2:]))
		if marker == 0xff { // padding
			rest = rest[1:]
			continue
		}
		if marker == startOfScan || length < 2 || 2+length > len(rest) {
			break
		}
		if tiff, ok := bytes.CutPrefix(rest[4:2+length], []byte("Exif\x00\x00")); ok && marker == app1 {
			return tiffOrientation(tiff)
		}
		rest = rest[2+length:]
	}
	return upright
}

// upright is the orientation of an image that needs no change. From turned, rows and
// columns are swapped.
const (
	upright = 1
	turned  = 5
)

// tiffOrientation returns the orientation in the first directory of a TIFF file.
func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return upright
	}
	order, ok := map[string]binary.ByteOrder{"II*\x00": binary.LittleEndian, "MM\x00*": binary.BigEndian}[string(tiff[:4])]
	if !ok {
		return upright
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return upright
	}
	const entry, tag, short = 12, 0x0112, 3
	count := int(order.Uint16(tiff[at:]))
	for entries := tiff[at+2:]; count > 0 && len(entries) >= entry; count-- {
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			if o := int(order.Uint16(entries[8:])); o >= upright && o <= 8 {
				return o
			}
			return upright
		}
		entries = entries[entry:]
	}
	return upright
}

// orient writes the pixels of src to dst as an upright image of shape s. orientation, 1
// to 8, is the orientation of src.
func orient(dst, src []byte, s shape, orientation int) {
	width := selection.If(orientation >= turned, s.h, s.w) // of src
	for y := range s.h {
		for x := range s.w {
			u, v := s.w-1-x, s.h-1-y // from the other side
			// Row and column in src, by orientation.
			from := [...][2]int{upright: {y, x}, 2: {y, u}, 3: {v, u}, 4: {v, x}, 5: {x, y}, 6: {u, y}, 7: {u, v}, 8: {x, v}}[orientation]
			at := (from[0]*width + from[1]) * s.c
			copy(dst[(y*s.w+x)*s.c:][:s.c], src[at:])
		}
	}
}
