package simd

import (
	"fmt"

	"cne/internal/elementary"
)

// FieldTargets is the number of targets of Field.
const FieldTargets = 32

// Field computes what sources in the plane do to FieldTargets targets. It adds Σ m·q of
// all targets to sums, then Σ m·q²·Δx, then Σ m·q²·Δy, where m is the mass of a source, Δ the
// target's position minus the source's, and q = 1/(1+‖Δ‖²). targets holds the x of all
// targets and then their y, sources x, y and m of each source. Distances must be below 10⁹.
func Field(sums *[3 * FieldTargets]float32, targets *[2 * FieldTargets]float32, sources []float32) {
	if len(sources)%3 != 0 {
		panic(fmt.Sprintf("simd: %d numbers are not the positions and masses of sources", len(sources)))
	}
	if vectors() {
		fieldVector(sums[:], targets[:], sources)
		return
	}
	// One division serves a target of the first half and one of the second.
	const half = FieldTargets / 2
	for ; len(sources) >= 3; sources = sources[3:] {
		x, y, m := sources[0], sources[1], sources[2]
		for t := range half {
			ax, ay := targets[t]-x, targets[2*half+t]-y
			bx, by := targets[half+t]-x, targets[3*half+t]-y
			u, v := near2(ax, ay), near2(bx, by)
			inverse := 1 / float32(u*v)
			q, r := inverse*v, inverse*u
			w, z := float32(q*m), float32(r*m)
			sums[t] += w
			sums[half+t] += z
			w, z = float32(q*w), float32(r*z)
			sums[2*half+t] = fma32(w, ax, sums[2*half+t])
			sums[3*half+t] = fma32(z, bx, sums[3*half+t])
			sums[4*half+t] = fma32(w, ay, sums[4*half+t])
			sums[5*half+t] = fma32(z, by, sums[5*half+t])
		}
	}
}

// Attract computes the attraction of edges, whose heads are in the lower halves of the words
// and whose tails in the upper: fx and fy get each edge's w·q·Δ, where w is its weight, Δ its
// head's position minus its tail's, and q = 1/(1+‖Δ‖²). points is [n, 2]. It returns
// Σ w·log(1+‖Δ‖²). weights has as many elements as edges, fx and fy at least as many.
func Attract[E ~uint64](fx, fy, points []float32, edges []E, weights []float32) (loss float64) {
	n := len(edges)
	fx, fy, weights = fx[:n], fy[:n], weights[:n]
	whole := n - n%lanes
	loss = float64(formOf(attractVector, attractLanes)(fx[:whole], fy, points, uint64s(edges), weights))
	for k := whole; k < n; k++ {
		i, j := 2*uint32(edges[k]), 2*uint32(edges[k]>>32)
		dx, dy := points[i]-points[j], points[i+1]-points[j+1]
		u := near2(dx, dy)
		f := weights[k] / u
		fx[k], fy[k] = f*dx, f*dy
		loss += float64(float64(weights[k]) * elementary.Log(float64(u)))
	}
	return loss
}
