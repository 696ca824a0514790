package simd

// Winograd's minimal filtering F(4×4, 3×3) (Lavin and Gray, 2016) computes a
// tile of 4×4 results of a 3×3 convolution from the 6×6 pixels that it sees with
// 36 products instead of 144: result = Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A for weights g
// and pixels d. Over many channels, the products become 36 matrix products, of
// transformed tiles with transformed weights. The functions here are the
// transforms and, for the gradients, their transposes; each works on vectors of
// channels. Their vector forms are called by name, not through a value: their arguments
// would escape to the heap. Distances are in bytes in assembly.

// WinogradPoints is the number of products of a tile.
const WinogradPoints = 36

// A Grid says where the elements of a tile are: the element of row r and column q has
// its channels from At + r·Row + q·Pixel on.
type Grid struct{ At, Row, Pixel int }

// WinogradGrid is the grid of a transformed tile whose elements are stride apart.
func WinogradGrid(at, stride int) Grid { return Grid{at, 6 * stride, stride} }

// Inside has a mask for each element of a tile, row by row: all bits set if the element
// exists, else 0. Missing elements are read as 0 and are not written.
type Inside [WinogradPoints]uint32

// WinogradImage writes Bᵀ d B for the 6×6 pixels of a tile. channels is a
// multiple of 16.
func WinogradImage(dst []float32, to Grid, x []float32, from Grid, channels int, inside *Inside) {
	if vectors() {
		winogradImageTile(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &x[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, &inside[0])
		return
	}
	winogradTiles(dst, to, x, from, channels, 6, 6, inside, nil, imageRow)
}

// WinogradGradient writes A g Aᵀ for the 4×4 gradients of a tile's results: the
// transpose of WinogradResult.
func WinogradGradient(dst []float32, to Grid, g []float32, from Grid, channels int, inside *Inside) {
	if vectors() {
		winogradGradientTile(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &g[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, &inside[0])
		return
	}
	winogradTiles(dst, to, g, from, channels, 4, 6, inside, nil, gradientRow)
}

// WinogradResult writes Aᵀ m A, the 4×4 results, for the 6×6 products of a tile.
func WinogradResult(dst []float32, to Grid, m []float32, from Grid, channels int, inside *Inside) {
	if vectors() {
		winogradResultTile(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &m[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, &inside[0])
		return
	}
	winogradTiles(dst, to, m, from, channels, 6, 4, nil, inside, resultRow)
}

// WinogradWeights writes G g Gᵀ for 3×3 weights.
func WinogradWeights(dst []float32, to Grid, g []float32, from Grid, channels int) {
	if vectors() {
		winogradWeightsTile(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &g[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, nil)
		return
	}
	winogradTiles(dst, to, g, from, channels, 3, 6, nil, nil, weightsRow)
}

// WinogradWeightsGradient writes Gᵀ h G for the 6×6 gradients of transformed
// weights.
func WinogradWeightsGradient(dst []float32, to Grid, h []float32, from Grid, channels int) {
	if vectors() {
		winogradWeightsGradientTile(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &h[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, nil)
		return
	}
	winogradTiles(dst, to, h, from, channels, 6, 3, nil, nil, weightsGradientRow)
}

// winogradTiles transforms tiles of in×in elements to out×out: row maps the columns, and
// then the rows of the result.
func winogradTiles(dst []float32, to Grid, src []float32, from Grid, channels, in, out int, reads, writes *Inside,
	row func(x [6]float32) [6]float32) {
	var half [6][6]float32 // [out][in]
	for c := range channels {
		var x [6]float32
		for q := range in {
			for r := range in {
				x[r] = 0
				if reads == nil || reads[in*r+q] != 0 {
					x[r] = src[from.At+r*from.Row+q*from.Pixel+c]
				}
			}
			y := row(x)
			for r := range out {
				half[r][q] = y[r]
			}
		}
		for r := range out {
			y := row(half[r])
			for q := range out {
				if writes == nil || writes[out*r+q] != 0 {
					dst[to.At+r*to.Row+q*to.Pixel+c] = y[q]
				}
			}
		}
	}
}

// The rows round as the vector forms do: the numbers here are multiplied in float32, and
// fused with what they are added to where the vector forms fuse.

// imageRow computes Bᵀ·d.
func imageRow(d [6]float32) [6]float32 {
	a, b := FMA(-4, d[2], d[4]), FMA(-4, d[1], d[3])
	e, f := d[4]-d[2], d[3]-d[1]
	return [6]float32{FMA(-5, d[2], FMA(4, d[0], d[4])), a + b, a - b, FMA(2, f, e), FMA(-2, f, e), FMA(-5, d[3], FMA(4, d[1], d[5]))}
}

// gradientRow computes A·g.
func gradientRow(g [6]float32) [6]float32 {
	a, b := g[0]+g[2], g[1]+g[3]
	e, f := FMA(4, g[2], g[0]), FMA(4, g[3], g[1])
	return [6]float32{g[0], a + b, a - b, FMA(2, f, e), FMA(-2, f, e), g[3]}
}

// resultRow computes Aᵀ·m.
func resultRow(m [6]float32) [6]float32 {
	s1, d1, s2, d2 := m[1]+m[2], m[1]-m[2], m[3]+m[4], m[3]-m[4]
	return [6]float32{m[0] + s1 + s2, FMA(2, d2, d1), FMA(4, s2, s1), FMA(8, d2, m[5]+d1)}
}

// weightsRow computes G·g.
func weightsRow(g [6]float32) [6]float32 {
	const quarter, sixth, twelfth = float32(1. / 4), float32(1. / 6), float32(1. / 12)
	a, b := float32(sixth*(g[0]+g[2])), float32(sixth*g[1])
	e, f := FMA(1./24, g[0], float32(sixth*g[2])), float32(twelfth*g[1])
	return [6]float32{quarter * g[0], 0 - (a + b), b - a, e + f, e - f, g[2]}
}

// weightsGradientRow computes Gᵀ·h.
func weightsGradientRow(h [6]float32) [6]float32 {
	s1, d1, s2, d2 := h[1]+h[2], h[2]-h[1], h[3]+h[4], h[3]-h[4]
	first := FMA(1./24, s2, FMA(-1./6, s1, float32(h[0]*(1./4))))
	return [6]float32{first, FMA(1./12, d2, float32(d1*(1./6))), FMA(1./6, s2-s1, h[5])}
}
