package images_test

import (
	"bytes"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data/images"
)

// filled returns an image of one colour.
func filled(w, h int, c color.Color) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.Set(x, y, c)
		}
	}
	return m
}

// photographs returns files as in a folder of photographs: images of many shapes, some
// greyscale, some broken, and other files.
func photographs(t *testing.T) tree {
	cmyk := need(os.ReadFile("testdata/cmyk.jpg"))(t)
	grey := image.NewGray(image.Rect(0, 0, 9, 9))
	for i := range grey.Pix {
		grey.Pix[i] = 100
	}
	deep := image.NewGray16(image.Rect(0, 0, 5, 8))
	// The middle of a wide image is what is kept of it.
	wide := filled(60, 10, color.NRGBA{B: 255, A: 255})
	for y := range 10 {
		for x := 25; x < 35; x++ {
			wide.Set(x, y, color.NRGBA{G: 255, A: 255})
		}
	}
	return tree{
		"d/a1 grey.png":          pngOf(grey),
		"d/a2 wide.png":          pngOf(wide),
		"d/a10 tall.jpg":         jpegOf(filled(8, 50, color.NRGBA{R: 250, A: 255})),
		"d/a11 cmyk.JPG":         cmyk,
		"d/a12 opaque.png":       pngOf(filled(7, 7, color.NRGBA{10, 20, 30, 255})),
		"d/notes.txt":            []byte("none of these"),
		"d/.hidden.png":          []byte("nor this"),
		"d/summer/b deep.png":    pngOf(deep),
		"d/summer/day 2/c.jpeg":  jpegOf(filled(3, 2, color.White)),
		"d/summer/day 2/one.png": pngOf(filled(1, 9, color.Black)),
	}
}

// A folder of photographs of any size, in colour and greyscale, without classes, is read
// with all that is below it.
func TestPhotographs(t *testing.T) {
	root := filepath.Join(plant(t, photographs(t)), "d")
	last := 0
	im, err := images.Open(t.Context(), []string{root}, images.Options{Size: 4, Progress: func(done, all int) {
		if done < 1 || done > all || all != 8 {
			t.Errorf("%d of %d done", done, all)
		}
		last = done
	}})
	must(t, err)
	if im.N != 8 || im.H != 4 || im.W != 4 || im.C != 3 || im.Labels != nil || im.Train != nil || len(im.Skipped) != 0 || last != 8 {
		t.Fatalf("%d images of %d×%d×%d, labels %v, progress to %d", im.N, im.H, im.W, im.C, im.Labels, last)
	}
	want := []string{"a1 grey.png", "a2 wide.png", "a10 tall.jpg", "a11 cmyk.JPG", "a12 opaque.png", "summer/b deep.png", "summer/day 2/c.jpeg", "summer/day 2/one.png"}
	if !slices.Equal(im.Names, want) {
		t.Errorf("names %q, want %q", im.Names, want)
	}
	for i, colour := range [][3]int{{100, 100, 100}, {0, 255, 0}, {250, 0, 0}, {255, 0, 0}, {10, 20, 30}, {0, 0, 0}, {255, 255, 255}, {0, 0, 0}} {
		for k, v := range im.Image(i) {
			if d := int(v) - colour[k%3]; d < -6 || d > 6 {
				t.Errorf("%s has a pixel %v, want about %v", want[i], im.Image(i)[k/3*3:][:3], colour)
				break
			}
		}
	}
}

// Unusable files are named in one sentence, and left out with SkipBroken.
func TestBrokenPhotographs(t *testing.T) {
	whole := pngOf(filled(20, 10, color.NRGBA{200, 100, 50, 255}))
	broken := map[string]struct {
		file []byte
		want string
	}{
		"cut.png":   {whole[:len(whole)-20], "unexpected EOF"},
		"empty.jpg": {nil, "it is empty"},
		"text.jpg":  {[]byte("<html>not found</html>"), "it is neither PNG nor JPEG nor WebP"},
		"pixel.png": {pngOf(filled(1, 1, color.White)), "it has a single pixel"},
		"film.gif":  {[]byte("GIF89a"), "GIF is not read; convert it to PNG or JPEG"},
	}
	for name, tc := range broken {
		t.Run(name, func(t *testing.T) {
			files := photographs(t)
			files["d/"+name] = tc.file
			root := filepath.Join(plant(t, files), "d")
			_, err := images.Open(t.Context(), []string{root}, images.Options{Size: 4})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that names %s and says %q", err, name, tc.want)
			}
			im := need(images.Open(t.Context(), []string{root}, images.Options{Size: 4, SkipBroken: true}))(t)
			without := need(images.Open(t.Context(), []string{filepath.Join(plant(t, photographs(t)), "d")}, images.Options{Size: 4}))(t)
			if len(im.Skipped) != 1 || !strings.Contains(im.Skipped[0], name) || slices.Contains(im.Names, name) || !bytes.Equal(im.Pixels, without.Pixels) {
				t.Errorf("left out are %q; the others differ: %v", im.Skipped, !bytes.Equal(im.Pixels, without.Pixels))
			}
			// Or they are white in their place.
			blank := need(images.Open(t.Context(), []string{root}, images.Options{Size: 4, Thumbnail: 4}))(t)
			at := slices.Index(blank.Names, name)
			if blank.N != without.N+1 || len(blank.Skipped) != 1 || at < 0 || slices.ContainsFunc(blank.Image(at), func(v byte) bool { return v != 255 }) ||
				!bytes.Equal(slices.Delete(slices.Clone(blank.Pixels), at*48, at*48+48), without.Pixels) {
				t.Errorf("%d images, left out %q, names %q", blank.N, blank.Skipped, blank.Names)
			}
			single := plant(t, tree{"d/" + name: tc.file})
			if im, err := images.Open(t.Context(), []string{filepath.Join(single, "d")}, images.Options{Size: 4, SkipBroken: true}); err == nil {
				t.Errorf("got %d images from a folder with nothing else", im.N)
			}
		})
	}
	// Classes and the split lose what is left out, too.
	root := plant(t, tree{"d/train/x/1.png": whole, "d/train/x/2.png": nil, "d/train/y/3.png": whole, "d/test/x/4.png": whole})
	im := need(images.Open(t.Context(), []string{filepath.Join(root, "d")}, images.Options{SkipBroken: true}))(t)
	if im.N != 3 || !slices.Equal(im.Labels.Class, []int32{0, 1, 0}) || !slices.Equal(im.Train, []bool{true, true, false}) {
		t.Errorf("%d images of classes %v, training %v", im.N, im.Labels.Class, im.Train)
	}
}

// Skipped files are named wherever they are: next to the folders of classes or of a split,
// and broken links.
func TestSkippedPhotographsAreNamed(t *testing.T) {
	whole := pngOf(filled(20, 10, color.NRGBA{200, 100, 50, 255}))
	for name, tc := range map[string]struct {
		files   tree
		skipped []string
	}{
		"next to classes":  {tree{"d/x/1.png": whole, "d/y/2.png": whole, "d/film.gif": nil}, []string{"film.gif"}},
		"in a class":       {tree{"d/x/1.png": whole, "d/y/2.png": whole, "d/y/film.gif": nil}, []string{"y/film.gif"}},
		"next to a split":  {tree{"d/train/x/1.png": whole, "d/test/x/2.png": whole, "d/film.gif": nil, "d/train/a.bmp": nil}, []string{"film.gif", "train/a.bmp"}},
		"without classes":  {tree{"d/1.png": whole, "d/deep/er/2.png": whole, "d/film.gif": nil}, []string{"film.gif"}},
		"classes too deep": {tree{"d/x/1.png": whole, "d/x/er/2.png": whole, "d/film.gif": nil}, []string{"film.gif"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := filepath.Join(plant(t, tc.files), "d")
			want := tc.skipped
			if err := os.Symlink("nowhere", filepath.Join(root, "gone.jpg")); err == nil {
				want = append(want, "gone.jpg")
			}
			if _, err := images.Open(t.Context(), []string{root}, images.Options{}); err == nil {
				t.Error("they are not refused")
			}
			im := need(images.Open(t.Context(), []string{root}, images.Options{SkipBroken: true}))(t)
			var got []string
			for _, s := range im.Skipped {
				path, why, _ := strings.Cut(s, " (")
				rel, err := filepath.Rel(root, path)
				if err != nil || why == "" {
					t.Errorf("%q: %v", s, err)
				}
				got = append(got, filepath.ToSlash(rel))
			}
			slices.Sort(got)
			slices.Sort(want)
			if im.N != 2 || !slices.Equal(got, want) {
				t.Errorf("%d images; left out are %q, want %q", im.N, got, want)
			}
		})
	}
}
