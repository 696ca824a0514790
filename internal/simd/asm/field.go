package main

import (
	. "github.com/mmcloughlin/avo/build"
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
	one, half := s.constant(1), blockTargets/2*4
	for first := 0; first < half; first += s.bytes() {
		pass := func(name string) string { return name + string(rune('0'+first/s.bytes())) }
		source, end := s.pointer("sources"), Load(Param("sources").Len(), GP64())
		LEAQ(Mem{Base: source, Index: end, Scale: 4}, end)
		var position [2][2]VecVirtual // of each half's vector
		var sum [2][3]VecVirtual
		for h := range 2 {
			for c := range 2 {
				position[h][c] = s.vec()
				VMOVUPS(Mem{Base: targets}.Offset(c*2*half+h*half+first), position[h][c])
			}
			for c := range 3 {
				sum[h][c] = s.zero()
			}
		}
		s.label(pass("sources"))
		CMPQ(source, end)
		JGE(s.to(pass("done")))
		var at [3]VecVirtual // the source's position and mass
		for c := range at {
			at[c] = s.vec()
			VBROADCASTSS(Mem{Base: source}.Offset(4*c), at[c])
		}
		var u [2]VecVirtual
		difference := func(h, c int) VecVirtual {
			v := s.vec()
			VSUBPS(at[c], position[h][c], v)
			return v
		}
		var apart [2][2]VecVirtual
		for h := range u {
			u[h] = s.vec()
			VMOVAPS(one, u[h])
			for c := range 2 {
				apart[h][c] = difference(h, c)
				VFMADD231PS(apart[h][c], apart[h][c], u[h])
			}
		}
		inverse := s.vec()
		VMULPS(u[0], u[1], inverse)
		VDIVPS(inverse, one, inverse)
		VMULPS(inverse, u[0], u[0])
		VMULPS(inverse, u[1], u[1])
		for h := range u {
			q, w := u[1-h], s.vec()
			VMULPS(q, at[2], w)
			VADDPS(w, sum[h][0], sum[h][0])
			VMULPS(q, w, w)
			for c := range 2 {
				VFMADD231PS(w, apart[h][c], sum[h][1+c])
			}
		}
		ADDQ(Imm(12), source)
		JMP(s.to(pass("sources")))
		s.label(pass("done"))
		for h := range 2 {
			for c := range 3 {
				VMOVUPS(sum[h][c], Mem{Base: sums}.Offset(c*2*half+h*half+first))
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
	l, loss := s.logarithm(), s.zero()
	s.loop("fx", "loop", func(i Register) {
		var apart [2]VecVirtual
		for half := range apart {
			edge := Mem{Base: edges, Index: i, Scale: 8}.Offset(half * 4 * s.lanes)
			apart[half] = s.gatherPairs(points, edge, 8)
			VSUBPS(s.gatherPairs(points, edge.Offset(4), 8), apart[half], apart[half])
		}
		x, y := s.deinterleave(apart[0], apart[1], even, odd)
		w, u, f := s.load(weights, i), s.vec(), s.vec()
		VMOVAPS(l.one, u)
		VFMADD231PS(x, x, u)
		VFMADD231PS(y, y, u)
		VDIVPS(u, w, f)
		VMULPS(f, x, x)
		VMOVUPS(x, at(fx, i))
		VMULPS(f, y, y)
		VMOVUPS(y, at(fy, i))
		VFMADD231PS(l.of(u), w, loss)
	})
	s.sum(loss, "loss")
	s.end()
}
