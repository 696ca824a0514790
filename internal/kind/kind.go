// Package kind makes errors that errors.Is recognises by their kind, without the
// kind in their text, and gives the constants of enumerations their words (Names).
//
// Fail, Need, Expect, Check, Checkf and Got leave functions with an error, up to the one that has
// deferred Catch and returns it. So steps that may fail follow each other without an if after
// each, in parsers and in the commands of the program. Deferred functions that change the error
// too, such as those that close what is open, must be deferred before Catch.
package kind

import (
	"fmt"
	"slices"

	"cne/internal/text"
)

// An ofKind is an error with a kind that is not in its text.
type ofKind struct{ kind, sentence error }

func (e *ofKind) Error() string   { return e.sentence.Error() }
func (e *ofKind) Unwrap() []error { return []error{e.kind, e.sentence} }

// Errorf is fmt.Errorf for an error of a kind.
func Errorf(kind error, format string, args ...any) error {
	return &ofKind{kind, fmt.Errorf(format, args...)}
}

// Named adds the name of a file, for example, to an error; nil stays nil.
func Named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// A fault is an error on its way to Catch.
type fault struct{ error }

// Fail fails with an error of a kind: the function that has deferred Catch returns it.
func Fail(kind error, format string, args ...any) {
	panic(fault{Errorf(kind, format, args...)})
}

// Need fails as Fail does unless ok.
func Need(ok bool, kind error, format string, args ...any) {
	if !ok {
		Fail(kind, format, args...)
	}
}

// Expect is Need for an error whose text begins with its kind's.
func Expect(ok bool, kind error, format string, args ...any) {
	if !ok {
		Check(fmt.Errorf("%w: %w", kind, fmt.Errorf(format, args...)))
	}
}

// Check fails with an error as Fail does, unless it is nil.
func Check(err error) {
	if err != nil {
		panic(fault{err})
	}
}

// Checkf fails with the error that fmt.Errorf makes of format and args, unless err is nil. args
// should have err, to be wrapped by %w.
func Checkf(err error, format string, args ...any) {
	if err != nil {
		panic(fault{fmt.Errorf(format, args...)})
	}
}

// Got returns a value, or fails with an error as Fail does.
func Got[T any](value T, err error) T {
	Check(err)
	return value
}

// Catch sets *err to the error of Fail, Need, Expect, Check, Checkf or Got. It must be deferred.
func Catch(err *error) { catch(recover(), err) }

// Undo is Catch, and then calls undo if there was an error.
func Undo(err *error, undo func()) {
	catch(recover(), err)
	if *err != nil {
		undo()
	}
}

func catch(recovered any, err *error) {
	switch r := recovered.(type) {
	case nil:
	case fault:
		*err = r.error
	default:
		panic(r)
	}
}

// Names holds the words of an enumeration T, a type of integers whose constants count
// from 0. T has one Names; its methods String, MarshalText, UnmarshalText and Words call
// it.
type Names[T ~int] struct {
	Package, Type string // as in errors: "op" and "Loss"
	What          string // in plain words: "loss"
	Err           error  // what errors wrap
	Words         []string
	// Aliases are further words that Parse takes.
	Aliases map[string]T
}

// Valid reports whether v is one of the constants.
func (n *Names[T]) Valid(v T) bool { return v >= 0 && int(v) < len(n.Words) }

// String returns the word of v, or text such as "Loss(7)".
func (n *Names[T]) String(v T) string {
	if !n.Valid(v) {
		return fmt.Sprintf("%s(%d)", n.Type, int(v))
	}
	return n.Words[v]
}

// Text returns the word of v.
func (n *Names[T]) Text(v T) ([]byte, error) {
	if !n.Valid(v) {
		return nil, Errorf(n.Err, "%s: %s: got %d, want 0 to %d", n.Package, n.What, int(v), len(n.Words)-1)
	}
	return []byte(n.Words[v]), nil
}

// Parse sets v to the constant of a word.
func (n *Names[T]) Parse(v *T, word []byte) error {
	if i := slices.Index(n.Words, string(word)); i >= 0 {
		*v = T(i)
		return nil
	}
	alias, ok := n.Aliases[string(word)]
	if !ok {
		return Errorf(n.Err, "%s: no %s is named %q", n.Package, n.What, word)
	}
	*v = alias
	return nil
}

// ParseWord sets *v, of a type of words, to one of them. For another word the error is of
// the given kind and calls *v what.
func ParseWord[T interface {
	~string
	Words() []string
}](v *T, word []byte, kind error, what string) error {
	words := (*v).Words()
	if !slices.Contains(words, string(word)) {
		return Errorf(kind, "%s: got %q, want %s", what, word, text.Enumerate(words))
	}
	*v = T(word)
	return nil
}
