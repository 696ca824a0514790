package file_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

// byteArray makes an npy file of bytes.
func byteArray(shape string, b ...byte) []byte {
	return npy("{'descr': '|u1', 'fortran_order': False, 'shape': "+shape+", }", b...)
}

// kuzushiji makes a folder with the four files of Kuzushiji-49 or
// Kuzushiji-MNIST, with two training images and one test image of 1×2 pixels,
// as np.savez_compressed writes them.
func kuzushiji(t *testing.T, name string) string {
	folder := t.TempDir()
	fillKuzushiji(t, folder, name)
	return folder
}

func fillKuzushiji(t *testing.T, folder, name string) {
	for content, array := range map[string][]byte{
		"train-imgs":   byteArray("(2, 1, 2)", 1, 2, 3, 4),
		"train-labels": byteArray("(2,)", 48, 0),
		"test-imgs":    byteArray("(1, 1, 2)", 5, 6),
		"test-labels":  byteArray("(1,)", 48),
	} {
		put(t, folder, fmt.Sprintf("%s-%s.npz", name, content), zipOf(zip.Deflate, entry{"arr_0.npy", array}))
	}
}

func TestOpenKuzushiji(t *testing.T) {
	for _, name := range []string{"k49", "kmnist"} {
		folder := kuzushiji(t, name)
		ds := need(file.Read(t.Context(), []string{folder}, file.Options{}))(t)
		sameMatrix(t, ds.Points, matrix(3, 2, 1, 2, 3, 4, 5, 6))
		if !slices.Equal(ds.Labels.Value, []float64{48, 0, 48}) || !ds.Bytes {
			t.Errorf("%s: the labels are %+v, Bytes is %v", name, ds.Labels, ds.Bytes)
		}
		sameAsOpen(t, []string{folder}, file.Options{})

		// One of the files with its labels.
		of := func(kind string) string { return filepath.Join(folder, name+"-"+kind+".npz") }
		ds = need(file.Read(t.Context(), []string{of("train-imgs")}, file.Options{Labels: []string{of("train-labels")}}))(t)
		sameMatrix(t, ds.Points, matrix(2, 2, 1, 2, 3, 4))
		if !slices.Equal(ds.Labels.Value, []float64{48, 0}) || ds.Name != name+"-train-imgs" {
			t.Errorf("%s: the labels are %+v, the name is %q", name, ds.Labels, ds.Name)
		}

		must(t, os.Remove(of("test-labels")))
		wantError(t, errorOf(file.Read(t.Context(), []string{folder}, file.Options{})), data.ErrUnsupported, "without "+name+"-test-labels.npz")

		// Beside a part of another collection, the whole one is meant; of two
		// whole ones, no one knows which.
		other := map[string]string{"k49": "kmnist", "kmnist": "k49"}[name]
		fillKuzushiji(t, folder, other)
		if ds, err := file.Read(t.Context(), []string{folder}, file.Options{}); err != nil || ds.Points.N != 3 {
			t.Errorf("%s in part and %s: %v", name, other, err)
		}
		fillKuzushiji(t, folder, name)
		wantError(t, errorOf(file.Read(t.Context(), []string{folder}, file.Options{})), data.ErrUnsupported, "got a folder with both Kuzushiji-49 and Kuzushiji-MNIST")
	}
}

// Arrays are found by their names, and labels come with the points.
func TestOpenNPZ(t *testing.T) {
	x, other := byteArray("(2, 1)", 1, 2), byteArray("(2, 3)", 1, 2, 3, 4, 5, 6)
	floats := npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }", body(binary.LittleEndian, []float32{1, 2})...)
	y, z := byteArray("(2,)", 7, 8), byteArray("(2,)", 9, 9)
	for name, tc := range map[string]struct {
		content []byte
		opt     []byte // a file of labels, nil for none
		labels  []float64
		bytes   bool
	}{
		"single":              {zipOf(zip.Store, entry{"whatever.npy", x}), nil, nil, true},
		"floats":              {zipOf(zip.Deflate, entry{"x.npy", floats}), nil, nil, false},
		"without a name":      {zipOf(zip.Deflate, entry{"arr_0.npy", x}, entry{"arr_1.npy", other}), nil, nil, true},
		"x and y":             {zipOf(zip.Deflate, entry{"y.npy", y}, entry{"x.npy", x}), nil, []float64{7, 8}, true},
		"X and labels":        {zipOf(zip.Store, entry{"X.npy", x}, entry{"labels.npy", y}, entry{"y.npy", z}), nil, []float64{7, 8}, true},
		"images before x":     {zipOf(zip.Store, entry{"x.npy", other}, entry{"images.npy", x}), nil, nil, true},
		"x before no name":    {zipOf(zip.Store, entry{"arr_0.npy", other}, entry{"x.npy", x}), nil, nil, true},
		"labels of one's own": {zipOf(zip.Store, entry{"x.npy", x}, entry{"y.npy", y}), z, []float64{9, 9}, true},
		"labels as npz":       {zipOf(zip.Store, entry{"x.npy", x}), zipOf(zip.Store, entry{"x.npy", x}, entry{"y.npy", z}), []float64{9, 9}, true},
		"one array of labels": {zipOf(zip.Store, entry{"x.npy", x}), zipOf(zip.Store, entry{"classes.npy", z}), []float64{9, 9}, true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			paths := []string{put(t, folder, "a.npz", tc.content)}
			var opt file.Options
			if tc.opt != nil {
				opt.Labels = []string{put(t, folder, "labels", tc.opt)}
			} else {
				sameAsOpen(t, paths, opt)
				sameAsOpen(t, append(paths, paths...), opt)
			}
			ds := need(file.Read(t.Context(), paths, opt))(t)
			sameMatrix(t, ds.Points, matrix(2, 1, 1, 2))
			var got []float64
			if ds.Labels != nil {
				got = ds.Labels.Value
			}
			if !slices.Equal(got, tc.labels) || ds.Bytes != tc.bytes || ds.Name != "a" {
				t.Errorf("the labels are %v, Bytes is %v, the name is %q", got, ds.Bytes, ds.Name)
			}
		})
	}
}

// Archives of other programs are recognized.
func TestOpenOtherArchives(t *testing.T) {
	t.Chdir(t.TempDir())
	for member, want := range map[string]string{
		"xl/workbook.xml": "an Excel file; convert it with python3 -c \"import gzip, json, pandas; pandas.read_excel('it's.zip').to_csv('it's.csv', index=False)\"",
		"content.xml":     "an OpenDocument file; with the package odfpy, convert it with",
		"net/data.pkl":    "PyTorch's; in Python, numpy.save('it's.npy', torch.load('it's.zip').numpy())",
	} {
		put(t, ".", "it's.zip", zipOf(0, entry{"a.xml", nil}, entry{member, nil}))
		_, err := file.Read(t.Context(), []string{"it's.zip"}, file.Options{})
		wantError(t, err, data.ErrUnsupported, "it's.zip: the file is "+strings.NewReplacer("'it's", `'it\x27s`).Replace(want))
	}
}

// A header that lies about an array in an archive is found out before room is
// made for it.
func TestOpenNPZAllocates(t *testing.T) {
	claims := byteArray("(1000000, 1000)", 1, 2, 3)
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := put(t, t.TempDir(), "a.npz", zipOf(method, entry{"x.npy", claims}))
		if n := allocated(func() {
			wantError(t, errorOf(file.Read(t.Context(), []string{path}, file.Options{})), data.ErrFormat, "a.npz: the array x.npy: values: got 3, want 1000000000 (shape 1000000×1000); the file is truncated")
		}); n > 1<<24 {
			t.Errorf("%d bytes were allocated", n)
		}
	}
}

// FuzzOpenNPZ reads any bytes as an archive.
func FuzzOpenNPZ(f *testing.F) {
	f.Add(zipOf(zip.Deflate, entry{"arr_0.npy", byteArray("(2, 1)", 1, 2)}))
	f.Add(zipOf(zip.Store, entry{"x.npy", byteArray("(2, 1)", 1, 2)}, entry{"y.npy", byteArray("(2,)", 7, 8)}))
	f.Fuzz(func(t *testing.T, content []byte) {
		if !bytes.HasPrefix(content, []byte("PK\x03\x04")) {
			return
		}
		ds, err := file.Read(t.Context(), []string{put(t, t.TempDir(), "a.npz", content)}, file.Options{})
		checkRead(t, ds, err)
	})
}

// FuzzNPZArrays reads arrays of any bytes out of a sound archive: the points are
// those that the array gives by itself.
func FuzzNPZArrays(f *testing.F) {
	f.Add(byteArray("(2, 1)", 1, 2), byteArray("(2,)", 7, 8), true, true)
	f.Add(byteArray("(2, 1, 2)", 1, 2, 3, 4), []byte{}, false, false)
	f.Add(byteArray("(1000000, 1000)", 1), byteArray("(1000000,)", 1), true, false)
	f.Add(gz(byteArray("(1, 1)", 1)), byteArray("(1, 1)", 1), true, true)
	f.Fuzz(func(t *testing.T, points, labels []byte, labeled, stored bool) {
		arrays := []entry{{"x.npy", points}}
		if labeled {
			arrays = append(arrays, entry{"y.npy", labels})
		}
		method := zip.Deflate
		if stored {
			method = zip.Store
		}
		ds, err := file.Read(t.Context(), []string{put(t, t.TempDir(), "a.npz", zipOf(method, arrays...))}, file.Options{})
		checkRead(t, ds, err)
		alone, errAlone := decode(bytes.NewReader(points))
		switch {
		case err == nil && errAlone != nil:
			t.Fatalf("the archive is read, but the array by itself gives %v", errAlone)
		case err != nil && errAlone == nil && !labeled:
			t.Fatalf("the array is read by itself, but in the archive it gives %v", err)
		case err == nil:
			sameMatrix(t, ds.Points, alone.Points)
			if (ds.Labels != nil) != labeled {
				t.Fatalf("labels %+v of an archive that has some: %v", ds.Labels, labeled)
			}
		}
	})
}
