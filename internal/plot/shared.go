package plot

import "image/color"

// What other pictures of the same embeddings share with a Scatter, so that a
// class has one colour everywhere.

// ClassColour returns the colour of class c ≥ 0 on a light ground. It does not
// depend on what other classes there are, and repeats after 40.
func ClassColour(c int) color.NRGBA { return classColour(c) }

// ValueColour returns the colour at position t of the continuous scale, from
// 0 to 1.
func ValueColour(t float64) color.NRGBA { return valueColour(t) }

// SingleColour returns the colour of points of which neither class nor value is
// known of any.
func SingleColour() color.NRGBA { return single }

// UnlabeledColour returns the colour of points without class or value among
// others that have one.
func UnlabeledColour() color.NRGBA { return unlabeled }

// NoLabel is what a legend says of points without class or value.
const NoLabel = noLabel

// Ticks returns two to six round numbers within [low, high], in increasing
// order, or none if the range is empty or beyond what numbers can divide.
func Ticks(low, high float64) []float64 { return ticks(low, high) }

// Number writes a tick with as few characters as it takes: 0.05, 20, 5e6.
func Number(v float64) string { return number(v) }

// Printable makes text safe to show: control characters become spaces, bytes
// that are not UTF-8 a replacement mark, and spaces around it are cut.
func Printable(text string) string { return printable(text) }

// Plane returns the places of the points as they are drawn, x and y
// alternating and y upwards, in the units of the embedding, and a note on what
// they do not tell by themselves, which may be empty (see Scatter.Embedding).
// Errors wrap ErrInput or ErrNotFinite.
func (s *Scatter) Plane() (xy []float64, note string, err error) {
	if err := s.check(); err != nil {
		return nil, "", err
	}
	v, err := s.view()
	return v.xy, v.note, err
}
