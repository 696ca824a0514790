package plot

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// content returns the decompressed streams of a PDF, except images and fonts.
func content(t *testing.T, file string) string {
	t.Helper()
	var b strings.Builder
	for _, object := range strings.Split(file, "endobj") {
		head, stream, found := strings.Cut(object, "stream\n")
		if !found || strings.Contains(head, "/Subtype /Image") || strings.Contains(head, "/Length1") {
			continue
		}
		r, err := zlib.NewReader(strings.NewReader(stream))
		must(t, err)
		_, err = io.Copy(&b, r)
		must(t, err)
	}
	return b.String()
}

// Words are text in an embedded font. What Windows-1252 lacks, and what is of another font,
// is drawn.
func TestPDFText(t *testing.T) {
	s := &Scatter{Embedding: points(0, 0, 1, 1), Title: "Größe Ж"}
	file := string(write(t, s, PDF))
	if !strings.Contains(file, "/FontFile2") || strings.Contains(file, "/Subtype /Image") {
		t.Error("no font is embedded, or there are images")
	}
	text := content(t, file)
	if !strings.Contains(text, "(Gr\xf6\xdfe )Tj") || strings.Contains(text, "Ж") || strings.Contains(text, "\xd0\x96") {
		t.Errorf("the title is not written: %.2000q", text)
	}
	curves := func(title string) int {
		s.Title = title
		return strings.Count(content(t, string(write(t, s, PDF))), " v\n")
	}
	if plain, drawn := curves("Gr"), curves("GЖ"); drawn <= plain {
		t.Errorf("%d curves with a character that is drawn, %d without", drawn, plain)
	}
	face := fonts.Fonts.Lookup(titleStyle.Font, 12)
	face.Font.Typeface = "another"
	var b bytes.Buffer
	c := pdfCanvas{vgpdf.New(100, 100)}
	c.FillString(face, vg.Point{X: 10, Y: 10}, "a b")
	_, err := c.WriteTo(&b)
	must(t, err)
	if strings.Contains(b.String(), "/FontFile") || !strings.Contains(content(t, b.String()), " v\n") {
		t.Error("a font of the system is embedded")
	}
}

// A point has the colour of its class, whatever its opacity is.
func TestPDFColours(t *testing.T) {
	for _, alpha := range []float64{0.3, 1} {
		file := write(t, &Scatter{Embedding: points(0, 0, 1, 1), Colouring: Colouring{Classes: []int32{0, 1}}, Alpha: alpha}, PDF)
		for class := range 2 {
			c := ClassColour(class)
			fill := fmt.Sprintf("%.3f %.3f %.3f rg\n", float64(c.R)/255, float64(c.G)/255, float64(c.B)/255)
			if n := strings.Count(content(t, string(file)), fill); n != 2 { // in the legend, too
				t.Errorf("opacity %v: %d discs have the colour %q, want 2", alpha, n, fill)
			}
		}
	}
}

// Nothing but lines and curves is between the begin of a path and its filling.
func TestPDFPaths(t *testing.T) {
	within := false
	for line := range strings.Lines(content(t, string(write(t, many(50), PDF)))) {
		switch fields := strings.Fields(line); fields[len(fields)-1] {
		case "l", "c", "v", "h":
			within = true
		case "m", "f", "S", "n", "B": // a lone m is before text
			within = false
		default:
			if within {
				t.Fatalf("%q is within a path", line)
			}
		}
	}
}

// An image is opaque, stands upright, and begins at the lower end of the picture.
func TestPDFImage(t *testing.T) {
	s := many(mostDiscs * 11 / 10)
	s.DPI = 50
	y, scale := 0., 1.
	file := string(write(t, s, PDF))
	page, _, found := strings.Cut(content(t, file), " Do")
	if strings.Contains(file, "/SMask") {
		t.Error("the image is transparent")
	}
	for line := range strings.Lines(page) {
		var a, b, c, d, e, f float64
		if strings.TrimSpace(line) == "Q" {
			t.Fatal("a transformation ends before the image")
		}
		if n, _ := fmt.Sscanf(strings.TrimPrefix(line, "q "), "%f %f %f %f %f %f cm", &a, &b, &c, &d, &e, &f); n == 6 {
			y, scale = y+scale*f, scale*d
		}
	}
	if !found || scale < 100 || math.Abs(y) > 1.5 {
		t.Errorf("the image begins at %v points and is %v high", y, scale)
	}
}

// Few points are discs, many an image. The same picture is the same bytes.
func TestPDFPoints(t *testing.T) {
	for _, n := range []int{100, mostDiscs * 11 / 10, DenseFrom} {
		s := many(n)
		s.DPI = 50
		file := string(write(t, s, PDF))
		if isImage := strings.Contains(file, "/Subtype /Image"); isImage != (n > mostDiscs) {
			t.Errorf("%d points are an image: %v", n, isImage)
		}
		if again := string(write(t, s, PDF)); again != file {
			t.Errorf("%d points: two pictures differ", n)
		}
	}
	few, more := len(content(t, string(write(t, many(100), PDF)))), len(content(t, string(write(t, many(200), PDF))))
	if more < few*3/2 {
		t.Errorf("%d bytes for 100 points, %d for 200", few, more)
	}
}
