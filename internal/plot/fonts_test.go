package plot

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/image/font/gofont/goregular"

	"cne/data"
)

// withFonts sets the fonts of the system to those in a folder.
func withFonts(t *testing.T, folder string) {
	before := systemFonts.folders
	t.Cleanup(func() { systemFonts.folders = before; clear(systemFonts.of) })
	systemFonts.folders = []string{folder}
	clear(systemFonts.of)
}

// classPicture draws two classes with the given name of the second.
func classPicture(t *testing.T, name string, format Format) []byte {
	t.Helper()
	var b bytes.Buffer
	s := &Scatter{Embedding: &data.Matrix{N: 4, D: 2, X: []float32{0, 0, 0, 1, 9, 9, 9, 8}}, Colouring: Colouring{Classes: []int32{0, 0, 1, 1}, ClassNames: []string{"a", name}}, DPI: 200}
	if err := s.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// inked returns the number of dark pixels of a picture.
func inked(t *testing.T, content []byte) (n int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if r, g, bl, _ := img.At(x, y).RGBA(); r+g+bl < 2*0xffff {
				n++
			}
		}
	}
	return n
}

// Characters come from a font of the system, or are boxes that Undrawn names; raised signs
// need no font, and SVG keeps the text.
func TestFonts(t *testing.T) {
	folder := t.TempDir()
	withFonts(t, folder)
	empty := inked(t, classPicture(t, ".", PNG))
	for _, name := range []string{"北京", "서울", "العربية", "हिन्दी", "😀", "∪"} {
		if got := inked(t, classPicture(t, name, PNG)); got < empty+10 {
			t.Errorf("%s: got %d dark pixels, want more than %d", name, got, empty)
		}
		if svg := string(classPicture(t, name, SVG)); !strings.Contains(svg, ">"+name+"<") {
			t.Errorf("%s is not in the SVG", name)
		}
		if undrawn := Undrawn([]string{"CD4⁺ naïve x₁ Z̄", name, "Москва"}); !strings.Contains(name, string(undrawn)) || len(undrawn) == 0 {
			t.Errorf("%s: undrawn: %q", name, string(undrawn))
		}
	}
	if bytes.Equal(classPicture(t, "CD4⁺", PNG), classPicture(t, "CD4⁻", PNG)) || bytes.Equal(classPicture(t, "CD4⁺", PNG), classPicture(t, "CD4", PNG)) {
		t.Error("raised signs are not drawn")
	}
	boxes := classPicture(t, "a∪b", PNG)
	if err := os.WriteFile(filepath.Join(folder, "Broken.ttf"), []byte("no font"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "Go.ttf"), goregular.TTF, 0o666); err != nil {
		t.Fatal(err)
	}
	withFonts(t, folder)
	if undrawn := Undrawn([]string{"a∪b"}); undrawn != nil || bytes.Equal(classPicture(t, "a∪b", PNG), boxes) {
		t.Errorf("with a font there is still a box, %q", string(undrawn))
	}
	if undrawn := Undrawn([]string{"北a∪ع", "∪北"}); string(undrawn) != "北ع" {
		t.Errorf("undrawn: %q", string(undrawn))
	}
}

// Fonts come from folders of the system, not from those where a program is run.
func TestFontFolders(t *testing.T) {
	for _, name := range []string{"WINDIR", "HOME", "USERPROFILE"} {
		t.Setenv(name, "")
	}
	for _, folder := range fontFolders() {
		if !filepath.IsAbs(folder) {
			t.Errorf("got the folder %q, want no relative one", folder)
		}
	}
}
