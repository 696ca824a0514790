package images

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"testing"
)

// exif returns Exif's segment of a JPEG file that says an orientation, in either order of
// bytes, with an entry before it.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	tiff := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		tiff = []byte("MM\x00*")
	}
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 2)
	for _, entry := range []struct{ tag, value uint16 }{{0x0100, 7}, {0x0112, orientation}} {
		tiff = order.AppendUint16(order.AppendUint16(tiff, entry.tag), 3)
		tiff = order.AppendUint32(tiff, 1)
		tiff = order.AppendUint16(order.AppendUint16(tiff, entry.value), 0)
	}
	body := append([]byte("Exif\x00\x00"), tiff...)
	return append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(body)+2)), body...)
}

// withSegment inserts a segment after the start of a JPEG file.
func withSegment(file, segment []byte) []byte {
	return append(append(bytes.Clone(file[:2]), segment...), file[2:]...)
}

func greyJPEG(tb testing.TB, w, h int, value func(x, y int) uint8) []byte {
	m := image.NewGray(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetGray(x, y, color.Gray{Y: value(x, y)})
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// Where row 0 and column 0 of the pixels lie, by the standard of Exif.
func TestImagesAreTurnedUpright(t *testing.T) {
	const w, h = 16, 24 // upright
	upright := func(x, y int) uint8 { return uint8(9*x + 4*y) }
	for orientation, lying := range map[uint16]func(x, y int) (int, int){
		0: func(x, y int) (int, int) { return x, y }, // not allowed: taken for 1
		1: func(x, y int) (int, int) { return x, y },
		2: func(x, y int) (int, int) { return w - 1 - x, y },         // row 0 at the top, column 0 at the right
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y }, // bottom, right
		4: func(x, y int) (int, int) { return x, h - 1 - y },         // bottom, left
		5: func(x, y int) (int, int) { return y, x },                 // left, top
		6: func(x, y int) (int, int) { return w - 1 - y, x },         // right, top
		7: func(x, y int) (int, int) { return w - 1 - y, h - 1 - x }, // right, bottom
		8: func(x, y int) (int, int) { return y, h - 1 - x },         // left, bottom
		9: func(x, y int) (int, int) { return x, y },
	} {
		across, down := w, h
		if orientation >= 5 && orientation <= 8 {
			across, down = h, w
		}
		file := greyJPEG(t, across, down, func(x, y int) uint8 { return upright(lying(x, y)) })
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			tagged := withSegment(file, exif(order, orientation))
			s, err := pictureShape(tagged)
			if err != nil || s != (shape{h, w, 1}) {
				t.Fatalf("orientation %d: shape %v, error %v", orientation, s, err)
			}
			got := make([]byte, w*h)
			if err := decodePicture(tagged, got, s); err != nil {
				t.Fatal(err)
			}
			for y := range h {
				for x := range w {
					if d := int(got[y*w+x]) - int(upright(x, y)); d < -4 || d > 4 {
						t.Fatalf("orientation %d: pixel (%d, %d) is %d, want about %d", orientation, x, y, got[y*w+x], upright(x, y))
					}
				}
			}
		}
	}
}

// A square that is cut and scaled is the same whichever way the photograph was taken.
func TestTurnedImagesAreScaledAlike(t *testing.T) {
	lying := withSegment(greyJPEG(t, 32, 24, func(x, y int) uint8 { return uint8(5*x + 3*y) }), exif(binary.BigEndian, 6))
	standing := greyJPEG(t, 24, 32, func(x, y int) uint8 { return uint8(5*y + 3*(23-x)) })
	var got [2][64]byte
	for i, file := range [][]byte{lying, standing} {
		if err := decodePicture(file, got[i][:], shape{8, 8, 1}); err != nil {
			t.Fatal(err)
		}
	}
	for p, v := range got[0] {
		if d := int(v) - int(got[1][p]); d < -3 || d > 3 {
			t.Errorf("value %d is %d, want about %d", p, v, got[1][p])
		}
	}
}

func FuzzOrientation(f *testing.F) {
	file := greyJPEG(f, 8, 8, func(x, y int) uint8 { return uint8(x * y) })
	f.Add(withSegment(file, exif(binary.LittleEndian, 6)))
	f.Add(withSegment(file, exif(binary.BigEndian, 3)))
	f.Add(withSegment(file, exif(binary.BigEndian, 3)[:20]))
	f.Add([]byte("\xff\xd8\xff\xff\xff\xe1\x00\x09Exif\x00\x00M"))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, file []byte) {
		if o := orientation(file); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}
