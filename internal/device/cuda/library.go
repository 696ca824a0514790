//go:build cu

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
