package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// winograd emits the transforms of Winograd's F(4×4, 3×3), each from a tile of
// in×in vectors to a tile of out×out.
func winograd(both func(kernel func(s *isa))) {
	both(func(s *isa) { s.tiles("winogradImage", 6, 6, true, false, asFloats, s.imageRow) })
	both(func(s *isa) { s.tiles("winogradGradient", 4, 6, true, false, asFloats, s.gradientRow) })
	both(func(s *isa) { s.tiles("winogradResult", 6, 4, false, true, asFloats, s.resultRow) })
	both(func(s *isa) { s.tiles("winogradWeights", 3, 6, false, false, asFloats, s.weightsRow) })
	both(func(s *isa) { s.tiles("winogradWeightsGradient", 6, 3, false, false, asFloats, s.weightsGradientRow) })
}

// winogradHalves emits the transforms that write bfloat16.
func (s *isa) winogradHalves() {
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

// tiles emits a transform: row maps the columns of the tile, then the rows of the
// result. row may overwrite its argument. Elements are read (masksIn) or written
// (masksOut) only where their word of the mask inside is set; bfloat16 elements are
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
	if !s.few() {
		// Not NOSPLIT: the frame holds a tile.
		s.TEXT(name+"Tile", 0, "func(dst "+to32+", dstAt, dstRow, dstPixel int, src *float32, srcAt, srcRow, srcPixel, channels int, inside *uint32)")
		s.Doc(name + "Tile is the vector form of " + name + "; distances are in bytes, channels a multiple of 16.")
		s.AllocLocal(in * out * s.bytes())
	}
	if form == asFloats {
		s.choose()
	}
	half := NewStackAddr(0)
	dst, dstRow, dstPixel := s.Load(s.Param("dst"), s.GP64()), s.Load(s.Param("dstRow"), s.GP64()), s.Load(s.Param("dstPixel"), s.GP64())
	src, srcRow, srcPixel := s.Load(s.Param("src"), s.GP64()), s.Load(s.Param("srcRow"), s.GP64()), s.Load(s.Param("srcPixel"), s.GP64())
	s.ADDQ(s.memory(s.Param("dstAt")), dst)
	s.ADDQ(s.memory(s.Param("srcAt")), src)
	channels, inside := s.Load(s.Param("channels"), s.GP64()), s.Load(s.Param("inside"), s.GP64())
	constants := map[float64]VecVirtual{}
	for _, c := range tileConstants[transform] {
		constants[c] = s.constant(c)
	}
	low, high, to, row0 := s.GP64(), s.GP64(), s.GP64(), s.GP64()
	s.label("channels")
	s.MOVQ(src, low)
	s.LEAQ(Mem{Base: src, Index: srcRow, Scale: 2}, high)
	s.ADDQ(srcRow, high)
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
				s.VMOVUPS(from, x[r])
			}
		}
		if q < in-1 {
			s.ADDQ(srcPixel, low)
			s.ADDQ(srcPixel, high)
		}
		for r, v := range row(constants, x) {
			s.VMOVUPS(v, half.Offset(s.bytes()*(in*r+q)))
		}
	}
	s.MOVQ(dst, row0)
	for r := range out {
		x := make([]VecVirtual, in)
		for q := range x {
			x[q] = s.vec()
			s.VMOVUPS(half.Offset(s.bytes()*(in*r+q)), x[q])
		}
		s.MOVQ(row0, to)
		for q, v := range row(constants, x) {
			switch {
			case form != asFloats:
				s.storeHalves(v, form, Mem{Base: to})
			case masksOut:
				s.storeWord(v, Mem{Base: inside}.Offset(4*(out*r+q)), Mem{Base: to})
			default:
				s.VMOVUPS(v, Mem{Base: to})
			}
			if q < out-1 {
				s.ADDQ(dstPixel, to)
			}
		}
		if r < out-1 {
			s.ADDQ(dstRow, row0)
		}
	}
	s.ADDQ(Imm(uint64(s.bytes())), src)
	s.ADDQ(Imm(uint64(stored)), dst)
	s.SUBQ(Imm(uint64(s.lanes)), channels)
	s.JG(s.to("channels"))
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

// loadWord reads a vector if the word of the mask is set, else sets it to zero.
func (s *isa) loadWord(from, word Mem, v VecVirtual) {
	if s.wide() {
		k := s.K()
		s.KMOVW(word, k)
		s.VMOVUPS_Z(from, k, v)
		return
	}
	if s.neon() {
		s.VXORPS(v, v, v)
		s.ifSet(word, func() { s.VMOVUPS(from, v) })
		return
	}
	m := s.vec()
	s.VPBROADCASTD(word, m)
	s.VMASKMOVPS(from, m, v)
}

// ifSet emits a jump over the body unless the word is set. It is called once for each word
// of a kernel: the word names the label.
func (s *isa) ifSet(word Mem, body func()) {
	s.CMPL(word, Imm(0))
	label := fmt.Sprintf("unset%d", word.Disp)
	s.JE(s.to(label))
	body()
	s.label(label)
}

// storeWord writes a vector if the word of the mask is set.
func (s *isa) storeWord(v VecVirtual, word, to Mem) {
	if s.wide() {
		k := s.K()
		s.KMOVW(word, k)
		s.VMOVUPS(v, k, to)
		return
	}
	if s.neon() {
		s.ifSet(word, func() { s.VMOVUPS(v, to) })
		return
	}
	m := s.vec()
	s.VPBROADCASTD(word, m)
	s.VMASKMOVPS(v, m, to)
}

// imageRow computes Bᵀ·d.
func (s *isa) imageRow(c map[float64]VecVirtual, d []VecVirtual) []VecVirtual {
	a, b := s.vec(), s.vec()
	s.VMOVAPS(d[4], a)
	s.VFNMADD231PS(d[2], c[4], a) // d4 − 4·d2
	s.VMOVAPS(d[3], b)
	s.VFNMADD231PS(d[1], c[4], b) // d3 − 4·d1
	s.VFMADD213PS(d[4], c[4], d[0])
	s.VFNMADD231PS(d[2], c[5], d[0]) // 4·d0 − 5·d2 + d4
	s.VFMADD231PS(d[1], c[4], d[5])
	s.VFNMADD231PS(d[3], c[5], d[5]) // 4·d1 − 5·d3 + d5
	s.VSUBPS(d[2], d[4], d[4])
	s.VSUBPS(d[1], d[3], d[3])
	s.VADDPS(a, b, d[1])
	s.VSUBPS(b, a, d[2])
	s.VMOVAPS(d[4], a)
	s.VFMADD231PS(d[3], c[2], a)
	s.VFNMADD231PS(d[3], c[2], d[4])
	return []VecVirtual{d[0], d[1], d[2], a, d[4], d[5]}
}

// gradientRow computes A·g, the transpose of resultRow.
func (s *isa) gradientRow(c map[float64]VecVirtual, g []VecVirtual) []VecVirtual {
	even, odd, x, y := s.vec(), s.vec(), s.vec(), s.vec()
	s.VADDPS(g[0], g[2], even)
	s.VADDPS(g[1], g[3], odd)
	s.VADDPS(even, odd, x)
	s.VSUBPS(odd, even, y)
	s.VFMADD213PS(g[0], c[4], g[2]) // g0 + 4·g2
	s.VFMADD231PS(g[3], c[4], g[1]) // g1 + 4·g3
	s.VMOVAPS(g[2], even)
	s.VFMADD231PS(g[1], c[2], even)
	s.VFNMADD231PS(g[1], c[2], g[2])
	return []VecVirtual{g[0], x, y, even, g[2], g[3]}
}

// resultRow computes Aᵀ·m.
func (s *isa) resultRow(c map[float64]VecVirtual, m []VecVirtual) []VecVirtual {
	s1, d1, s2, d2 := s.vec(), s.vec(), s.vec(), s.vec()
	s.VADDPS(m[1], m[2], s1)
	s.VSUBPS(m[2], m[1], d1)
	s.VADDPS(m[3], m[4], s2)
	s.VSUBPS(m[4], m[3], d2)
	s.VADDPS(s1, m[0], m[0])
	s.VADDPS(s2, m[0], m[0])
	s.VADDPS(d1, m[5], m[5])
	s.VFMADD231PS(d2, c[8], m[5])
	s.VFMADD231PS(d2, c[2], d1)
	s.VFMADD231PS(s2, c[4], s1)
	return []VecVirtual{m[0], d1, s1, m[5]}
}

// weightsRow computes G·g.
func (s *isa) weightsRow(c map[float64]VecVirtual, g []VecVirtual) []VecVirtual {
	first, sum, part := s.vec(), s.vec(), s.vec()
	h := []VecVirtual{s.vec(), s.vec(), s.vec(), s.vec()}
	s.VMULPS(c[1./4], g[0], first)
	s.VADDPS(g[0], g[2], sum)
	s.VMULPS(c[1./6], sum, sum)
	s.VMULPS(c[1./6], g[1], part)
	s.VADDPS(sum, part, h[0])
	s.negate(h[0])
	s.VSUBPS(sum, part, h[1])
	s.VMULPS(c[1./6], g[2], sum)
	s.VFMADD231PS(g[0], c[1./24], sum)
	s.VMULPS(c[1./12], g[1], part)
	s.VADDPS(sum, part, h[2])
	s.VSUBPS(part, sum, h[3])
	return []VecVirtual{first, h[0], h[1], h[2], h[3], g[2]}
}

// weightsGradientRow computes Gᵀ·h, the transpose of weightsRow.
func (s *isa) weightsGradientRow(c map[float64]VecVirtual, h []VecVirtual) []VecVirtual {
	s1, d1, s2, d2, w := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	s.VADDPS(h[1], h[2], s1)
	s.VSUBPS(h[1], h[2], d1)
	s.VADDPS(h[3], h[4], s2)
	s.VSUBPS(h[4], h[3], d2)
	s.VMULPS(c[1./6], d1, d1)
	s.VFMADD231PS(d2, c[1./12], d1)
	s.VSUBPS(s1, s2, w)
	s.VFMADD231PS(w, c[1./6], h[5])
	s.VMULPS(c[1./4], h[0], h[0])
	s.VFNMADD231PS(s1, c[1./6], h[0])
	s.VFMADD231PS(s2, c[1./24], h[0])
	return []VecVirtual{h[0], d1, h[5]}
}

// negate changes the sign of v.
func (s *isa) negate(v VecVirtual) {
	s.VSUBPS(v, s.zero(), v)
}
