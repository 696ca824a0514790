package simd

// A Channel says where the numbers of one channel of a batch of images are: in
// Images planes of Size numbers each, the first of which is Stride numbers after
// the first of the plane before.
type Channel struct{ Images, Size, Stride int }

// whole is how many numbers of a plane the vector forms take.
func (c Channel) whole() int { return c.Size &^ (lanes - 1) }

// ChannelMoments returns Σ (x−pivot) and Σ (x−pivot)² of a channel, added up in
// float64. x begins with the channel's first plane, as all arrays of these
// functions do.
func ChannelMoments[T Float](x []T, c Channel, pivot T) (sum, squares float64) {
	first := 0
	if f, ok := float32s(x); ok && c.whole() > 0 {
		first = c.whole()
		sum, squares = channelMomentsVector(f, c.Images, first, c.Stride, float32(pivot))
	}
	s, q := channelMoments(x, c, first, pivot)
	return sum + s, squares + q
}

// ChannelProducts returns Σ g and Σ g·(x−pivot) of a channel, added up in
// float64.
func ChannelProducts[T Float](g, x []T, c Channel, pivot T) (sum, products float64) {
	first := 0
	if f, ok := float32s(x); ok && c.whole() > 0 {
		first = c.whole()
		sum, products = channelProductsVector(any(g).([]float32), f, c.Images, first, c.Stride, float32(pivot))
	}
	s, p := channelProducts(g, x, c, first, pivot)
	return sum + s, products + p
}

// ChannelScale sets dst to a·(x−pivot)+b in a channel. dst may be x.
func ChannelScale[T Float](dst, x []T, c Channel, pivot, a, b T) {
	first := 0
	if f, ok := float32s(x); ok && c.whole() > 0 {
		first = c.whole()
		channelScaleVector(any(dst).([]float32), f, c.Images, first, c.Stride, float32(pivot), float32(a), float32(b))
	}
	channelScale(dst, x, c, first, pivot, a, b)
}

// ChannelBlend sets dst to a·g+b·(x−pivot)+o in a channel. dst may be g or x.
func ChannelBlend[T Float](dst, g, x []T, c Channel, pivot, a, b, o T) {
	first := 0
	if f, ok := float32s(x); ok && c.whole() > 0 {
		first = c.whole()
		channelBlendVector(any(dst).([]float32), any(g).([]float32), f, c.Images, first, c.Stride, float32(pivot), float32(a), float32(b), float32(o))
	}
	channelBlend(dst, g, x, c, first, pivot, a, b, o)
}

// Rectify sets dst[i] to x[i], but to 0 if that is negative. dst may be x.
func Rectify[T Float](dst, x []T) {
	dst = dst[:len(x)]
	if f, ok := float32s(x); ok && len(x) >= lanes {
		whole := len(x) - len(x)%lanes
		rectifyVector(any(dst).([]float32)[:whole], f)
		dst, x = dst[whole:], x[whole:]
	}
	rectify(dst, x)
}

// AddRectify sets dst[i] to a[i]+b[i], but to 0 if that is negative. dst may be
// a or b.
func AddRectify[T Float](dst, a, b []T) {
	dst, b = dst[:len(a)], b[:len(a)]
	if f, ok := float32s(a); ok && len(a) >= lanes {
		whole := len(a) - len(a)%lanes
		addRectifyVector(any(dst).([]float32)[:whole], f, any(b).([]float32))
		dst, a, b = dst[whole:], a[whole:], b[whole:]
	}
	addRectify(dst, a, b)
}

// The portable forms of the kernels of channels take the numbers of each plane
// from number first on.

// plane returns the numbers of plane i of x from number first on.
func plane[T Float](x []T, c Channel, i, first int) []T {
	return x[i*c.Stride+first : i*c.Stride+c.Size]
}

func channelMoments[T Float](x []T, c Channel, first int, pivot T) (sum, squares float64) {
	if first == c.Size {
		return 0, 0
	}
	for i := range c.Images {
		for _, v := range plane(x, c, i, first) {
			d := float64(v) - float64(pivot)
			sum += d
			squares += d * d
		}
	}
	return sum, squares
}

func channelProducts[T Float](g, x []T, c Channel, first int, pivot T) (sum, products float64) {
	if first == c.Size {
		return 0, 0
	}
	for i := range c.Images {
		gs := plane(g, c, i, first)
		for j, v := range plane(x, c, i, first) {
			sum += float64(gs[j])
			products += float64(gs[j]) * (float64(v) - float64(pivot))
		}
	}
	return sum, products
}

func channelScale[T Float](dst, x []T, c Channel, first int, pivot, a, b T) {
	if first == c.Size {
		return
	}
	for i := range c.Images {
		to := plane(dst, c, i, first)
		for j, v := range plane(x, c, i, first) {
			to[j] = a*(v-pivot) + b
		}
	}
}

func channelBlend[T Float](dst, g, x []T, c Channel, first int, pivot, a, b, o T) {
	if first == c.Size {
		return
	}
	for i := range c.Images {
		to, gs := plane(dst, c, i, first), plane(g, c, i, first)
		for j, v := range plane(x, c, i, first) {
			to[j] = a*gs[j] + (b*(v-pivot) + o)
		}
	}
}

func rectify[T Float](dst, x []T) {
	for i, v := range x {
		if v < 0 { // a NaN is not
			v = 0
		}
		dst[i] = v
	}
}

func addRectify[T Float](dst, a, b []T) {
	for i, v := range a {
		v += b[i]
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}
