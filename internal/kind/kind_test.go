package kind

import (
	"errors"
	"testing"
)

// Catch returns the error of each function that fails; without an error they return.
func TestCatch(t *testing.T) {
	cause := errors.New("cause")
	for want, step := range map[string]func(){
		"": func() {
			Check(nil)
			Checkf(nil, "unused")
			Need(true, errWord, "unused")
			Got(1, nil)
		},
		"three of 4":      func() { Fail(errWord, "three of %d", 4) },
		"four of 5":       func() { Need(false, errWord, "four of %d", 5) },
		"cause":           func() { Check(cause) },
		"file.csv: cause": func() { Checkf(cause, "%s: %w", "file.csv", cause) },
		"cause\ncause":    func() { Got(1, errors.Join(cause, cause)) },
	} {
		err := func() (err error) {
			defer Catch(&err)
			step()
			return nil
		}()
		if want == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != want || !errors.Is(err, cause) && !errors.Is(err, errWord) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	defer func() {
		if r := recover(); r != "another panic" {
			t.Errorf("recovered %v", r)
		}
	}()
	func() (err error) {
		defer Catch(&err)
		panic("another panic")
	}()
}
