package simd

import (
	"fmt"
	"math"
)

// FieldTargets is the number of targets of Field.
const FieldTargets = 32

// Field computes what sources in the plane do to FieldTargets targets: of each target,
// sums gets Σ m·q, then of all Σ m·q²·Δx, then Σ m·q²·Δy, where m is the mass of a source,
// Δ the target's position minus the source's, and q = 1/(1+‖Δ‖²). targets holds the x of
// all targets and then their y, sources x, y and m of each source. Distances must be below
// 10⁹.
func Field(sums *[3 * FieldTargets]float32, targets *[2 * FieldTargets]float32, sources []float32) {
	if len(sources)%3 != 0 {
		panic(fmt.Sprintf("simd: %d numbers are not the positions and masses of sources", len(sources)))
	}
	if vectors() {
		fieldVector(sums[:], targets[:], sources)
		return
	}
	field(sums, targets, sources)
}

func field(sums *[3 * FieldTargets]float32, targets *[2 * FieldTargets]float32, sources []float32) {
	for t := range FieldTargets {
		tx, ty := targets[t], targets[FieldTargets+t]
		var total, fx, fy float32
		for s := 0; s < len(sources); s += 3 {
			x, y, m := tx-sources[s], ty-sources[s+1], sources[s+2]
			q := 1 / (1 + x*x + y*y)
			total += m * q
			w := m * q * q
			fx += w * x
			fy += w * y
		}
		sums[t], sums[FieldTargets+t], sums[2*FieldTargets+t] = total, fx, fy
	}
}

// Attract computes the attraction of edges, whose heads are in the lower halves of the words
// and whose tails in the upper: fx and fy get each edge's w·q·Δ, where w is its weight, Δ its
// head's position minus its tail's, and q = 1/(1+‖Δ‖²). points is [n, 2]. It returns
// Σ w·log(1+‖Δ‖²). weights has as many elements as edges, the results no fewer.
func Attract[E ~uint64](fx, fy, points []float32, edges []E, weights []float32) (loss float64) {
	n := len(edges)
	fx, fy, weights = fx[:n], fy[:n], weights[:n]
	whole := 0
	if vectors() {
		whole = n - n%lanes
		loss = float64(attractVector(fx[:whole], fy, points, uint64s(edges), weights))
	}
	for k := whole; k < n; k++ {
		i, j := 2*uint32(edges[k]), 2*uint32(edges[k]>>32)
		dx, dy := points[i]-points[j], points[i+1]-points[j+1]
		u := 1 + dx*dx + dy*dy
		f := weights[k] / u
		fx[k], fy[k] = f*dx, f*dy
		loss += float64(weights[k]) * math.Log(float64(u))
	}
	return loss
}
