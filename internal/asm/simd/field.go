package main

import (
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// blockTargets is the number of targets of the kernel field.
const blockTargets = 32

// field adds up what sources do to 32 targets. One division serves a target of the first
// half and one of the second. AVX2 takes 16 targets at a time.
func (s *isa) field() {
	s.begin("field", "(sums, targets, sources []float32)", "is the vector form of field.")
	sums, targets := s.pointer("sums"), s.pointer("targets")
	half := blockTargets / 2 * 4
	for first := 0; first < half; first += s.bytes() {
		pass := func(name string) string { return name + string(rune('0'+first/s.bytes())) }
		source, end := s.pointer("sources"), s.Load(s.Param("sources").Len(), s.GP64())
		s.LEAQ(Mem{Base: source, Index: end, Scale: 4}, end)
		var position [2][2]Op // of each half's vector
		var sum [2][3]VecVirtual
		for h := range 2 {
			for c := range 2 {
				at := Mem{Base: targets}.Offset(c*2*half + h*half + first)
				position[h][c] = at
				if !s.few() {
					v := s.vec()
					s.VMOVUPS(at, v)
					position[h][c] = v
				}
			}
			for c := range 3 {
				sum[h][c] = s.vec()
				s.VMOVUPS(Mem{Base: sums}.Offset(c*2*half+h*half+first), sum[h][c])
			}
		}
		s.label(pass("sources"))
		s.CMPQ(source, end)
		s.JGE(s.to(pass("done")))
		var at [3]VecVirtual // the source's position and mass
		for c := range at {
			at[c] = s.vec()
			s.VBROADCASTSS(Mem{Base: source}.Offset(4*c), at[c])
		}
		var u [2]VecVirtual
		difference := func(h, c int) VecVirtual {
			v := s.vec()
			s.VSUBPS(position[h][c], at[c], v)
			return v
		}
		var apart [2][2]VecVirtual
		for h := range u {
			u[h] = s.vec()
			s.VMOVUPS(s.number(1), u[h])
			for c := range 2 {
				apart[h][c] = difference(h, c)
				s.VFMADD231PS(apart[h][c], apart[h][c], u[h])
			}
		}
		product, inverse := s.vec(), s.loaded(1)
		s.VMULPS(u[0], u[1], product)
		s.VDIVPS(product, inverse, inverse)
		s.VMULPS(inverse, u[0], u[0])
		s.VMULPS(inverse, u[1], u[1])
		for h := range u {
			q, w := u[1-h], s.vec()
			s.VMULPS(q, at[2], w)
			s.VADDPS(w, sum[h][0], sum[h][0])
			s.VMULPS(q, w, w)
			for c := range 2 {
				s.VFNMADD231PS(w, apart[h][c], sum[h][1+c])
			}
		}
		s.ADDQ(Imm(12), source)
		s.JMP(s.to(pass("sources")))
		s.label(pass("done"))
		for h := range 2 {
			for c := range 3 {
				s.VMOVUPS(sum[h][c], Mem{Base: sums}.Offset(c*2*half+h*half+first))
			}
		}
	}
	s.end()
}

// attract computes what edges do to their heads.
func (s *isa) attract() {
	s.begin("attract", "(fx, fy, points []float32, edges []uint64, weights []float32) (loss float32)", "is the vector form of attract.")
	fx, fy, points, edges, weights := s.pointer("fx"), s.pointer("fy"), s.pointer("points"), s.pointer("edges"), s.pointer("weights")
	even, odd := s.deinterleaver()
	l, loss := s.logarithm(), s.parted()
	s.loopParts("fx", "loop", 1, func(i Register, part int) {
		var apart [2]VecVirtual
		for half := range apart {
			edge := Mem{Base: edges, Index: i, Scale: 8}.Offset(half * 4 * s.lanes)
			apart[half] = s.gatherPairs(points, edge, 8)
			s.VSUBPS(s.gatherPairs(points, edge.Offset(4), 8), apart[half], apart[half])
		}
		x, y := s.deinterleave(apart[0], apart[1], even, odd)
		w, u, f := s.load(weights, i), s.vec(), s.vec()
		s.VMOVAPS(l.one, u)
		s.VFMADD231PS(x, x, u)
		s.VFMADD231PS(y, y, u)
		s.VDIVPS(u, w, f)
		s.VMULPS(f, x, x)
		s.VMOVUPS(x, at(fx, i))
		s.VMULPS(f, y, y)
		s.VMOVUPS(y, at(fy, i))
		s.VFMADD231PS(l.of(u), w, loss[part])
	})
	s.sum(loss, "loss")
	s.end()
}
