package option

import (
	"errors"
	"strings"
)

// An Error is about the value of an option.
type Error struct {
	// Key is the option's name in a configuration, such as "train.warm_up"; "" if the
	// fault has none.
	Key string
	// Item, if not "", is the entry of a list that has the option, such as "phase 2", and
	// List is the name of the list.
	Item, List string
	// Got is the value, and Want what is allowed, in words.
	Got, Want string
	// Other, if not "", is the option that does not allow the value, and OtherGot its value.
	Other, OtherGot string
	// Err is the error of the package whose option it is; errors.Is finds it.
	Err error
}

// Error returns the name of the option, what it is and what is allowed.
func (e *Error) Error() string { return e.Name() + e.Problem("", "") }

// Name returns the name of the option with the item that has it.
func (e *Error) Name() string {
	name := e.Key
	if e.Item != "" {
		name = name[strings.LastIndexByte(name, '.')+1:] + " of " + e.Item
	}
	if e.List != "" {
		name = e.List + ": " + name
	}
	if name != "" {
		name += ": "
	}
	return name
}

// OtherName returns the name of the other option. It is relative to the item if items
// have this option.
func (e *Error) OtherName() string {
	if e.Item != "" && (e.Other == "train.epochs" || e.Other == "loss.s") {
		return e.Other[strings.LastIndexByte(e.Other, '.')+1:]
	}
	return e.Other
}

// Problem returns the message without the name. The notes follow the value and the other
// option's value.
func (e *Error) Problem(note, otherNote string) string {
	s := "got " + e.Got + note
	if e.Other != "" {
		s += " with " + e.OtherName() + " " + e.OtherGot + otherNote
	}
	return s + ", want " + e.Want
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// InBoth returns the error of check for high if check also fails for low, for the same
// reason: it then fails for all numbers between.
func InBoth(check func(n int) error, low, high int) error {
	last := check(high)
	if last == nil || low == high {
		return last
	}
	a, b := new(Error), new(Error)
	if first := check(low); first == nil || errors.As(first, &a) && errors.As(last, &b) &&
		(a.Key != b.Key || a.Item != b.Item || a.Want != b.Want) {
		return nil
	}
	return last
}
