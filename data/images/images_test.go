package images_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
	"cne/data/images"
)

// pngOf and jpegOf encode an image.
func pngOf(m image.Image) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func jpegOf(m image.Image) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 100}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// colors returns an image of one colour for each w values of rgb, row by row.
func colors(w int, rgb ...byte) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, len(rgb)/3/w))
	for i := range len(rgb) / 3 {
		copy(m.Pix[4*i:], rgb[3*i:3*i+3])
		m.Pix[4*i+3] = 255
	}
	return m
}

func grays(w int, v ...byte) *image.Gray {
	return &image.Gray{Pix: v, Stride: w, Rect: image.Rect(0, 0, w, len(v)/w)}
}

// plain returns a colour image of one grey value.
func plain(w, h int, v byte) *image.RGBA {
	return colors(w, bytes.Repeat([]byte{v}, 3*w*h)...)
}

// cifarRecords makes images of CIFAR-10, each of the class and the red, green
// and blue that are given for it; the first pixel of each is 1, 2, 3.
func cifarRecords(set ...[4]byte) []byte {
	var b []byte
	for _, v := range set {
		b = append(b, v[0])
		for plane := range 3 {
			b = append(b, byte(plane+1))
			b = append(b, bytes.Repeat([]byte{v[plane+1]}, 1023)...)
		}
	}
	return b
}

const cifarNames = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"

// cifarTree makes the six batches, of one image each, and the names.
func cifarTree() tree {
	files := tree{
		"batches.meta.txt": []byte(cifarNames),
		"test_batch.bin":   cifarRecords([4]byte{9, 61, 62, 63}, [4]byte{0, 64, 65, 66}),
	}
	for i := range 5 {
		v := byte(10 * (i + 1))
		files[fmt.Sprintf("data_batch_%d.bin", i+1)] = cifarRecords([4]byte{byte(i + 1), v + 1, v + 2, v + 3})
	}
	return files
}

// tarOf packs files in descending order of their names, unlike the order of the batches.
func tarOf(folder string, files tree) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	slices.Reverse(names)
	for _, name := range names {
		w.WriteHeader(&tar.Header{Name: folder + name, Mode: 0o644, Size: int64(len(files[name]))})
		w.Write(files[name])
	}
	w.Close()
	return b.Bytes()
}

// An entry is a file of a zip archive.
type entry struct {
	name    string
	content []byte
}

// zipOf packs files as np.savez does, or as np.savez_compressed.
func zipOf(method uint16, entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.CreateHeader(&zip.FileHeader{Name: e.name, Method: method})
		if err != nil {
			panic(err)
		}
		f.Write(e.content)
	}
	w.Close()
	return b.Bytes()
}

// bytesNPY makes an npy file of unsigned bytes.
func bytesNPY(shape string, values ...byte) []byte {
	return npy("{'descr': '|u1', 'fortran_order': False, 'shape': "+shape+", }\n", values...)
}

// classes returns the name of the label of each image.
func classes(im *images.Set) []string {
	if im.Labels == nil {
		return nil
	}
	names := make([]string, len(im.Labels.Class))
	for i, c := range im.Labels.Class {
		names[i] = im.Labels.Names[c]
	}
	return names
}

// wantImages checks what holds of all images, and their shape, labels and
// split.
func wantImages(t *testing.T, im *images.Set, n, h, w, c int, labels []string, train []bool) {
	t.Helper()
	if im.N != n || im.H != h || im.W != w || im.C != c || len(im.Pixels) != n*h*w*c {
		t.Fatalf("the images are %d×%d×%d×%d with %d bytes, want %d×%d×%d×%d", im.N, im.H, im.W, im.C, len(im.Pixels), n, h, w, c)
	}
	if got := classes(im); !slices.Equal(got, labels) {
		t.Errorf("the labels are %q, want %q", got, labels)
	}
	if !slices.Equal(im.Train, train) || (im.Train == nil) != (train == nil) {
		t.Errorf("the split is %v, want %v", im.Train, train)
	}
}

func TestOpenImagesCIFAR(t *testing.T) {
	files := cifarTree()
	folder := plant(t, files)
	packed := tarOf("cifar-10-batches-bin/", files)
	archives := t.TempDir()
	labels := []string{"automobile", "bird", "cat", "deer", "dog", "truck", "airplane"}
	train := []bool{true, true, true, true, true, false, false}
	for _, tc := range []struct{ path, name string }{
		{folder, filepath.Base(folder)},
		{put(t, archives, "cifar-10-binary.tar.gz", gz(packed)), "cifar-10-binary"},
		{put(t, archives, "plain.tar", packed), "plain"},
	} {
		im := need(images.Open(t.Context(), []string{tc.path}, images.Options{}))(t)
		wantImages(t, im, 7, 32, 32, 3, labels, train)
		if im.Name != tc.name {
			t.Errorf("the name is %q, want %q", im.Name, tc.name)
		}
		for i, v := range []byte{11, 21, 31, 41, 51, 61, 64} {
			want := append([]byte{1, 2, 3}, bytes.Repeat([]byte{v, v + 1, v + 2}, 1023)...)
			if !bytes.Equal(im.Image(i), want) {
				t.Errorf("%s: image %d begins with %v, want %v", tc.path, i, im.Image(i)[:9], want[:9])
			}
		}
	}

	batches := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(folder, name))
		}
		return paths
	}
	im := need(images.Open(t.Context(), batches("test_batch.bin", "data_batch_3.bin"), images.Options{}))(t)
	wantImages(t, im, 3, 32, 32, 3, []string{"truck", "airplane", "cat"}, []bool{false, false, true})

	// A batch under a name of one's own, without names for the classes.
	im = need(images.Open(t.Context(), []string{put(t, archives, "some.bin.gz", gz(files["test_batch.bin"]))}, images.Options{}))(t)
	wantImages(t, im, 2, 32, 32, 3, []string{"9", "0"}, nil)
}

func TestOpenImagesFolder(t *testing.T) {
	withProcs(t, func(t *testing.T, _ int) {
		im, err := images.Open(t.Context(), []string{plant(t, tree{
			"dog/img10.png":  pngOf(plain(2, 1, 3)),
			"dog/img2.PNG":   pngOf(plain(2, 1, 2)),
			"dog/notes.txt":  nil,
			"dog/.DS_Store":  nil,
			"cat/b.jpeg":     jpegOf(plain(2, 1, 1)),
			".hidden/a.webp": nil,
			"LICENSE":        nil,
		})}, images.Options{Name: "pets"})
		must(t, err)
		wantImages(t, im, 3, 1, 2, 3, []string{"cat", "dog", "dog"}, nil)
		if want := []byte{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3}; !bytes.Equal(im.Pixels, want) {
			t.Errorf("the pixels are %v, want %v", im.Pixels, want)
		}
		if im.Name != "pets" {
			t.Errorf("the name is %q", im.Name)
		}
	})

	im, err := images.Open(t.Context(), []string{plant(t, tree{
		"test/a/1.png":   pngOf(grays(1, 1)),
		"test/c/1.png":   pngOf(grays(1, 2)),
		"train/b/9.png":  pngOf(grays(1, 3)),
		"train/b/10.png": pngOf(grays(1, 4)),
		"train/a/1.jpg":  jpegOf(grays(1, 5)),
	})}, images.Options{})
	must(t, err)
	wantImages(t, im, 5, 1, 1, 1, []string{"a", "b", "b", "a", "c"}, []bool{true, true, true, false, false})
	if want := []byte{5, 3, 4, 1, 2}; !bytes.Equal(im.Pixels, want) {
		t.Errorf("the pixels are %v, want %v", im.Pixels, want)
	}

	// Classes that are called train and test; numbers as classes.
	im, err = images.Open(t.Context(), []string{
		plant(t, tree{"test/1.png": pngOf(grays(1, 1)), "train/1.png": pngOf(grays(1, 2))}),
		plant(t, tree{"10/1.png": pngOf(grays(1, 4)), "9/1.png": pngOf(grays(1, 3))}),
	}, images.Options{})
	must(t, err)
	wantImages(t, im, 4, 1, 1, 1, []string{"test", "train", "9", "10"}, nil)
	if want := []byte{1, 2, 3, 4}; !bytes.Equal(im.Pixels, want) {
		t.Errorf("the pixels are %v, want %v", im.Pixels, want)
	}
}

// TestImageKinds decodes the kinds of pixels that PNG and JPEG have.
func TestImageKinds(t *testing.T) {
	rgb := []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}
	palette := image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.RGBA{255, 0, 0, 255}, color.RGBA{0, 255, 0, 255}, color.RGBA{0, 0, 255, 255}, color.RGBA{10, 20, 30, 255}})
	palette.Pix = []byte{0, 1, 2, 3}
	deep := image.NewNRGBA64(image.Rect(0, 0, 2, 2))
	deepGrey := image.NewGray16(image.Rect(0, 0, 2, 2))
	for i := range 4 {
		deep.SetNRGBA64(i%2, i/2, color.NRGBA64{uint16(rgb[3*i])*256 + 7, uint16(rgb[3*i+1])*256 + 7, uint16(rgb[3*i+2])*256 + 7, 0xffff})
		deepGrey.SetGray16(i%2, i/2, color.Gray16{uint16(i)*256 + 200})
	}
	veil, greyVeil := image.NewNRGBA(image.Rect(0, 0, 2, 2)), image.NewPaletted(image.Rect(0, 0, 2, 2), color.Palette{color.NRGBA{}, color.NRGBA{0, 0, 0, 51}, color.NRGBA{9, 8, 7, 255}})
	copy(veil.Pix, []byte{9, 9, 9, 0, 100, 0, 200, 255, 0, 0, 0, 51, 255, 255, 255, 51})
	greyVeil.Pix = []byte{0, 1, 2, 0}
	for _, tc := range []struct {
		name string
		file []byte
		c    int
		want []byte
		near int // how far values may be off, for JPEG
	}{
		{"PNG in colour", pngOf(colors(2, rgb...)), 3, rgb, 0},
		{"PNG with a palette", pngOf(palette), 3, rgb, 0},
		{"PNG of 16 bits", pngOf(deep), 3, rgb, 0},
		{"transparent PNG", pngOf(veil), 3, []byte{255, 255, 255, 100, 0, 200, 204, 204, 204, 255, 255, 255}, 0},
		{"transparent PNG with a palette", pngOf(greyVeil), 3, []byte{255, 255, 255, 204, 204, 204, 9, 8, 7, 255, 255, 255}, 0},
		{"PNG in greyscale", pngOf(grays(2, 1, 2, 3, 255)), 1, []byte{1, 2, 3, 255}, 0},
		{"PNG in greyscale of 16 bits", pngOf(deepGrey), 1, []byte{0, 1, 2, 3}, 0},
		{"JPEG in colour", jpegOf(colors(2, 90, 100, 110, 91, 101, 111, 92, 102, 112, 93, 103, 113)), 3, []byte{90, 100, 110, 91, 101, 111, 92, 102, 112, 93, 103, 113}, 3},
		{"JPEG in greyscale", jpegOf(grays(2, 90, 100, 110, 120)), 1, []byte{90, 100, 110, 120}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			im := need(images.Open(t.Context(), []string{plant(t, tree{"a/1.png": tc.file})}, images.Options{}))(t)
			wantImages(t, im, 1, 2, 2, tc.c, []string{"a"}, nil)
			for i, v := range im.Pixels {
				if d := int(v) - int(tc.want[i]); d > tc.near || d < -tc.near {
					t.Fatalf("the pixels are %v, want %v", im.Pixels, tc.want)
				}
			}
		})
	}
}

// TestWebP decodes what cwebp made of three stripes: black, red and white. Where it is not
// opaque, the left half is transparent in its upper part, and half so in its lower one.
func TestWebP(t *testing.T) {
	for name, near := range map[string]int{"lossless": 1, "lossy": 4, "lossless-alpha": 1, "lossy-alpha": 4} {
		t.Run(name, func(t *testing.T) {
			file := need(os.ReadFile("testdata/" + name + ".webp"))(t)
			im := need(images.Open(t.Context(), []string{plant(t, tree{"a/1.jpg": file})}, images.Options{}))(t)
			wantImages(t, im, 1, 16, 24, 3, []string{"a"}, nil)
			black, red := [3]int{}, [3]int{200, 40, 90}
			above, below := black, black
			if strings.HasSuffix(name, "alpha") {
				above, below = [3]int{255, 255, 255}, [3]int{127, 127, 127}
			}
			for at, want := range map[image.Point][3]int{{3, 3}: above, {3, 12}: below, {14, 3}: red, {14, 12}: red, {20, 3}: {255, 255, 255}} {
				for k, v := range im.Pixels[3*(24*at.Y+at.X):][:3] {
					if d := int(v) - want[k]; d > near || d < -near {
						t.Errorf("the pixel at %v is %v, want %v", at, im.Pixels[3*(24*at.Y+at.X):][:3], want)
						break
					}
				}
			}
			for cut := range file {
				_, _ = images.Open(t.Context(), []string{plant(t, tree{"a/1.webp": file[:cut]})}, images.Options{}) // does not panic
			}
		})
	}
}

// A lossy WebP image with transparency has the colours that libwebp gives it over white (by
// sharp, which wrote both files).
func TestWebPColours(t *testing.T) {
	root := plant(t, tree{
		"webp/1.webp": need(os.ReadFile("testdata/lossy-alpha-colours.webp"))(t),
		"png/1.png":   need(os.ReadFile("testdata/lossy-alpha-colours.png"))(t),
	})
	got := need(images.Open(t.Context(), []string{filepath.Join(root, "webp")}, images.Options{}))(t)
	want := need(images.Open(t.Context(), []string{filepath.Join(root, "png")}, images.Options{}))(t)
	largest, sum := 0, 0
	for i, v := range got.Pixels {
		d := max(int(v)-int(want.Pixels[i]), int(want.Pixels[i])-int(v))
		largest, sum = max(largest, d), sum+d
	}
	if mean := float64(sum) / float64(len(want.Pixels)); largest > 5 || mean > 1 || len(got.Pixels) != len(want.Pixels) {
		t.Errorf("values differ by up to %d, %.2f on average", largest, mean)
	}
}

// PNG and WebP images are turned as their Exif says, too.
func TestTurned(t *testing.T) {
	for _, name := range []string{"turned.png", "turned.webp"} {
		im := need(images.Open(t.Context(), []string{plant(t, tree{"a/" + name: need(os.ReadFile("testdata/" + name))(t)})}, images.Options{}))(t)
		wantImages(t, im, 1, 6, 4, 3, []string{"a"}, nil)
		for y := range 6 {
			for x := range 4 { // row 0 is at the right, column 0 at the top
				if got := im.Pixels[3*(4*y+x):][:3]; !slices.Equal(got, []byte{byte(40 * y), byte(60 * (3 - x)), 9}) {
					t.Fatalf("%s: pixel %d, %d is %v", name, x, y, got)
				}
			}
		}
	}
}

// TestImageSize scales images of several shapes to one size.
func TestImageSize(t *testing.T) {
	// Two squares side by side, between borders that are cut off.
	wide := plain(8, 4, 255)
	for y := range 4 {
		for x := 2; x < 6; x++ {
			wide.SetRGBA(x, y, color.RGBA{byte(x/4) * 200, 100, 50, 255})
		}
	}
	array := bytes.Repeat([]byte{9}, 2*4*4*3)
	for _, tc := range []struct {
		name  string
		files tree
		open  string
		n, c  int
		want  map[int]byte // some values
	}{
		{"folder", tree{"a/1.png": pngOf(wide), "a/2.png": pngOf(plain(1, 2, 7)), "a/3.png": pngOf(colors(2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)), "a/4.jpg": jpegOf(plain(9, 7, 60))}, "", 4, 3,
			map[int]byte{1: 100, 2: 50, 4: 100, 12: 7, 23: 7, 24: 1, 25: 2, 35: 12, 36: 60, 47: 60}},
		{"greyscale", tree{"a/1.png": pngOf(grays(4, bytes.Repeat([]byte{5}, 16)...))}, "", 1, 1, map[int]byte{0: 5, 3: 5}},
		{"npy", tree{"x.npy": bytesNPY("(2, 4, 4, 3)", array...)}, "x.npy", 2, 3, map[int]byte{0: 9, 23: 9}},
		{"npy in greyscale", tree{"x.npy": bytesNPY("(1, 1, 1)", 3)}, "x.npy", 1, 1, map[int]byte{0: 3, 3: 3}},
		{"npy of that size", tree{"x.npy": bytesNPY("(1, 2, 2)", 1, 2, 3, 4)}, "x.npy", 1, 1, map[int]byte{0: 1, 1: 2, 2: 3, 3: 4}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			im := need(images.Open(t.Context(), []string{filepath.Join(plant(t, tc.files), tc.open)}, images.Options{Size: 2}))(t)
			wantImages(t, im, tc.n, 2, 2, tc.c, classes(im), nil)
			for i, want := range tc.want {
				if im.Pixels[i] != want {
					t.Errorf("value %d is %d, want %d, in %v", i, im.Pixels[i], want, im.Pixels)
				}
			}
			if tc.name == "folder" && (im.Pixels[0] > 60 || im.Pixels[3] < 140) {
				t.Errorf("the halves have the red %d and %d, want nearly 0 and 200", im.Pixels[0], im.Pixels[3])
			}
		})
	}
}

func TestOpenImagesArrays(t *testing.T) {
	rgb := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	colour := bytesNPY("(2, 1, 2, 3)", rgb...)
	gray := bytesNPY("(2, 1, 2)", 1, 2, 3, 4)
	y := npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n", 7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0)
	for _, tc := range []struct {
		name   string
		file   []byte
		labels string // of a file of labels
		c      int
		want   []string
	}{
		{"npy", colour, "", 3, nil},
		{"npy with gzip", gz(colour), "", 3, nil},
		{"npy in greyscale", gray, "", 1, nil},
		{"npy of one colour", bytesNPY("(2, 1, 2, 1)", 1, 2, 3, 4), "", 1, nil},
		{"IDX", idx(8, []uint32{2, 1, 2}, 1, 2, 3, 4), "", 1, nil},
		{"labels", colour, "a\nb\n", 3, []string{"a", "b"}},
		{"npz", zipOf(zip.Store, entry{"labels.npy", y}, entry{"images.npy", colour}), "", 3, []string{"7", "3"}},
		{"npz, compressed", zipOf(zip.Deflate, entry{"y.npy", y}, entry{"x.npy", gray}), "", 1, []string{"7", "3"}},
		{"npz without names", zipOf(zip.Deflate, entry{"arr_0.npy", gray}, entry{"y.npy", y}), "", 1, []string{"7", "3"}},
		{"npz, other arrays", zipOf(zip.Store, entry{"x.npy", y}, entry{"images.npy", colour}, entry{"z.npy", nil}), "", 3, nil},
		{"npz, other labels", zipOf(zip.Store, entry{"images.npy", colour}, entry{"y.npy", y}), "a\nb\n", 3, []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			files := tree{"pictures.any": tc.file, "l.txt": []byte(tc.labels)}
			root := plant(t, files)
			opt := images.Options{}
			if tc.labels != "" {
				opt.Labels = []string{filepath.Join(root, "l.txt")}
			}
			im := need(images.Open(t.Context(), []string{filepath.Join(root, "pictures.any")}, opt))(t)
			wantImages(t, im, 2, 1, 2, tc.c, tc.want, nil)
			if !bytes.Equal(im.Pixels, rgb[:4*tc.c]) {
				t.Errorf("the pixels are %v", im.Pixels)
			}
		})
	}
}

// oversized replaces the size in the header of a PNG file, and fixes its checksum.
func oversized(file []byte, w, h uint32) []byte {
	file = slices.Clone(file)
	for i := range 4 {
		file[16+i], file[20+i] = byte(w>>(24-8*i)), byte(h>>(24-8*i))
	}
	sum := crc32.ChecksumIEEE(file[12:29])
	for i := range 4 {
		file[29+i] = byte(sum >> (24 - 8*i))
	}
	return file
}

// TestOpenImagesErrors holds everything that can be wrong with images.
func TestOpenImagesErrors(t *testing.T) {
	good := pngOf(plain(2, 2, 1))
	other := pngOf(plain(3, 2, 1))
	damaged := slices.Clone(good)
	damaged[len(damaged)-20] ^= 1
	many := tree{"a/good.png": good}
	for i := range 12 {
		many[fmt.Sprintf("a/%d.jpg", i)] = []byte("no image")
	}
	without := func(name string) tree {
		files := cifarTree()
		delete(files, name)
		return files
	}
	with := func(name string, content []byte) tree {
		files := cifarTree()
		files[name] = content
		return files
	}
	records := cifarRecords([4]byte{1, 2, 3, 4})
	colour := bytesNPY("(1, 1, 1, 3)", 1, 2, 3)
	packed := zipOf(zip.Store, entry{"images.npy", colour})
	flipped := bytes.Replace(packed, []byte{1, 2, 3}, []byte{1, 2, 4}, 1)
	bent := zipOf(zip.Deflate, entry{"images.npy", colour})
	bent[30+len("images.npy")] = 0xff // no kind of block that there is
	twice := append(tarOf("", tree{"data_batch_1.bin": records})[:4096], tarOf("", tree{"data_batch_1.bin": records})...)
	compressed := gz(tarOf("", cifarTree()))

	for _, tc := range []struct {
		name  string
		files tree
		paths []string
		opt   images.Options
		kind  error
		want  string
	}{
		{"no paths", nil, nil, images.Options{}, data.ErrOption, "images: got no path"},
		{"size", nil, []string{"x"}, images.Options{Size: -1}, data.ErrOption, "size of the images: got -1, want 1 to 4096 pixels"},
		{"missing", nil, []string{"gone"}, images.Options{}, fs.ErrNotExist, "gone: no such file or directory"},
		{"missing labels", tree{"x.npy": colour}, []string{"x.npy"}, images.Options{Labels: []string{"gone.txt"}}, fs.ErrNotExist, "gone.txt"},
		{"empty file", tree{"x": nil}, []string{"x"}, images.Options{}, data.ErrEmpty, "x: the file is empty"},
		{"single image", tree{"x.png": good}, []string{"x.png"}, images.Options{}, data.ErrUnsupported, "x.png: got a single image, want a folder"},
		{"text", tree{"x.csv": []byte("1,2\n")}, []string{"x.csv"}, images.Options{}, data.ErrUnsupported, "x.csv: got no images, want PNG, JPEG or WebP files in a folder"},
		{"xz", tree{"x": []byte("\xfd7zXZ...")}, []string{"x"}, images.Options{}, data.ErrUnsupported, "x: the file is compressed with xz, bzip2 or zstd"},

		{"folder: empty", tree{"d/": nil}, []string{"d"}, images.Options{}, data.ErrEmpty, "d: got a folder without images, want PNG, JPEG or WebP files in it, in <class>/, or in train/<class>/ and test/<class>/"},
		{"folder: empty class", tree{"d/a/1.png": good, "d/b/": nil}, []string{"d"}, images.Options{}, data.ErrEmpty, filepath.Join("d", "b") + ": there are no PNG, JPEG or WebP files in the folder"},
		{"folder: empty split", tree{"d/train/a/1.png": good, "d/test/": nil}, []string{"d"}, images.Options{}, data.ErrEmpty, filepath.Join("d", "test") + ": there are no PNG, JPEG or WebP files in the folder"},
		{"folder: third part", tree{"d/train/a/1.png": good, "d/test/a/1.png": good, "d/val/a/1.png": good}, []string{"d"}, images.Options{}, data.ErrUnsupported, "got a folder in the folder of a class, want PNG"},
		{"folder: other kind", tree{"d/a/1.png": good, "d/a/2.HEIC": nil, "d/b/3.jpg": nil, "d/4.gif": nil}, []string{"d"}, images.Options{}, images.ErrBroken, "d: 3 of the 4 images cannot be read: 4.gif (GIF is not read; convert it to PNG or JPEG), " + filepath.Join("a", "2.HEIC") + " (HEIC is not read; convert it to PNG or JPEG), " + filepath.Join("b", "3.jpg") + " (it is empty)"},
		{"folder: only other kinds", tree{"d/1.tif": nil}, []string{"d"}, images.Options{SkipBroken: true}, data.ErrFormat, "d: 1 of the 1 images cannot be read: 1.tif (TIF is not read"},
		{"folder: sizes", tree{"d/a/1.png": good, "d/b/2.png": other, "d/b/3.png": other}, []string{"d"}, images.Options{}, images.ErrSizes, filepath.Join("b", "2.png") + "; 2 of 3 differ), want one size, or a size to scale all to"},
		{"folder: unreadable", many, []string{"."}, images.Options{}, data.ErrFormat, "12 of the 13 images cannot be read: " + filepath.Join("a", "0.jpg") + " (it is neither PNG nor JPEG nor WebP), "},
		{"folder: only ten are listed", many, []string{"."}, images.Options{}, data.ErrFormat, filepath.Join("a", "9.jpg") + " (it is neither PNG nor JPEG nor WebP) and 2 more"},
		{"folder: all unreadable", tree{"a/1.png": nil}, []string{"."}, images.Options{}, data.ErrFormat, "1 of the 1 images cannot be read: " + filepath.Join("a", "1.png") + " (it is empty)"},
		{"folder: damaged", tree{"a/1.png": good, "a/2.png": damaged}, []string{"."}, images.Options{}, data.ErrFormat, "2.png (png: invalid format"},
		{"folder: cut", tree{"a/1.jpg": jpegOf(plain(2, 2, 1))[:300]}, []string{"."}, images.Options{}, data.ErrFormat, "1.jpg ("},
		{"folder: claims", tree{"a/1.png": oversized(good, 8000, 8000)}, []string{"."}, images.Options{}, data.ErrFormat, "1.png (it claims to have 8000×8000 pixels"},
		{"folder: WebP claims", tree{"a/1.webp": []byte("RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f\xff\xff\xff\x0f\x00\x00\x00\x00\x00")}, []string{"."}, images.Options{}, data.ErrFormat, "1.webp (it claims to have 16384×16384 pixels"},
		{"folder: claims more", tree{"a/1.png": append(oversized(good, 10000, 10000), make([]byte, 1<<16)...)}, []string{"."}, images.Options{}, data.ErrFormat, "1.png (it claims to have 10000×10000 pixels"},

		{"two paths: sizes", tree{"x.npy": colour, "y.npy": bytesNPY("(1, 2, 1, 3)", 1, 2, 3, 4, 5, 6)}, []string{"x.npy", "y.npy"}, images.Options{}, images.ErrSizes, "x.npy, or a size to scale all to"},
		{"two paths: shapes", tree{"x.npy": colour, "y.npy": bytesNPY("(1, 1, 1)", 1)}, []string{"x.npy", "y.npy"}, images.Options{}, data.ErrShape, "y.npy: images: got 1×1 in greyscale, want 1×1 in colour"},
		{"two paths: labels", tree{"x.npy": bytesNPY("(1, 2, 2, 3)", make([]byte, 12)...), "d/a/1.png": good}, []string{"d", "x.npy"}, images.Options{}, data.ErrLabels, "x.npy: labels: got none, want some as in "},
		{"labels: count", tree{"x.npy": colour, "l": []byte("a\nb\nb\n")}, []string{"x.npy"}, images.Options{Labels: []string{"l"}}, data.ErrLabels, "labels: got 3 ("},

		{"npy: type", tree{"x.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", 0, 0, 0, 0)}, []string{"x.npy"}, images.Options{}, data.ErrUnsupported, "x.npy: got no images, want"},
		{"npy: points", tree{"x.npy": bytesNPY("(1, 4)", 1, 2, 3, 4)}, []string{"x.npy"}, images.Options{}, data.ErrShape, "x.npy: shape: got [1 4], want N×H×W×3"},
		{"npy: colours first", tree{"x.npy": bytesNPY("(1, 3, 2, 2)", make([]byte, 12)...)}, []string{"x.npy"}, images.Options{}, data.ErrShape, "with the colours before the rows, want N×H×W×3 (x.transpose(0, 2, 3, 1))"},
		{"npy: transparency", tree{"x.npy": bytesNPY("(1, 2, 2, 4)", make([]byte, 16)...)}, []string{"x.npy"}, images.Options{}, data.ErrShape, "values per pixel: got 4 (shape [1 2 2 4]), want 3 (red, green, blue) or 1 (greyscale); x[..., :3]"},
		{"npy: none", tree{"x.npy": bytesNPY("(0, 2, 2)")}, []string{"x.npy"}, images.Options{}, data.ErrEmpty, "shape: got 0×2×2, want at least one row and one column"},
		{"npy: truncated", tree{"x.npy": colour[:len(colour)-1]}, []string{"x.npy"}, images.Options{}, data.ErrFormat, "x.npy: values: got 2, want 3 (shape 1×1×1×3); the file is truncated"},
		{"npy: too long", tree{"x.npy": append(slices.Clone(colour), 1)}, []string{"x.npy"}, images.Options{}, data.ErrFormat, "x.npy: got more bytes than the header announces, want the end of the file"},

		{"npz: no zip", tree{"x.npz": []byte("PK\x03\x04....")}, []string{"x.npz"}, images.Options{}, data.ErrFormat, "x.npz: the npz archive cannot be read"},
		{"npz: other names", tree{"x.npz": zipOf(zip.Store, entry{"x_train.npy", colour}, entry{"x_test.npy", colour})}, []string{"x.npz"}, images.Options{}, data.ErrFormat, `x.npz: arrays: got "x_train", "x_test", want one of images, x, X (np.savez(file, x=points, labels=y))`},
		{"npz: labels", tree{"x.npz": zipOf(zip.Store, entry{"x.npy", colour}, entry{"y.npy", bytesNPY("(2,)", 1, 2)})}, []string{"x.npz"}, images.Options{}, data.ErrLabels, "x.npz: the array y.npy: labels: got 2, want 1, one for each point"},
		{"npz: type", tree{"x.npz": zipOf(zip.Store, entry{"x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", 0, 0, 0, 0)})}, []string{"x.npz"}, images.Options{}, data.ErrUnsupported, "x.npz: got no images, want"},
		{"npz: truncated array", tree{"x.npz": zipOf(zip.Deflate, entry{"x.npy", colour[:len(colour)-1]})}, []string{"x.npz"}, images.Options{}, data.ErrFormat, "x.npz: the array x.npy: values: got 2, want 3 (shape 1×1×1×3); the file is truncated"},
		{"npz: damaged", tree{"x.npz": flipped}, []string{"x.npz"}, images.Options{}, data.ErrFormat, "x.npz: the array images.npy: the compressed data are damaged (zip: checksum error)"},
		{"npz: damaged compression", tree{"x.npz": bent}, []string{"x.npz"}, images.Options{}, data.ErrFormat, "x.npz: the array images.npy: the compressed data are damaged (flate: corrupt input"},

		{"CIFAR: missing batch", without("data_batch_3.bin"), []string{"."}, images.Options{}, data.ErrFormat, "CIFAR-10: got no data_batch_3.bin, want all files, or the paths of some"},
		{"CIFAR: length", with("data_batch_2.bin", records[:3000]), []string{"."}, images.Options{}, data.ErrFormat, "data_batch_2.bin: bytes: got 3000, want a multiple of the 3073 of an image in CIFAR-10's binary version"},
		{"CIFAR: length within gzip", tree{"a.bin.gz": gz(append(slices.Clone(records), 1))}, []string{"a.bin.gz"}, images.Options{}, data.ErrFormat, "a.bin.gz: bytes: got 3074, want a multiple of the 3073"},
		{"CIFAR: gzip cut", tree{"a.bin.gz": gz(records)[:30]}, []string{"a.bin.gz"}, images.Options{}, data.ErrFormat, "a.bin.gz: the compressed data end early"},
		{"CIFAR: class", tree{"a.bin": append(slices.Clone(records), cifarRecords([4]byte{10})...)}, []string{"a.bin"}, images.Options{}, data.ErrFormat, "a.bin: class of image 2: got 10, want 0 to 9"},
		{"CIFAR: empty", with("test_batch.bin", nil), []string{"."}, images.Options{}, data.ErrEmpty, "test_batch.bin: got no images"},
		{"CIFAR: names", with("batches.meta.txt", []byte("a\nb\n")), []string{"."}, images.Options{}, data.ErrFormat, "batches.meta.txt: names of classes: got 2 different ones, want 10"},
		{"CIFAR: names with a batch", with("batches.meta.txt", []byte("a\nb\n")), []string{"test_batch.bin"}, images.Options{}, data.ErrFormat, "batches.meta.txt: names of classes: got 2"},
		{"CIFAR: same names", with("batches.meta.txt", []byte(strings.Repeat("a\n", 10))), []string{"."}, images.Options{}, data.ErrFormat, "names of classes: got 1 different ones, want 10"},
		{"tar: other files", tree{"a.tar": tarOf("", tree{"data_batch_1": records})}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "a.tar: got an archive without data_batch_1.bin, want cifar-10-binary.tar.gz"},
		{"tar: missing batches", tree{"a.tar": tarOf("x/", tree{"data_batch_1.bin": records})}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "data_batch_2.bin, data_batch_3.bin, data_batch_4.bin, data_batch_5.bin, test_batch.bin, want all files"},
		{"tar: twice", tree{"a.tar": twice}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "a.tar: got an archive with data_batch_1.bin twice, want it once"},
		{"tar: length", tree{"a.tar": tarOf("", with("test_batch.bin", records[:5]))}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "a.tar: test_batch.bin in it: bytes: got 5"},
		{"tar: cut", tree{"a.tar": tarOf("", cifarTree())[:4000]}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "a.tar: test_batch.bin in it: the file is truncated"},
		{"tar.gz: cut", tree{"a.tar.gz": compressed[:len(compressed)/2]}, []string{"a.tar.gz"}, images.Options{}, data.ErrFormat, "the archive is damaged or ends early"},
		{"tar.gz: end cut", tree{"a.tar.gz": compressed[:len(compressed)-4]}, []string{"a.tar.gz"}, images.Options{}, data.ErrFormat, "a.tar.gz: the compressed data end early"},
		{"tar: none", tree{"a.tar": []byte("none")}, []string{"a.tar"}, images.Options{}, data.ErrFormat, "a.tar: the file is no tar archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root := plant(t, tc.files)
			for i := range tc.paths {
				tc.paths[i] = filepath.Join(root, tc.paths[i])
			}
			for i := range tc.opt.Labels {
				tc.opt.Labels[i] = filepath.Join(root, tc.opt.Labels[i])
			}
			im, err := images.Open(t.Context(), tc.paths, tc.opt)
			wantError(t, err, tc.kind, tc.want)
			if im != nil {
				t.Error("got images and an error")
			}
		})
	}
}

// TestHostileImages opens files that announce far more than they hold.
func TestHostileImages(t *testing.T) {
	claims := bytesNPY("(1073741824, 1024, 1024, 3)", make([]byte, 64)...)
	var sparse bytes.Buffer
	w := tar.NewWriter(&sparse)
	w.WriteHeader(&tar.Header{Name: "data_batch_1.bin", Mode: 0o644, Size: 1 << 40})
	w.Write(make([]byte, 100))
	for _, tc := range []struct {
		name string
		file tree
		open string
	}{
		{"npy", tree{"x.npy": claims}, "x.npy"},
		{"npy with gzip", tree{"x.npy.gz": gz(claims)}, "x.npy.gz"},
		{"npz", tree{"x.npz": zipOf(zip.Store, entry{"x.npy", claims})}, "x.npz"},
		{"npz, compressed", tree{"x.npz": zipOf(zip.Deflate, entry{"x.npy", claims})}, "x.npz"},
		{"tar", tree{"x.tar": sparse.Bytes()}, "x.tar"},
		{"png", tree{"a/1.png": oversized(pngOf(plain(2, 2, 1)), 1<<31-1, 1<<31-1)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(plant(t, tc.file), tc.open)
			var err error
			used := allocated(func() { _, err = images.Open(t.Context(), []string{path}, images.Options{}) })
			if !errors.Is(err, data.ErrFormat) {
				t.Errorf("the error is %v, want one of kind ErrFormat", err)
			}
			if used > 4<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
}

// fuzzImages opens a file and checks what holds of every result.
func fuzzImages(t *testing.T, name string, file []byte) {
	im, err := images.Open(t.Context(), []string{put(t, t.TempDir(), name, file)}, images.Options{})
	if err != nil {
		for _, kind := range []error{data.ErrFormat, data.ErrUnsupported, data.ErrShape, data.ErrLabels, data.ErrNotFinite, data.ErrEmpty, data.ErrOption} {
			if errors.Is(err, kind) {
				return
			}
		}
		t.Fatalf("the error %q is of no kind", err)
	}
	if im.N < 1 || len(im.Pixels) != im.N*im.H*im.W*im.C || im.C != 1 && im.C != 3 {
		t.Fatalf("the images are %d×%d×%d×%d with %d bytes", im.N, im.H, im.W, im.C, len(im.Pixels))
	}
	if im.Labels != nil && len(im.Labels.Class) != im.N || im.Train != nil && len(im.Train) != im.N {
		t.Fatalf("there are %d images, labels %v, split %v", im.N, im.Labels, im.Train)
	}
}

func FuzzCIFAR(f *testing.F) {
	f.Add(cifarRecords([4]byte{1, 2, 3, 4}))
	f.Add(cifarRecords([4]byte{1, 2, 3, 4}, [4]byte{10, 0, 0, 0}))
	f.Add(gz(cifarRecords([4]byte{9}))[:20])
	f.Add(tarOf("d/", cifarTree()))
	f.Add(gz(tarOf("", cifarTree())))
	f.Fuzz(func(t *testing.T, file []byte) { fuzzImages(t, "data_batch_1.bin", file) })
}

func FuzzImagesNPY(f *testing.F) {
	colour := bytesNPY("(2, 1, 1, 3)", 1, 2, 3, 4, 5, 6)
	f.Add(colour)
	f.Add(gz(colour))
	f.Add(bytesNPY("(1, 1, 1)", 1, 2))
	f.Add(bytesNPY("(9223372036854775807, 3, 1, 1)", 1, 2))
	f.Add(zipOf(zip.Store, entry{"x.npy", colour}, entry{"y.npy", bytesNPY("(2,)", 1, 2)}))
	f.Add(zipOf(zip.Deflate, entry{"images.npy", colour}, entry{"labels.npy", bytesNPY("(3, 1)", 1, 2, 3)}))
	f.Fuzz(func(t *testing.T, file []byte) { fuzzImages(t, "x.npy", file) })
}

// FuzzImageFolder opens a folder of two files, one of them sound.
func FuzzImageFolder(f *testing.F) {
	f.Add(pngOf(plain(2, 2, 1)), 0)
	f.Add(pngOf(grays(2, 1, 2, 3, 4)), 1)
	f.Add(jpegOf(plain(9, 3, 40)), 3)
	f.Add(oversized(pngOf(plain(2, 2, 1)), 1<<16, 1<<16), 0)
	sound := pngOf(plain(2, 2, 1))
	f.Fuzz(func(t *testing.T, file []byte, size int) {
		folder := plant(t, tree{"a/1.png": file, "b/1.png": sound})
		im, err := images.Open(t.Context(), []string{folder}, images.Options{Size: size % 8})
		if err == nil && (im.N != 2 || !slices.Equal(classes(im), []string{"a", "b"}) || len(im.Pixels) != 2*im.H*im.W*im.C) {
			t.Fatalf("the images are %d×%d×%d×%d with %d bytes and the labels %q", im.N, im.H, im.W, im.C, len(im.Pixels), classes(im))
		}
		if err != nil && !errors.Is(err, data.ErrFormat) && !errors.Is(err, data.ErrShape) && !errors.Is(err, data.ErrOption) {
			t.Fatalf("the error %q is of no kind", err)
		}
	})
}

// A folder of points, such as MNIST's, is one of images with labels and split.
func TestImagesOfPointFolder(t *testing.T) {
	set := func(n int) []byte {
		body := make([]byte, 6*n)
		for i := range body {
			body[i] = byte(10*n + i)
		}
		return idx(8, []uint32{uint32(n), 2, 3}, body...)
	}
	folder := tree{
		"train-images-idx3-ubyte": set(3), "train-labels-idx1-ubyte": idx(8, []uint32{3}, 7, 8, 7),
		"t10k-images-idx3-ubyte": set(2), "t10k-labels-idx1-ubyte": idx(8, []uint32{2}, 9, 7),
	}
	im := need(images.Open(t.Context(), []string{plant(t, folder)}, images.Options{}))(t)
	if im.N != 5 || im.H != 2 || im.W != 3 || im.C != 1 || im.Image(0)[0] != 30 || im.Image(3)[0] != 20 || im.Image(4)[5] != 31 {
		t.Errorf("%+v", im)
	}
	if !slices.Equal(im.Train, []bool{true, true, true, false, false}) || !slices.Equal(im.Labels.Class, []int32{0, 1, 0, 2, 0}) || im.Labels.Names[2] != "9" {
		t.Errorf("split %v, labels %+v", im.Train, im.Labels)
	}

	folder["t10k-labels-idx1-ubyte"] = idx(8, []uint32{1}, 9)
	if _, err := images.Open(t.Context(), []string{plant(t, folder)}, images.Options{}); !errors.Is(err, data.ErrLabels) {
		t.Errorf("a label is missing: %v", err)
	}
	folder["t10k-images-idx3-ubyte"] = idx(8, []uint32{1, 3, 2}, 1, 2, 3, 4, 5, 6)
	if _, err := images.Open(t.Context(), []string{plant(t, folder)}, images.Options{}); !errors.Is(err, data.ErrShape) {
		t.Errorf("other sizes: %v", err)
	}
}

func TestBuiltinImages(t *testing.T) {
	im := need(images.Open(t.Context(), []string{"builtin:mnist10k"}, images.Options{}))(t)
	ds := need(file.Builtin("mnist10k"))(t)
	if im.N != 10000 || im.H != 28 || im.W != 28 || im.C != 1 || len(im.Labels.Class) != 10000 {
		t.Fatalf("%d images of %d×%d×%d, %d labels", im.N, im.H, im.W, im.C, len(im.Labels.Class))
	}
	for i, v := range ds.Points.X {
		if float32(im.Pixels[i]) != v {
			t.Fatalf("value %d: got %d, want %v as in the points", i, im.Pixels[i], v)
		}
	}
	if _, err := images.Open(t.Context(), []string{"builtin:x"}, images.Options{}); !errors.Is(err, data.ErrOption) {
		t.Errorf("no such data: %v", err)
	}
}
