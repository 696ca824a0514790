//go:build cu

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// whySize is how long C's sentence about a library may be, its final zero included.
const whySize = 512

// errNotFound is the error of a library that is not there.
var errNotFound = errors.New("not found")

// errFull is the error of a GPU that has not even memory for what every program needs.
var errFull = errors.New("its memory is full; see with nvidia-smi what uses it")

// notOpened is the error of a library of which library_open has said why.
func notOpened(name, why string) error {
	// The dynamic linker begins with the file that it speaks of: this one, or one that
	// this one needs.
	if why == name+": cannot open shared object file: No such file or directory" {
		return errNotFound
	}
	return errors.New(strings.TrimPrefix(why, name+": "))
}

// notStarted is the error of a library whose function for a handle has returned a
// status.
func notStarted(status int, function string) error {
	return fmt.Errorf("status %d of %s", status, function)
}

// attempts are the libraries that were tried, in this order, and what was wrong with
// them.
type attempts []attempt

type attempt struct {
	name string
	err  error
}

// start calls f with one name after the other until it succeeds, and returns that name
// and what was wrong with those before it. If f succeeds with none, the name is empty.
// An error that wraps one of those that end the search is returned at once: then
// another library would do no better.
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

// found returns those that are there.
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

// orNames lists names as those of which any would do.
func orNames(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
