package initial

import (
	"math"

	"cne/data"
	"cne/data/neighbors"
)

const (
	// mostGathered is the largest number of components that Gather compares, pair by pair.
	mostGathered = 1000
	// gatheredShare bounds the similarities between components, as a share of those within:
	// the partition function grows by 2 % or less. gatheredGap is the least distance of two
	// components, as a multiple of the sum of their radii.
	gatheredShare, gatheredGap = 0.05, 1.5
	// gatheredFrom is the factor above which the distances stay.
	gatheredFrom = 0.5
)

// Gather moves the components of a graph in an embedding m of its points towards each other,
// if they lie so far apart that a picture shows each as a dot: no edge holds them, and they
// move apart as long as training goes on. All distances between their means shrink by one
// factor, no component changes its shape, and the mean of all points becomes the origin, as
// at a start: training moves it if the components differ. It returns the number of components
// that were moved.
func Gather(g *neighbors.Graph, m *data.Matrix) (moved int) {
	members := connected(g.Indptr, g.Indices)
	if len(members) < 2 || len(members) > mostGathered {
		return 0
	}
	type part struct{ weight, square, radius float64 }
	parts, means, centre := make([]part, len(members)), make([][]float64, len(members)), make([]float64, m.D)
	within := 0.
	for c, nodes := range members {
		p, square := &parts[c], 0.
		means[c], square = m.Moments(nodes)
		p.weight = float64(len(nodes))
		p.square = square / p.weight
		for _, i := range nodes {
			p.radius = max(p.radius, math.Sqrt(distance2(means[c], m.Row(int(i)))))
		}
		for j, v := range means[c] {
			centre[j] += float64(v*p.weight) / float64(m.N)
		}
		within += p.weight * p.weight / (1 + float64(2*p.square))
	}
	// between returns the similarities between components at a factor, and whether they are apart.
	between := func(factor float64) (sum float64, apart bool) {
		apart = true
		for a, p := range parts {
			for b, q := range parts[:a] {
				d2 := float64(factor * factor * distance2(means[a], means[b]))
				sum += 2 * p.weight * q.weight / (1 + d2 + p.square + q.square)
				apart = apart && math.Sqrt(d2) >= gatheredGap*(p.radius+q.radius)
			}
		}
		return sum, apart
	}
	before, _ := between(1)
	least, most := 0., 1.
	for range 30 {
		middle := (least + most) / 2
		if sum, apart := between(middle); apart && sum <= before+float64(gatheredShare*within) {
			most = middle
		} else {
			least = middle
		}
	}
	if most > gatheredFrom {
		return 0
	}
	for c, nodes := range members {
		for j, v := range means[c] {
			shift := float64(most*(v-centre[j])) - v
			for _, i := range nodes {
				m.Row(int(i))[j] = float32(float64(m.Row(int(i))[j]) + shift)
			}
		}
	}
	return len(members)
}

// distance2 returns the squared distance of two points.
func distance2[T float32 | float64](a []float64, b []T) (sum float64) {
	for j, v := range b {
		d := a[j] - float64(v)
		sum += float64(d * d)
	}
	return sum
}

// connected returns the nodes of each component, in breadth-first order from its first
// node. Components are in the order of their first nodes.
func connected(ptr []int64, adj []int32) (members [][]int32) {
	seen := make([]bool, len(ptr)-1)
	queue := make([]int32, 0, len(seen))
	for i := range seen {
		if seen[i] {
			continue
		}
		first := len(queue)
		seen[i] = true
		queue = append(queue, int32(i))
		for k := first; k < len(queue); k++ {
			for _, j := range adj[ptr[queue[k]]:ptr[queue[k]+1]] {
				if !seen[j] {
					seen[j] = true
					queue = append(queue, j)
				}
			}
		}
		members = append(members, queue[first:])
	}
	return members
}
