package file

import (
	"cmp"
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne/data"
	"cne/internal/kind"
)

// A collection is a set of images published as four files with fixed names: images and
// labels of the training part, then of the test part. The files may be compressed with
// gzip.
type collection struct {
	name  string
	files [2][2]string
}

// collections are the collections that a folder may hold. Fashion-MNIST and others have
// the same file names as MNIST.
var collections = []collection{
	{"MNIST", [2][2]string{{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}, {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}}},
	{"Kuzushiji-49", [2][2]string{{"k49-train-imgs.npz", "k49-train-labels.npz"}, {"k49-test-imgs.npz", "k49-test-labels.npz"}}},
	{"Kuzushiji-MNIST", [2][2]string{{"kmnist-train-imgs.npz", "kmnist-train-labels.npz"}, {"kmnist-test-imgs.npz", "kmnist-test-labels.npz"}}},
}

// in returns the files of the collection in a folder, and the name of the first missing
// file.
func (c *collection) in(folder string) (found sources, missing string) {
	for _, pair := range c.files {
		from := source{path: Find(folder, pair[0]), labels: Find(folder, pair[1])}
		for i, path := range []string{from.path, from.labels} {
			if path == "" && missing == "" {
				missing = pair[i]
			}
		}
		if from.path != "" || from.labels != "" {
			found = append(found, from)
		}
	}
	return found, missing
}

// find checks the arguments of Read and returns the files. It replaces folders by the
// files of the collections in them, and sets o.Name.
func find(paths []string, o *Options) (list sources, err error) {
	defer kind.Catch(&err)
	kind.Need(len(paths) > 0, data.ErrOption, "data: got no path, want files or folders")
	kind.Check(o.check())
	o.Name = cmp.Or(o.Name, NameOf(paths[0]))
	for _, path := range paths {
		info, err := Stat(path)
		kind.Check(kind.Named("the data cannot be read", err))
		switch {
		case info.IsDir():
			list = append(list, kind.Got(findInFolder(path))...)
		case path == builtinPoints:
			list = append(list, source{path: path, labels: builtinLabels})
		default:
			list = append(list, source{path: path})
		}
	}
	return list, nil
}

// IsCollection reports whether a folder holds the files of a published data set that Open
// reads.
func IsCollection(folder string) bool {
	_, err := findInFolder(folder)
	return err == nil
}

// findInFolder returns the files of the one collection that a folder holds.
func findInFolder(path string) (list sources, err error) {
	defer kind.Catch(&err)
	whole := ""
	var partial error
	for _, c := range collections {
		found, missing := c.in(path)
		switch {
		case missing == "":
			kind.Need(whole == "", data.ErrUnsupported,
				"%s: got a folder with both %s and %s, want one of them, or the paths of the files", path, whole, c.name)
			whole, list = c.name, found
		case len(found) > 0 && partial == nil:
			partial = errorf(data.ErrUnsupported, "%s: got a folder of %s without %s, want all four files, or the paths of the files", path,
				c.name, missing)
		}
	}
	if whole != "" {
		return list, nil
	}
	kind.Check(partial)
	kind.Need(FindEnding(path, ".mtx") == nil, data.ErrUnsupported, "%s: got counts of single cells, want points", path)
	kind.Need(!holdsImages(path), data.ErrUnsupported,
		"%s: got a folder of images, want features as .npy, or \"cne simclr pretrain\" for images", path)
	return nil, errorf(data.ErrUnsupported, "%s: got a folder of other files, want the four of MNIST, Kuzushiji-49 or Kuzushiji-MNIST under their published names, such as train-images-idx3-ubyte.gz, or counts of single cells (.mtx)", path)
}

// holdsImages reports whether there is an image among the first files below a folder.
func holdsImages(folder string) (found bool) {
	left := 1000
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		found = slices.Contains([]string{".png", ".jpg", ".jpeg", ".webp"}, strings.ToLower(filepath.Ext(path)))
		if left--; found || left == 0 {
			return fs.SkipAll
		}
		return err
	})
	return found
}

// BuiltinPrefix begins the path of data that are embedded in the program. The only such
// path is "builtin:mnist10k": MNIST's 10 000 test images of 28×28 pixels (values 0 to 255)
// with their digits as labels.
const BuiltinPrefix = "builtin:"

const (
	builtinName   = "mnist10k"
	builtinPoints = BuiltinPrefix + builtinName
	builtinLabels = builtinPoints + " labels"
)

//go:embed builtin/*.gz
var builtin embed.FS

// builtinFiles are the embedded files, by their paths for OpenInput.
var builtinFiles = map[string]string{
	builtinPoints: "builtin/t10k-images-idx3-ubyte.gz",
	builtinLabels: "builtin/t10k-labels-idx1-ubyte.gz",
}

// Stat is os.Stat, and describes embedded data as a file. For an unknown name of these the
// error wraps data.ErrOption.
func Stat(path string) (fs.FileInfo, error) {
	name, embedded := strings.CutPrefix(path, BuiltinPrefix)
	switch {
	case !embedded:
		return os.Stat(path)
	case name != builtinName:
		return nil, errorf(data.ErrOption, "built-in data set: got %q, want %q", name, builtinName)
	}
	return fs.Stat(builtin, builtinFiles[path])
}

// Builtin reads data embedded in the program, such as "mnist10k".
func Builtin(name string) (*data.Dataset, error) {
	return Read(context.Background(), []string{BuiltinPrefix + name}, Options{})
}
