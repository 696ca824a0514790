package neighbors

import (
	"fmt"
	"math"
	"slices"

	"cne/internal/parallel"
)

// FuzzyGraph is FromNeighbors with UMAP's weights of the edges (McInnes, Healy and
// Melville, 2018, Section 3.1), in (0, 1], which make much of the nearest neighbours.
// Point i gives its neighbour j the strength
//
//	w(i→j) = exp(−max(0, d(i,j) − ρᵢ)/σᵢ),
//
// where ρᵢ is the smallest of its distances above 0, and σᵢ is such that its k strengths
// have the sum log₂(k+1): what umap-learn does with n_neighbors = k+1, as it counts the
// point itself. σᵢ is at least a thousandth of the mean of its distances. The weight of an
// edge is a+b−ab of the strengths a and b of its two directions, of which one may be 0.
//
// It fails as FromNeighbors does, and if nb has no squared distances, or some that are
// negative, infinite or no numbers.
func FuzzyGraph(nb *Neighbors) (*Graph, error) {
	g, err := FromNeighbors(nb)
	if err != nil {
		return nil, err
	}
	if len(nb.Dist2) != len(nb.Index) {
		return nil, fmt.Errorf("neighbors: %w: squared distances: got %d, want %d, one for each neighbour", ErrInvalidGraph, len(nb.Dist2), len(nb.Index))
	}
	for e, d2 := range nb.Dist2 {
		if !(d2 >= 0) || math.IsInf(d2, 1) {
			return nil, fmt.Errorf("neighbors: %w: squared distance of point %d (counted from 0) to its neighbour %d: got %g, want a finite number of at least 0",
				ErrInvalidGraph, e/nb.K, e%nb.K, d2)
		}
	}
	g.Weights = make([]float32, g.Edges()) // the strengths of one direction at first
	const grain = 4096
	parallel.For(g.N, grain, func(_, lo, hi int) {
		d, w := make([]float64, nb.K), make([]float64, nb.K)
		for i := lo; i < hi; i++ {
			for c, d2 := range nb.Dist2[i*nb.K : (i+1)*nb.K] {
				d[c] = math.Sqrt(d2)
			}
			strengths(w, d)
			for c, j := range nb.Of(i) {
				e, _ := g.find(int32(i), j)
				g.Weights[e] = float32(w[c])
			}
		}
	})
	parallel.For(g.N, grain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			for e := g.Indptr[i]; e < g.Indptr[i+1]; e++ {
				if int(g.Indices[e]) < i {
					continue // which has been seen from there
				}
				back, _ := g.find(g.Indices[e], int32(i))
				a, b := float64(g.Weights[e]), float64(g.Weights[back])
				// What is too small for float32 is not lost: an edge has a weight.
				w := max(float32(a+b-a*b), math.SmallestNonzeroFloat32)
				g.Weights[e], g.Weights[back] = w, w
			}
		}
	})
	return g, nil
}

// find returns where the edge from i to j stands in Indices, and whether there is one.
func (g *Graph) find(i, j int32) (at int64, found bool) {
	in, found := slices.BinarySearch(g.Tails(int(i)), j)
	return g.Indptr[i] + int64(in), found
}

const (
	// scaleSteps and scaleTolerance bound the search for σ: Newton's method takes half a
	// dozen steps to be as near.
	scaleSteps, scaleTolerance = 64, 1e-5
	// leastScale is the least σ, as a share of the mean distance.
	leastScale = 1e-3
)

// strengths sets w to UMAP's strengths of a point's neighbours at the distances d.
func strengths(w, d []float64) {
	rho, mean := math.Inf(1), 0.
	for _, v := range d {
		if v > 0 {
			rho = min(rho, v)
		}
		mean += v / float64(len(d))
	}
	target := math.Log2(float64(len(d) + 1))
	// The sum of the strengths grows with σ. Newton's steps begin at a σ at which the
	// strength of the mean neighbour is about right, and stay within bounds.
	low, high := leastScale*mean, math.Inf(1)
	sigma := max(low, mean-rho)
	for range scaleSteps {
		sum, slope := 0., 0.
		for c, v := range d {
			beyond := max(0, v-rho)
			w[c] = math.Exp(-beyond / sigma)
			if beyond == 0 { // also where σ is 0, as all points coincide
				w[c] = 1
			}
			sum += w[c]
			slope += w[c] * beyond
		}
		slope /= sigma * sigma
		switch {
		case math.Abs(sum-target) < scaleTolerance, sum > target && sigma == low:
			return
		case sum > target:
			high = sigma
		default:
			low = sigma
		}
		next := sigma + (target-sum)/slope
		switch {
		case next > low && next < high:
			sigma = next
		case math.IsInf(high, 1):
			sigma *= 2
		default:
			sigma = (low + high) / 2
		}
	}
}
