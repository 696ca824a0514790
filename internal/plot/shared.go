package plot

import "image/color"

// What other pictures of the same embeddings share with a Scatter, besides its
// colours, numbers and text, so that a class has one colour everywhere.

// SingleColour returns the colour of points of which neither class nor value is
// known of any.
func SingleColour() color.NRGBA { return single }

// UnlabeledColour returns the colour of points without class or value among
// others that have one.
func UnlabeledColour() color.NRGBA { return unlabeled }

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
