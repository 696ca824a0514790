// Package kind makes errors that errors.Is recognises by their kind, without the
// kind in their text, and gives the constants of enumerations their words (Names).
package kind

import "fmt"

// An ofKind is an error with a kind that is not in its text.
type ofKind struct{ kind, sentence error }

func (e *ofKind) Error() string   { return e.sentence.Error() }
func (e *ofKind) Unwrap() []error { return []error{e.kind, e.sentence} }

// Errorf is fmt.Errorf for an error of a kind.
func Errorf(kind error, format string, args ...any) error {
	return &ofKind{kind, fmt.Errorf(format, args...)}
}
