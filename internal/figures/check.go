package figures

import (
	"errors"
	"fmt"

	"cne/configs"
	"cne/data"
	"cne/internal/plot"
)

// Check says, before an embedding of n points with these labels is made, whether its
// picture can be drawn at the size that the configuration gives it; held are the labels
// of held-out points, of which there are others many, or none.
func Check(n, others int, labels, held *data.Labels, dim int, p configs.Plot) error {
	if p.WidthCM == 0 && p.HeightCM == 0 {
		return nil
	}
	s := Scatter(anywhere(n, dim), labels, p)
	if others > 0 {
		s = ScatterWithHeldOut(anywhere(n, dim), anywhere(others, dim), labels, held, p)
	}
	if err := s.Check(); errors.Is(err, plot.ErrInput) {
		key := "plot.width_cm"
		if p.WidthCM == 0 {
			key = "plot.height_cm"
		}
		return fmt.Errorf("%s: %w", key, err)
	} else if err != nil {
		return err
	}
	return nil
}

// anywhere returns points that do not coincide.
func anywhere(n, dim int) *data.Matrix {
	m := data.NewMatrix(n, min(dim, 3))
	for i := range m.X {
		m.X[i] = float32(i%7) + float32(i)/float32(len(m.X))
	}
	return m
}
