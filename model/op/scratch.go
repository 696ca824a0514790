package op

import (
	"runtime"

	"gorgonia.org/tensor"

	"cne/internal/parallel"
	"cne/internal/simd"
)

// A Scratcher is a kernel that needs memory of its own while it runs, which all kernels
// of its kind share.
type Scratcher interface {
	Kernel

	// Scratch returns how many bytes it needs for operands and a result of these shapes;
	// their elements do not matter.
	Scratch(dst *Array, in []*Array) int64
}

// ShapeOnly returns an array without elements, for what depends on shapes alone. It has
// MaxDims dimensions at most.
func ShapeOnly(dtype tensor.Dtype, shape ...int) *Array {
	a := &Array{dtype: dtype}
	a.dims = copy(a.shape[:], shape)
	return a
}

// Scratch implements Scratcher.
func (o *conv2d) Scratch(_ *Array, in []*Array) int64 {
	return convScratch(in[0], in[1], o.stride, o.pad, o.precision, convResult)
}

// Scratch implements Scratcher.
func (o *convGrad) Scratch(_ *Array, in []*Array) int64 {
	return convScratch(in[0], in[1], o.stride, o.pad, o.precision, o.of)
}

// convScratch returns the bytes that a part of a convolution needs: what
// convolution.run allocates.
func convScratch(images, weights *Array, stride, pad int, precision Precision, part convPart) int64 {
	g, err := newWindows(images, weights, stride, pad)
	if err != nil {
		return 0
	}
	cores := int64(runtime.GOMAXPROCS(0))
	single := images.dtype == tensor.Float32
	switch {
	case single && g.tiled():
		return 4 * g.tiledScratch(precision, part, cores)
	case single && precision == BFloat16 && g.whole() && g.pairsWhole():
		return 4 * (g.wholeElements() + g.wholePairs(part))
	case g.whole() && !(single && precision == BFloat16 && g.pairs(part)):
		return int64(images.dtype.Size()) * g.wholeElements()
	}
	size, k := int64(g.size()), int64(g.k)
	step := int64(max(16, im2colElements/g.size()))
	pieces := min(cores, int64(g.n))
	elements := pieces * step * size
	if part == convWeights {
		sums := int64(max(1, parallel.Pieces(g.n, max(1, (g.n+convPieces-1)/convPieces))))
		elements += pieces*step*k + sums*size*k
	} else {
		elements += size * k
	}
	bytes := int64(images.dtype.Size()) * elements
	if precision == BFloat16 && g.pairs(part) {
		bytes += g.pairsScratch(part, pieces, step)
	}
	return bytes
}

// wholeElements returns the elements that wholeImages.run allocates, and wholePairs the
// pairs that pairedWhole.run does besides.
func (g *windows) wholeElements() int64 { return int64(g.inputs()) * int64(g.outputs()) }

func (g *windows) wholePairs(part convPart) int64 {
	in, out, n := int64(g.inputs()), int64(g.outputs()), int64(g.n)
	switch part {
	case convResult:
		return in / 2 * (out + n)
	case convImages:
		return out / 2 * (in + n)
	default:
		return (n + 1) / 2 * (in + out)
	}
}

// pairsScratch returns the bytes that pairedIm2col.run allocates beyond those of im2col.run.
func (g *windows) pairsScratch(part convPart, pieces, step int64) int64 {
	size, k, apart := int64(g.size()), int64(g.k), int64(g.apart())
	switch part {
	case convResult:
		images := max(1, step/int64(g.oh*g.ow))
		return 4 * ((size+1)/2*k + pieces*(step*(apart-size)+step*apart/2+images*int64(g.h*g.w*g.c)/2))
	case convImages:
		return 4 * (size*k/2 + pieces*step*k/2)
	default:
		return 4 * pieces * (step*(apart-size) + (step+1)/2*(apart+k))
	}
}

// tiledScratch returns the elements that winograd.run allocates.
func (g *windows) tiledScratch(precision Precision, part convPart, cores int64) int64 {
	c := winograd{in: g.c, out: g.k, part: part, paired: precision == BFloat16}
	if part == convImages {
		c.in, c.out = g.k, g.c
	}
	tiles := g.n * ((g.h + 3) / 4) * ((g.w + 3) / 4)
	grain, shared := c.grainOf(tiles)
	block := winogradBlock{tiles: min(tiles, grain)}
	blocks := int64(1)
	if !shared {
		blocks = min(cores, int64(parallel.Pieces(tiles, grain)))
	}
	sums := int64(1)
	if part == convWeights && !shared {
		sums = min(convPieces, int64(parallel.Pieces(tiles, grain)))
	}
	return simd.WinogradPoints * (sums*int64(c.weightStride()) + blocks*int64(c.imageStride(&block)+c.resultStride(&block)))
}

// ContrastiveScratch returns the bytes that Contrastive needs for the pairs of b edges
// with m negatives each, drawn one by one, in runs, or (dense alone) all other rows,
// between rows of d numbers of so many bytes: what the sweeps allocate.
func ContrastiveScratch(options ContrastiveOptions, d, b, m int, drawn bool, numberSize int) int64 {
	rows, cores := int64(2*b), int64(runtime.GOMAXPROCS(0))
	all := m >= 2*b-2
	var elements int64
	switch pairs := float64(b) * float64(1+m) * float64(d); {
	case drawn && !all: // sweep
		pieces := int64(min(maxPieces, 1+pairs/pieceWork))
		return int64(numberSize)*pieces*(rows*int64(d)+3*max(16*int64(1+m), tilePairs)) + 4*int64(b)
	case options.Metric == Euclidean && d <= simd.MaxDenseWidth: // soaSweep
		slots := int64(d)
		if options.Loss == InfoNC {
			slots++
			elements += cores * groupHeads * rows // the squares of a group
		}
		elements += rows*int64(d) + 4*int64(b) + int64(b*d) + cores*2*slots*rows
	default: // gemmSweep
		pieces := int64(maxPieces)
		if all {
			ld := int64(stride(2 * b))
			tile := min(int64(b), max(groupHeads, gemmBlock/ld))
			elements += tile*ld + rows*int64(d+1)
		} else {
			elements += pieces * (groupHeads*int64(stride(m)) + rows*int64(d+1))
		}
		if options.Metric == Euclidean {
			elements += rows*int64(d+2) + pieces*rows*int64(d) // centred, and of pairs near each other
		}
	}
	return int64(numberSize)*(elements+rows*int64(d)) + 8*int64(b)
}
