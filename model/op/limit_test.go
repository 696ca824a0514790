package op_test

import (
	"math"
	"testing"

	"gorgonia.org/tensor"

	"cne/model/op"
)

// ringOf returns n points of two coordinates and the directed edges that join each to the
// two before and the two after it: all points have the same degree.
func ringOf(points []float64) (heads, tails []int) {
	n := len(points) / 2
	for i := range n {
		for _, step := range []int{1, 2, n - 2, n - 1} {
			heads, tails = append(heads, i), append(tails, (i+step)%n)
		}
	}
	return heads, tails
}

// everyNegative returns the gradient of a loss with respect to the points and to theta,
// per edge, when each other point is k times among the negatives of every head: what
// negatives that are drawn uniformly give in the mean for NC, and for InfoNC as k grows.
func everyNegative(t *testing.T, points []float64, k int, theta float64, loss op.Loss) (grad []float64, ofTheta float64) {
	t.Helper()
	heads, tails := ringOf(points)
	b, n := len(heads), len(points)/2
	rowOf := make([]int32, n) // one of each point's rows
	point := make([]int, 2*b)
	var features []float64
	for r, p := range append(heads, tails...) {
		features = append(features, points[2*p:2*p+2]...)
		point[r], rowOf[p] = p, int32(r)
	}
	var negatives []int32
	for range k {
		for step := 1; step < n; step++ {
			for _, h := range heads {
				negatives = append(negatives, rowOf[(h+step)%n])
			}
		}
	}
	g := newLossGraph(t, tensor.Float64, features, 2, negatives, b, theta, op.ContrastiveOptions{Loss: loss})
	ran(t, g.loss, g.gradFeatures, g.gradOfTheta)
	ofRows := float64sOf(t, g.gradFeatures.Value())
	grad = make([]float64, len(points))
	for r, p := range point {
		grad[2*p] += ofRows[2*r] / float64(b)
		grad[2*p+1] += ofRows[2*r+1] / float64(b)
	}
	return grad, float64sOf(t, g.gradOfTheta.Value())[0] / float64(b)
}

// likelihoodGradient returns the gradient of −(1/E)·Σ log q(ij)/norm(i) over the edges
// for the Cauchy similarity q, where norm(i) is Σ q over the ordered pairs (t-SNE's loss,
// Eq. 5 of the paper) or, conditionally, over those whose first point is i (SNE's).
func likelihoodGradient(points []float64, conditional bool) []float64 {
	n := len(points) / 2
	q := func(i, j int) float64 {
		x, y := points[2*i]-points[2*j], points[2*i+1]-points[2*j+1]
		return 1 / (1 + x*x + y*y)
	}
	norm := make([]float64, n)
	total := 0.
	for i := range n {
		for j := range n {
			if j != i {
				norm[i] += q(i, j)
			}
		}
		total += norm[i]
	}
	grad := make([]float64, len(points))
	// pull adds w times the gradient of log q(ij).
	pull := func(i, j int, w float64) {
		for c := range 2 {
			g := -2 * (points[2*i+c] - points[2*j+c]) * q(i, j) * w
			grad[2*i+c] += g
			grad[2*j+c] -= g
		}
	}
	heads, tails := ringOf(points)
	for e, i := range heads {
		pull(i, tails[e], -1/float64(len(heads)))
	}
	for i := range n {
		for j := range n {
			switch {
			case j == i:
			case conditional: // each point is the head of as many edges
				pull(i, j, q(i, j)/norm[i]/float64(n))
			default:
				pull(i, j, q(i, j)/total)
			}
		}
	}
	return grad
}

// largest returns the largest difference of two gradients.
func largest(a, b []float64) float64 {
	d := 0.
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}

// partitionOf returns Σ q over the ordered pairs.
func partitionOf(points []float64) float64 {
	sum := 0.
	for i := 0; i < len(points); i += 2 {
		for j := 0; j < len(points); j += 2 {
			if j != i {
				sum += 1 / (1 + math.Pow(points[i]-points[j], 2) + math.Pow(points[i+1]-points[j+1], 2))
			}
		}
	}
	return sum
}

// Supp. B.1 of the paper: with more and more negatives the gradient of NC, at the Z that
// normalises q, becomes the gradient of maximum likelihood (t-SNE's), where Z rests, and
// so does InfoNC's gradient. InfoNC's negatives share the head of their edge, so its
// limit is the gradient of the likelihood given the head: SNE's, which is t-SNE's where
// Σ_j q(ij) is the same for all heads i.
func TestManyNegativesAreMaximumLikelihood(t *testing.T) {
	anywhere := normals(2*9, 31)
	var polygon []float64
	for i := range 9 {
		angle := 2 * math.Pi * float64(i) / 9
		polygon = append(polygon, 1.3*math.Cos(angle), 1.3*math.Sin(angle))
	}
	for _, tc := range []struct {
		name        string
		points      []float64
		loss        op.Loss
		conditional bool
		equal       bool
	}{
		{"NC", anywhere, op.NC, false, true},
		{"InfoNC, given the head", anywhere, op.InfoNC, true, true},
		{"InfoNC, of all pairs", anywhere, op.InfoNC, false, false},
		{"InfoNC, of all pairs, on a polygon", polygon, op.InfoNC, false, true},
	} {
		want := likelihoodGradient(tc.points, tc.conditional)
		n := float64(len(tc.points) / 2)
		z := partitionOf(tc.points) / (n * (n - 1))
		off := func(k int) float64 {
			if tc.loss == op.InfoNC {
				grad, _ := everyNegative(t, tc.points, k, 0, tc.loss) // theta is log ρ
				return largest(grad, want)
			}
			grad, ofTheta := everyNegative(t, tc.points, k, math.Log(z), tc.loss)
			return max(largest(grad, want), math.Abs(ofTheta))
		}
		few, many := off(10), off(100)
		scale := largest(want, make([]float64, len(want)))
		if tc.equal && (many > 0.01*scale || many > 0.15*few) {
			t.Errorf("%s: 10 times every negative is off by %.3g, 100 times by %.3g of %.3g; want a tenth", tc.name, few, many, scale)
		}
		if !tc.equal && many < 0.02*scale {
			t.Errorf("%s: 100 times every negative is off by %.3g of %.3g only", tc.name, many, scale)
		}
	}
}
