//go:build cu

package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cne/internal/text"
)

// whySize is the size of the buffer for C's messages about a library.
const whySize = 512

// errNotFound: there is no such library.
var errNotFound = errors.New("not found")

// errOutOfMemory: the GPU has not even the memory that every program needs.
var errOutOfMemory = errors.New("its memory is full; see with nvidia-smi what uses it")

// notOpened turns library_open's message about a library into an error.
func notOpened(name, why string) error {
	// The dynamic linker's message begins with the file at fault: this one, or one that
	// it depends on.
	if why == name+": cannot open shared object file: No such file or directory" {
		return errNotFound
	}
	return errors.New(strings.TrimPrefix(why, name+": "))
}

// notStarted is the error of a library that returned a status instead of a handle.
func notStarted(status int, function string) error {
	return fmt.Errorf("status %d of %s", status, function)
}

// inPrefix are the folders of NVIDIA's libraries in the prefix of a Python: conda's, those
// of pip, and those of Debian's pip.
var inPrefix = []string{
	"lib", "lib/python3*/site-packages/nvidia/*/lib", "lib/python3*/dist-packages/nvidia/*/lib",
	"local/lib/python3*/dist-packages/nvidia/*/lib",
}

// pythons returns the prefixes of the current virtual environments, of the python3 on the
// PATH and of the Pythons that it links to, and of the user's packages.
func pythons() (prefixes []string) {
	add := func(prefix string) {
		if filepath.IsAbs(prefix) && !slices.Contains(prefixes, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	add(os.Getenv("VIRTUAL_ENV"))
	add(os.Getenv("CONDA_PREFIX"))
	for python, err := exec.LookPath("python3"); err == nil; {
		add(filepath.Dir(filepath.Dir(python)))
		var link string
		if link, err = os.Readlink(python); !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(python), link)
		}
		python = link
	}
	home, _ := os.UserHomeDir() // "" if there is none
	add(cmp.Or(os.Getenv("PYTHONUSERBASE"), filepath.Join(home, ".local")))
	return prefixes
}

// candidates returns the names of libraries, which the dynamic linker looks for, each
// followed by the files of that name in the prefixes. (A library finds its parts in its own
// folder.)
func candidates(names, prefixes []string) (all []string) {
	for _, name := range names {
		all = append(all, name)
		for _, prefix := range prefixes {
			for _, folder := range inPrefix {
				files, _ := fs.Glob(os.DirFS(prefix), folder+"/"+name) // a valid pattern
				for _, file := range files {
					all = append(all, filepath.Join(prefix, file))
				}
			}
		}
	}
	return all
}

// lookedFor says which libraries were looked for, and where.
func lookedFor(names, prefixes []string) string {
	if len(prefixes) == 0 {
		return text.Enumerate(names)
	}
	return fmt.Sprintf("%s, neither where the dynamic linker looks nor in Python's packages in %s", text.Enumerate(names),
		text.Enumerate(prefixes))
}

// attempts are the libraries that were tried, in order, with what was wrong with each.
type attempts []attempt

type attempt struct {
	name string
	err  error
}

// start calls f with one name after the other until it succeeds, and returns that name
// (empty if there is none) and the failed attempts. An error that wraps one of ends is
// returned at once: another library would do no better.
func start(names []string, f func(name string) error, ends ...error) (started string, failed attempts, err error) {
	for _, name := range names {
		err := f(name)
		if err == nil {
			return name, failed, nil
		}
		for _, end := range ends {
			if errors.Is(err, end) {
				return "", failed, err
			}
		}
		failed = append(failed, attempt{name, err})
	}
	return "", failed, nil
}

// found returns the attempts with libraries that exist.
func (a attempts) found() attempts {
	return slices.DeleteFunc(slices.Clone(a), func(t attempt) bool { return errors.Is(t.err, errNotFound) })
}

// String says what was wrong with each.
func (a attempts) String() string {
	var all []string
	for _, t := range a {
		all = append(all, fmt.Sprintf("%s: %v", t.name, t.err))
	}
	return strings.Join(all, "; ")
}
