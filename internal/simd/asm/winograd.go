package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// winograd emits the transforms of Winograd's F(4×4, 3×3), each of a tile of
// in×in vectors to one of out×out.
func winograd() {
	both(func(s *isa) { s.tiles("winogradImage", 6, 6, true, false, asFloats, s.imageRow) })
	both(func(s *isa) { s.tiles("winogradGradient", 4, 6, true, false, asFloats, s.gradientRow) })
	both(func(s *isa) { s.tiles("winogradResult", 6, 4, false, true, asFloats, s.resultRow) })
	both(func(s *isa) { s.tiles("winogradWeights", 3, 6, false, false, asFloats, s.weightsRow) })
	both(func(s *isa) { s.tiles("winogradWeightsGradient", 6, 3, false, false, asFloats, s.weightsGradientRow) })
	s := avx512
	s.tiles("winogradImage", 6, 6, true, false, asPairs, s.imageRow)
	for _, form := range []tileForm{asFirst, asSecond} {
		s.tiles("winogradImage", 6, 6, true, false, form, s.imageRow)
		s.tiles("winogradGradient", 4, 6, true, false, form, s.gradientRow)
		s.tiles("winogradWeights", 3, 6, false, false, form, s.weightsRow)
	}
}

// A tileForm says how the elements of a transform are written.
type tileForm int

// As they are, or in bfloat16: as pairs of channels, or as the first or second halves of
// words.
const (
	asFloats tileForm = iota
	asPairs
	asFirst
	asSecond
)

// tiles emits a transform: row maps the columns of the tile, and then the rows
// of what that gives. It may overwrite what it is given. The elements read, or
// written, are those under the mask inside, one word for each; those in bfloat16 are
// all written.
func (s *isa) tiles(name string, in, out int, masksIn, masksOut bool, form tileForm, row func(constants map[float64]VecVirtual, x []VecVirtual) []VecVirtual) {
	transform, to32 := name, "*float32"
	name += [...]string{"", "Pairs", "First", "Second"}[form]
	stored := s.bytes() // of a vector
	if form != asFloats {
		to32 = "*uint32"
	}
	if form == asPairs {
		stored /= 2
	}
	if s.wide() {
		// Not NOSPLIT: the frame holds a tile.
		TEXT(name+"Tile", 0, "func(dst "+to32+", dstAt, dstRow, dstPixel int, src *float32, srcAt, srcRow, srcPixel, channels int, inside *uint32)")
		Doc(name + "Tile is the vector form of " + name + "; distances are in bytes, channels a multiple of 16.")
		AllocLocal(in * out * s.bytes())
	}
	if form == asFloats {
		s.choose()
	}
	half := NewStackAddr(0)
	dst, dstRow, dstPixel := Load(Param("dst"), GP64()), Load(Param("dstRow"), GP64()), Load(Param("dstPixel"), GP64())
	src, srcRow, srcPixel := Load(Param("src"), GP64()), Load(Param("srcRow"), GP64()), Load(Param("srcPixel"), GP64())
	ADDQ(memory(Param("dstAt")), dst)
	ADDQ(memory(Param("srcAt")), src)
	channels, inside := Load(Param("channels"), GP64()), Load(Param("inside"), GP64())
	constants := map[float64]VecVirtual{}
	for _, c := range tileConstants[transform] {
		constants[c] = s.constant(c)
	}
	low, high, to, row0 := GP64(), GP64(), GP64(), GP64()
	s.label("channels")
	MOVQ(src, low)
	LEAQ(Mem{Base: src, Index: srcRow, Scale: 2}, high)
	ADDQ(srcRow, high)
	for q := range in {
		x := make([]VecVirtual, in)
		for r := range x {
			from := Mem{Base: low}
			if r >= 3 {
				from.Base = high
			}
			if r%3 > 0 {
				from.Index, from.Scale = srcRow, uint8(r%3)
			}
			x[r] = s.vec()
			if masksIn {
				s.loadWord(from, Mem{Base: inside}.Offset(4*(in*r+q)), x[r])
			} else {
				VMOVUPS(from, x[r])
			}
		}
		if q < in-1 {
			ADDQ(srcPixel, low)
			ADDQ(srcPixel, high)
		}
		for r, v := range row(constants, x) {
			VMOVUPS(v, half.Offset(s.bytes()*(in*r+q)))
		}
	}
	MOVQ(dst, row0)
	for r := range out {
		x := make([]VecVirtual, in)
		for q := range x {
			x[q] = s.vec()
			VMOVUPS(half.Offset(s.bytes()*(in*r+q)), x[q])
		}
		MOVQ(row0, to)
		for q, v := range row(constants, x) {
			switch {
			case form != asFloats:
				storeHalves(v, form, Mem{Base: to})
			case masksOut:
				s.storeWord(v, Mem{Base: inside}.Offset(4*(out*r+q)), Mem{Base: to})
			default:
				VMOVUPS(v, Mem{Base: to})
			}
			if q < out-1 {
				ADDQ(dstPixel, to)
			}
		}
		if r < out-1 {
			ADDQ(dstRow, row0)
		}
	}
	ADDQ(Imm(uint64(s.bytes())), src)
	ADDQ(Imm(uint64(stored)), dst)
	SUBQ(Imm(uint64(s.lanes)), channels)
	JG(s.to("channels"))
	s.end()
}

// tileConstants are what the transforms multiply by.
var tileConstants = map[string][]float64{
	"winogradImage":           {2, 4, 5},
	"winogradGradient":        {2, 4},
	"winogradResult":          {2, 4, 8},
	"winogradWeights":         {1. / 4, 1. / 6, 1. / 12, 1. / 24},
	"winogradWeightsGradient": {1. / 4, 1. / 6, 1. / 12, 1. / 24},
}

// loadWord reads a vector if the word of the mask is set, and zeros else.
func (s *isa) loadWord(from, word Mem, v VecVirtual) {
	if s.wide() {
		k := K()
		KMOVW(word, k)
		VMOVUPS_Z(from, k, v)
		return
	}
	m := s.vec()
	VPBROADCASTD(word, m)
	VMASKMOVPS(from, m, v)
}

// storeWord writes a vector if the word of the mask is set.
func (s *isa) storeWord(v VecVirtual, word, to Mem) {
	if s.wide() {
		k := K()
		KMOVW(word, k)
		VMOVUPS(v, k, to)
		return
	}
	m := s.vec()
	VPBROADCASTD(word, m)
	VMASKMOVPS(v, m, to)
}

// imageRow computes Bᵀ·d.
func (s *isa) imageRow(c map[float64]VecVirtual, d []VecVirtual) []VecVirtual {
	a, b := s.vec(), s.vec()
	VMOVAPS(d[4], a)
	VFNMADD231PS(d[2], c[4], a) // d4 − 4·d2
	VMOVAPS(d[3], b)
	VFNMADD231PS(d[1], c[4], b) // d3 − 4·d1
	VFMADD213PS(d[4], c[4], d[0])
	VFNMADD231PS(d[2], c[5], d[0]) // 4·d0 − 5·d2 + d4
	VFMADD231PS(d[1], c[4], d[5])
	VFNMADD231PS(d[3], c[5], d[5]) // 4·d1 − 5·d3 + d5
	VSUBPS(d[2], d[4], d[4])
	VSUBPS(d[1], d[3], d[3])
	VADDPS(a, b, d[1])
	VSUBPS(b, a, d[2])
	VMOVAPS(d[4], a)
	VFMADD231PS(d[3], c[2], a)
	VFNMADD231PS(d[3], c[2], d[4])
	return []VecVirtual{d[0], d[1], d[2], a, d[4], d[5]}
}

// gradientRow computes A·g, the transpose of resultRow.
func (s *isa) gradientRow(c map[float64]VecVirtual, g []VecVirtual) []VecVirtual {
	even, odd, x, y := s.vec(), s.vec(), s.vec(), s.vec()
	VADDPS(g[0], g[2], even)
	VADDPS(g[1], g[3], odd)
	VADDPS(even, odd, x)
	VSUBPS(odd, even, y)
	VFMADD213PS(g[0], c[4], g[2]) // g0 + 4·g2
	VFMADD231PS(g[3], c[4], g[1]) // g1 + 4·g3
	VMOVAPS(g[2], even)
	VFMADD231PS(g[1], c[2], even)
	VFNMADD231PS(g[1], c[2], g[2])
	return []VecVirtual{g[0], x, y, even, g[2], g[3]}
}

// resultRow computes Aᵀ·m.
func (s *isa) resultRow(c map[float64]VecVirtual, m []VecVirtual) []VecVirtual {
	s1, d1, s2, d2 := s.vec(), s.vec(), s.vec(), s.vec()
	VADDPS(m[1], m[2], s1)
	VSUBPS(m[2], m[1], d1)
	VADDPS(m[3], m[4], s2)
	VSUBPS(m[4], m[3], d2)
	VADDPS(s1, m[0], m[0])
	VADDPS(s2, m[0], m[0])
	VADDPS(d1, m[5], m[5])
	VFMADD231PS(d2, c[8], m[5])
	VFMADD231PS(d2, c[2], d1)
	VFMADD231PS(s2, c[4], s1)
	return []VecVirtual{m[0], d1, s1, m[5]}
}

// weightsRow computes G·g.
func (s *isa) weightsRow(c map[float64]VecVirtual, g []VecVirtual) []VecVirtual {
	first, sum, part := s.vec(), s.vec(), s.vec()
	h := []VecVirtual{s.vec(), s.vec(), s.vec(), s.vec()}
	VMULPS(c[1./4], g[0], first)
	VADDPS(g[0], g[2], sum)
	VMULPS(c[1./6], sum, sum)
	VMULPS(c[1./6], g[1], part)
	VADDPS(sum, part, h[0])
	s.negate(h[0])
	VSUBPS(sum, part, h[1])
	VMULPS(c[1./6], g[2], sum)
	VFMADD231PS(g[0], c[1./24], sum)
	VMULPS(c[1./12], g[1], part)
	VADDPS(sum, part, h[2])
	VSUBPS(part, sum, h[3])
	return []VecVirtual{first, h[0], h[1], h[2], h[3], g[2]}
}

// weightsGradientRow computes Gᵀ·h, the transpose of weightsRow.
func (s *isa) weightsGradientRow(c map[float64]VecVirtual, h []VecVirtual) []VecVirtual {
	s1, d1, s2, d2, w := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	VADDPS(h[1], h[2], s1)
	VSUBPS(h[1], h[2], d1)
	VADDPS(h[3], h[4], s2)
	VSUBPS(h[4], h[3], d2)
	VMULPS(c[1./6], d1, d1)
	VFMADD231PS(d2, c[1./12], d1)
	VSUBPS(s1, s2, w)
	VFMADD231PS(w, c[1./6], h[5])
	VMULPS(c[1./4], h[0], h[0])
	VFNMADD231PS(s1, c[1./6], h[0])
	VFMADD231PS(s2, c[1./24], h[0])
	return []VecVirtual{h[0], d1, h[5]}
}

// negate changes the sign of v.
func (s *isa) negate(v VecVirtual) {
	VSUBPS(v, s.zero(), v)
}
