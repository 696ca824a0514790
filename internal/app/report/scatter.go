// Package report shows the results of runs: pictures of embeddings, curves of the
// training, pages to explore embeddings, and tables of quality figures.
package report

import (
	"cne/configs"
	"cne/data"
	"cne/internal/plot"
)

// centimetres in an inch.
const centimetres = 2.54

// Scatter returns the picture of an embedding. Labels, if not nil, colour the points as
// classes or on a continuous scale. Points with a missing label are grey.
func Scatter(embedding *data.Matrix, labels *data.Labels, p configs.Plot) *plot.Scatter {
	s := &plot.Scatter{
		Embedding:   embedding,
		Title:       p.Title,
		PointSize:   p.PointSize,
		NameClasses: p.Names,
		Width:       p.WidthCM / centimetres,
		Height:      p.HeightCM / centimetres,
	}
	s.Classes, s.ClassNames, s.Values = plot.OfLabels(labels)
	return s
}

// orMissing returns labels, or for nil missing labels of n points.
func orMissing(l *data.Labels, n int) *data.Labels {
	if l != nil {
		return l
	}
	return &data.Labels{Class: make([]int32, n), Names: []string{""}}
}

// ScatterWithHeldOut returns the picture of the training points and the held-out points.
// Either may be without labels.
func ScatterWithHeldOut(embedding, held *data.Matrix, labels, heldLabels *data.Labels, p configs.Plot) *plot.Scatter {
	both := data.NewMatrix(embedding.N+held.N, embedding.D)
	copy(both.X, embedding.X)
	copy(both.X[len(embedding.X):], held.Relative(embedding.Offset).X)
	both.Offset = embedding.Offset
	var joined *data.Labels
	if labels != nil || heldLabels != nil {
		joined = data.JoinLabels(orMissing(labels, embedding.N), orMissing(heldLabels, held.N))
	}
	s := Scatter(both, joined, p)
	s.HeldOut = make([]bool, both.N)
	for i := embedding.N; i < both.N; i++ {
		s.HeldOut[i] = true
	}
	return s
}

// Strip returns the picture of several embeddings side by side, each with a title,
// with one legend: a class has one colour in all of them.
func Strip(sets []*data.Dataset, titles []string) *plot.Strip {
	var labels []*data.Labels
	points := 0
	for _, set := range sets {
		labels = append(labels, orMissing(set.Labels, set.Points.N))
		points += set.Points.N
	}
	all := Scatter(&data.Matrix{N: points}, data.JoinLabels(labels...), configs.Plot{})
	strip := &plot.Strip{}
	first := 0
	for i, set := range sets {
		end := first + set.Points.N
		panel := &plot.Scatter{Embedding: set.Points, Title: titles[i], ClassNames: all.ClassNames}
		if all.Classes != nil {
			panel.Classes = all.Classes[first:end]
		}
		if all.Values != nil {
			panel.Values = all.Values[first:end]
		}
		strip.Panels = append(strip.Panels, panel)
		first = end
	}
	return strip
}

// InputOrder reorders the rows of a picture, training points before held-out points, to
// the order of the input, so row numbers in an explorer are rows of the input.
// heldRows are the held-out rows of the input, ascending.
func InputOrder(s *plot.Scatter, heldRows []int) {
	n := s.Embedding.N
	train, held := 0, n-len(heldRows)
	from := make([]int, n)
	for i := range from {
		if k := held - (n - len(heldRows)); k < len(heldRows) && heldRows[k] == i {
			from[i] = held
			held++
		} else {
			from[i] = train
			train++
		}
	}
	embedding := data.NewMatrix(n, s.Embedding.D)
	for to, i := range from {
		copy(embedding.Row(to), s.Embedding.Row(i))
	}
	s.Embedding = embedding
	s.Classes, s.Values, s.HeldOut = reorder(s.Classes, from), reorder(s.Values, from), reorder(s.HeldOut, from)
}

// reorder returns the values that were at places; nil for nil.
func reorder[T any](values []T, from []int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(from))
	for to, i := range from {
		out[to] = values[i]
	}
	return out
}
