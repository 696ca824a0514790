package report

import (
	"errors"
	"fmt"

	"cne/configs"
	"cne/data"
	"cne/internal/plot"
)

// Check says, before an embedding of points is made, whether its picture can be drawn at
// the size that the configuration gives it; held are those held out, or nil.
func Check(points, held *data.Dataset, c *configs.Config) error {
	p, dim := c.Plot, c.Embed.Dim
	if !c.Output.Plot || p.WidthCM == 0 && p.HeightCM == 0 {
		return nil
	}
	n, _ := points.Dims()
	s := Scatter(anywhere(n, dim), points.Labels, p)
	if held != nil {
		heldN, _ := held.Dims()
		s = ScatterWithHeldOut(anywhere(n, dim), anywhere(heldN, dim), points.Labels, held.Labels, p)
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
