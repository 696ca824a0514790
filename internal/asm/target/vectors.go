package target

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// plain maps instructions of three registers to the arm64 instruction that does the same; an
// exclamation mark marks swapped sources.
var plain = map[string]string{
	"VADDPS": "fadd.4s", "VADDPD": "fadd.2d", "VSUBPS": "fsub.4s", "VSUBPD": "fsub.2d", "VMULPS": "fmul.4s", "VMULPD": "fmul.2d",
	"VDIVPS": "fdiv.4s",
	"VANDPS": "and.16b", "VPAND": "and.16b", "VORPS": "orr.16b", "VPOR": "orr.16b",
	"VXORPS": "eor.16b", "VPXOR": "eor.16b",
	"VPADDD": "add.4s", "VPADDQ": "add.2d", "VPSUBD": "sub.4s", "VPSUBW": "sub.8h",
	"VPCMPGTD":  "cmgt.4s",
	"VPMAXUD":   "umax.4s",
	"VUNPCKLPS": "zip1.4s", "VUNPCKHPS": "zip2.4s", "VUNPCKLPD": "zip1.2d", "VUNPCKHPD": "zip2.2d",
	"VMOVHLPS": "zip2.2d!",
}

// single are the instructions of one source.
var single = map[string]string{
	"VCVTDQ2PS": "scvtf v%[1]d.4s, v%[2]d.4s", "VSQRTPS": "fsqrt v%[1]d.4s, v%[2]d.4s",
	"VCVTPS2PD": "fcvtl v%[1]d.2d, v%[2]d.2s",
}

// moves are the loads, stores and moves, by how many bytes they move.
var moves = map[string]int{
	"VMOVUPS": 16, "VMOVAPS": 16, "VMOVUPD": 16,
	"VMOVSD": 8, "VMOVQ": 8, "VMOVSS": 4, "VMOVD": 4,
}

// shifts are the shifts by a constant.
var shifts = map[string]struct {
	name string
	bits int
}{"VPSRLD": {"ushr", 32}, "VPSRLQ": {"ushr", 64}, "VPSRAD": {"sshr", 32}, "VPSLLD": {"shl", 32}, "VPSLLQ": {"shl", 64}}

// vector writes an instruction of vectors and reports whether it is one.
func (l *lowering) vector(name string, ops []operand.Op) bool {
	switch {
	case plain[name] != "":
		l.plain(plain[name], ops)
		return true
	case moves[name] > 0 && len(ops) == 2:
		l.transfer(ops[0], ops[1], moves[name])
		return true
	case strings.HasPrefix(name, "VFMADD"), strings.HasPrefix(name, "VFNMADD"):
		l.fused(name, ops)
		return true
	case name[0] != 'V':
		return false
	}
	// The others use both temporaries.
	l.moveBack(l.at.LiveIn)
	switch {
	case name == "VZEROUPPER":
	case single[name] != "":
		bytes := 16
		if name == "VCVTPS2PD" {
			bytes = 8 // it reads only half of its source
		}
		v := l.source(ops[0], bytes)
		l.two(single[name], l.result(ops[1]), v)
	case shifts[name].bits > 0:
		by, v := l.constant(ops[0]), l.source(ops[1], 16)
		l.shift(shifts[name].name, l.result(ops[2]), v, shifts[name].bits, by)
	case name == "VMAXPS", name == "VMINPS", name == "VMAXPD", name == "VMINPD":
		l.extreme(name, ops)
	case name == "VCMPPS":
		l.compare(l.constant(ops[0]), ops)
	case name == "VBLENDVPS":
		l.choose(ops)
	case name == "VBLENDPS", name == "VPBLENDD":
		by, from := l.constant(ops[0]), [2]int{1: l.source(ops[1], 16), 0: l.source(ops[2], 16)}
		var want [4]lane
		for i := range want {
			want[i] = lane{from[by>>i&1], i, 4}
		}
		l.shuffle(ops[3], want)
	case name == "VSHUFPS":
		by, a, b := l.constant(ops[0]), l.source(ops[1], 16), l.source(ops[2], 16)
		l.shuffle(ops[3], [4]lane{{b, by & 3, 4}, {b, by >> 2 & 3, 4}, {a, by >> 4 & 3, 4}, {a, by >> 6, 4}})
	case name == "VPERMILPS", name == "VPSHUFD":
		by, v := l.constant(ops[0]), l.source(ops[1], 16)
		l.shuffle(ops[2], [4]lane{{v, by & 3, 4}, {v, by >> 2 & 3, 4}, {v, by >> 4 & 3, 4}, {v, by >> 6, 4}})
	case name == "VMOVSHDUP", name == "VMOVSLDUP":
		odd, v := 0, l.source(ops[0], 16)
		if name == "VMOVSHDUP" {
			odd = 1
		}
		l.shuffle(ops[1], [4]lane{{v, odd, 4}, {v, odd, 4}, {v, odd + 2, 4}, {v, odd + 2, 4}})
	case name == "VBROADCASTSS", name == "VPBROADCASTD":
		l.broadcast(ops, 4)
	case name == "VBROADCASTSD", name == "VPBROADCASTQ", name == "VMOVDDUP":
		l.broadcast(ops, 8)
	case name == "VMOVHPS", name == "VMOVHPD":
		l.high(ops)
	case name == "VMOVMSKPS":
		v, r := l.source(ops[0], 16), l.gp(ops[1].(reg.Register))
		l.shift("ushr", 30, v, 32, 31)
		l.two("usra v%[1]d.2d, v%[2]d.2d, #31", 30, 30)
		l.two("mov w%[1]d, v%[2]d.s[2]", scratch, 30)
		l.two("fmov w%[1]d, s%[2]d", r, 30)
		l.line("ORR R%d<<2, R%d", scratch, r)
		l.written(r)
	case name == "VMASKMOVPS":
		l.masked(ops)
	case name == "VPTEST":
		l.flags(l.at, onlyZero)
		l.three("and.16b", 30, l.source(ops[0], 16), l.source(ops[1], 16))
		l.two("umaxv s%[1]d, v%[2]d.4s", 30, 30)
		l.two("fmov w%[1]d, s%[2]d", scratch, 30)
		l.line("CMPW $0, R%d", scratch)
	case name == "VPMULUDQ":
		a, b := l.source(ops[0], 16), l.source(ops[1], 16)
		d := l.result(ops[2])
		l.two("xtn v%[1]d.2s, v%[2]d.2d", 30, a)
		l.two("xtn v%[1]d.2s, v%[2]d.2d", 31, b)
		l.two("umull v%[1]d.2d, v%[2]d.2s, v30.2s", d, 31)
	case name == "VPMOVZXBW":
		v := l.source(ops[0], 8)
		l.two("ushll v%[1]d.8h, v%[2]d.8b, #0", l.result(ops[1]), v)
	case name == "VPMADDWD" && ops[0] == ops[1]: // squares
		v := l.source(ops[0], 16)
		d := l.result(ops[2])
		l.two("smull v%[1]d.4s, v%[2]d.4h, v%[2]d.4h", 30, v)
		l.two("smull2 v%[1]d.4s, v%[2]d.8h, v%[2]d.8h", 31, v)
		l.three("addp.4s", d, 30, 31)
	case name == "VCVTSS2SD":
		v, rest := l.source(ops[0], 4), l.source(ops[1], 16)
		l.two("fcvt d%[1]d, s%[2]d", 30, v)
		l.low(ops[2], rest, 8)
	case len(ops) == 3 && strings.HasPrefix(plain[strings.TrimSuffix(name, "SS")+"PS"], "f"):
		v, rest := l.source(ops[0], 4), l.source(ops[1], 16)
		l.three(plain[strings.TrimSuffix(name, "SS")+"PS"], 30, rest, v)
		l.low(ops[2], rest, 4)
	case name == "VMAXSS", name == "VMINSS":
		v, rest := l.source(ops[0], 4), l.source(ops[1], 16)
		l.greater(name, 30, rest, v)
		l.three("bsl.16b", 30, rest, v)
		l.low(ops[2], rest, 4)
	default:
		return false
	}
	return true
}

// plain writes an instruction that arm64 has.
func (l *lowering) plain(name string, ops []operand.Op) {
	name, swapped := strings.CutSuffix(name, "!")
	if name == "eor.16b" && ops[0] == ops[1] {
		d := l.result(ops[2])
		l.zero(d)
		l.masks[d] = true
		return
	}
	if bytes := map[string]int{"fmul.4s": 4, "fmul.2d": 8}[name]; bytes > 0 {
		for i := range 2 {
			if x, ok := l.laneOf(ops[i], bytes); ok {
				v := l.source(ops[1-i], 16)
				l.byLane("fmul", l.result(ops[2]), v, x)
				return
			}
		}
	}
	a, b := l.source(ops[0], 16), l.source(ops[1], 16)
	mask := strings.HasPrefix(name, "cm") || strings.HasSuffix(name, ".16b") && l.masks[a] && l.masks[b]
	d := l.result(ops[2])
	if swapped {
		a, b = b, a
	}
	l.three(name, d, b, a)
	l.masks[d] = mask
}

// transfer loads, stores or moves bytes.
func (l *lowering) transfer(from, to operand.Op, bytes int) {
	if m, ok := to.(operand.Mem); ok {
		l.store(l.source(from, 16), bytes, m)
		return
	}
	r, _ := to.(reg.Register)
	if r.Kind() == reg.KindGP {
		v, d := l.source(from, 16), l.gp(r)
		l.two(map[int]string{4: "fmov w%[1]d, s%[2]d", 8: "fmov x%[1]d, d%[2]d"}[bytes], d, v)
		l.written(d)
		return
	}
	if m, ok := from.(operand.Mem); ok {
		l.load(m, bytes, l.result(to))
		return
	}
	if r, _ := from.(reg.Register); r.Kind() == reg.KindGP {
		l.two(map[int]string{4: "fmov s%[1]d, w%[2]d", 8: "fmov d%[1]d, x%[2]d"}[bytes], l.result(to), l.gp(r))
		return
	}
	v := l.source(from, 16)
	mask := l.masks[v]
	d := l.result(to)
	switch bytes {
	case 16:
		l.move(d, v)
		l.masks[d] = mask
	case 8:
		l.two("fmov d%[1]d, d%[2]d", d, v)
	default:
		l.fail("unknown")
	}
}

// fused writes a product that is added to, or subtracted from, a sum. If the sum is not the
// destination, the result stays where the sum was as long as it can.
func (l *lowering) fused(name string, ops []operand.Op) {
	form, bytes, arrangement, op := name[len(name)-5:], 4, ".4s", "fmla"
	if form[3:] == "PD" {
		bytes, arrangement = 8, ".2d"
	}
	if strings.HasPrefix(name, "VFN") {
		op = "fmls"
	}
	var x, y, sum operand.Op
	switch form {
	case "231PS", "231PD":
		x, y, sum = ops[1], ops[0], ops[2]
	case "213PS", "213PD":
		x, y, sum = ops[1], ops[2], ops[0]
	default:
		l.fail("unknown")
	}
	other := x
	from, isLane := l.laneOf(y, bytes)
	if !isLane {
		from, isLane = l.laneOf(x, bytes)
		other = y
	}
	var n, m int
	if isLane {
		n = l.source(other, 16)
	} else {
		n, m = l.source(x, 16), l.source(y, 16)
	}
	add := func(d int) {
		if isLane {
			l.byLane(op, d, n, from)
		} else {
			l.three(op+arrangement, d, n, m)
		}
	}
	if sum == ops[2] {
		d := l.source(sum, 16)
		if d == l.number(sum) {
			l.overwrite(d)
		}
		add(d)
		return
	}
	var d int
	if memory, ok := sum.(operand.Mem); ok {
		d = l.temporary()
		l.load(memory, 16, d)
	} else if d = l.source(sum, 16); l.live(l.number(sum)) {
		t := l.temporary()
		if !isLane && t == m {
			t = 61 - t
		}
		l.move(t, d)
		d = t
	} else if d == l.number(sum) {
		l.overwrite(d)
	}
	add(d)
	l.moveBack(l.at.LiveOut)
	l.moved = [2]int{l.result(ops[2]), d}
}

// greater sets the lanes of d where a maximum, or a minimum, takes the first source.
func (l *lowering) greater(name string, d, first, other int) {
	if name[:4] == "VMIN" {
		first, other = other, first
	}
	arrangement := ".4s"
	if name[4:] == "PD" {
		arrangement = ".2d"
	}
	l.three("fcmgt"+arrangement, d, first, other)
}

// extreme writes a maximum or minimum. As on amd64, the result is the second source if either
// is NaN or both are 0.
func (l *lowering) extreme(name string, ops []operand.Op) {
	other, first := l.source(ops[0], 16), l.source(ops[1], 16)
	switch d := l.result(ops[2]); d {
	case other:
		l.greater(name, 30, first, other)
		l.three("bit.16b", d, first, 30)
	case first:
		l.greater(name, 30, first, other)
		l.three("bif.16b", d, other, 30)
	default:
		l.greater(name, d, first, other)
		l.three("bsl.16b", d, first, other)
	}
}

// comparisons are the predicates of VCMPPS, except for whether NaN signals. An exclamation
// mark means the contrary.
var comparisons = [16]string{0: "b==a", 1: "a>b", 2: "a>=b", 4: "b==a!", 5: "a>b!", 6: "a>=b!", 9: "b>=a!", 10: "b>a!", 13: "b>=a", 14: "b>a"}

func (l *lowering) compare(predicate int, ops []operand.Op) {
	is, contrary := strings.CutSuffix(comparisons[predicate&15], "!")
	name := map[string]string{"==": "fcmeq.4s", ">=": "fcmge.4s", ">": "fcmgt.4s"}[strings.Trim(is, "ab")]
	if name == "" {
		l.fail("unknown predicate")
	}
	a, b := l.source(ops[1], 16), l.source(ops[2], 16)
	if is[0] == 'b' {
		a, b = b, a
	}
	d := l.result(ops[3])
	l.three(name, d, a, b)
	if contrary {
		l.two("mvn v%[1]d.16b, v%[2]d.16b", d, d)
	}
	l.masks[d] = true
}

// choose writes a selection by the signs of a mask.
func (l *lowering) choose(ops []operand.Op) {
	mask, yes, no := l.source(ops[0], 16), l.source(ops[1], 16), l.source(ops[2], 16)
	full := l.masks[mask]
	d := l.result(ops[3])
	at := 30
	if full {
		at = mask
	} else {
		l.shift("sshr", at, mask, 32, 31)
	}
	switch d {
	case no:
		l.three("bit.16b", d, yes, at)
	case yes:
		l.three("bif.16b", d, no, at)
	default:
		l.move(d, at)
		l.three("bsl.16b", d, yes, no)
	}
}

// patterns are the lanes that instructions of two sources take; the second source has the
// lanes from 4 on.
var patterns = map[string][4]int{
	"zip1.4s": {0, 4, 1, 5}, "zip2.4s": {2, 6, 3, 7}, "uzp1.4s": {0, 2, 4, 6}, "uzp2.4s": {1, 3, 5, 7},
	"trn1.4s": {0, 4, 2, 6}, "trn2.4s": {1, 5, 3, 7}, "zip1.2d": {0, 1, 4, 5}, "zip2.2d": {2, 3, 6, 7},
}

// shuffle sets the lanes of a register to others.
func (l *lowering) shuffle(to operand.Op, want [4]lane) {
	d := l.result(to)
	from := func(n, m int, pattern [4]int) bool {
		for i, p := range pattern {
			if want[i] != (lane{[2]int{n, m}[p/4], p % 4, 4}) {
				return false
			}
		}
		return true
	}
	first := want[0].register
	switch {
	case from(first, first, [4]int{0, 1, 2, 3}):
		l.move(d, first)
		return
	case want[0] == want[1] && want[1] == want[2] && want[2] == want[3]:
		if first < vectorRegisters {
			l.lanes[d] = want[0]
		} else {
			l.duplicate(d, want[0])
		}
		return
	case from(first, first, [4]int{1, 0, 3, 2}):
		l.two("rev64 v%[1]d.4s, v%[2]d.4s", d, first)
		return
	case from(first, first, [4]int{2, 3, 0, 1}):
		l.two("ext v%[1]d.16b, v%[2]d.16b, v%[2]d.16b, #8", d, first)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		for _, n := range want {
			for _, m := range want {
				if from(n.register, m.register, patterns[name]) {
					l.three(name, d, n.register, m.register)
					return
				}
			}
		}
	}
	// The register with the most lanes in place is moved first.
	base, in := first, -1
	for _, x := range want {
		count := 0
		for i, y := range want {
			if y == (lane{x.register, i, 4}) {
				count++
			}
		}
		if count > in {
			base, in = x.register, count
		}
	}
	t := d
	for i, x := range want {
		if x.register == d && (base != d || x.index != i) {
			t = 30
		}
	}
	l.move(t, base)
	for i, x := range want {
		if x != (lane{base, i, 4}) {
			l.insert(lane{t, i, 4}, x)
		}
	}
	l.move(d, t)
}

// low takes the lowest bytes of a register from register 30, the others from rest.
func (l *lowering) low(to operand.Op, rest, bytes int) {
	d := l.result(to)
	l.move(d, rest)
	l.insert(lane{d, 0, bytes}, lane{30, 0, bytes})
}

// broadcast notes which lane a register stands for.
func (l *lowering) broadcast(ops []operand.Op, bytes int) {
	if m, ok := ops[0].(operand.Mem); ok {
		d := l.result(ops[1])
		l.load(m, bytes, d)
		l.lanes[d] = lane{d, 0, bytes}
		return
	}
	v := l.source(ops[0], 16)
	l.lanes[l.result(ops[1])] = lane{v, 0, bytes}
}

// high loads or stores the upper half of a register.
func (l *lowering) high(ops []operand.Op) {
	if m, ok := ops[1].(operand.Mem); ok {
		v := l.source(ops[0], 16)
		l.two("st1 {v%[1]d.d}[1], [x%[2]d]", v, l.address(m, 0).base)
		return
	}
	v := l.source(ops[1], 16)
	d := l.result(ops[2])
	l.move(d, v)
	l.two("ld1 {v%[1]d.d}[1], [x%[2]d]", d, l.address(ops[0].(operand.Mem), 0).base)
}

// masked loads or stores the lanes under a mask, and touches no other memory.
func (l *lowering) masked(ops []operand.Op) {
	mask := l.source(ops[1], 16)
	bits, has := l.hold(sum{base: mask})
	if !has {
		narrow := mask
		if !l.masks[mask] {
			narrow = 30
			l.two("cmlt v%[1]d.4s, v%[2]d.4s, #0", narrow, mask)
		}
		l.two("xtn v%[1]d.4h, v%[2]d.4s", 30, narrow)
		l.two("fmov x%[1]d, d%[2]d", bits, 30)
	}
	m, load := ops[0].(operand.Mem)
	v := 0
	if !load {
		m = ops[2].(operand.Mem)
		v = l.source(ops[0], 16)
	}
	at := l.address(m, 0)
	if load {
		v = l.result(ops[2])
	}
	part := fmt.Sprintf("part%d", l.labels)
	l.labels++
	l.line("ADD $1, R%d, R%d", bits, second)
	l.line("CBNZ R%d, %s", second, part)
	l.access(load, 16, v, at)
	l.line("JMP %sdone", part)
	l.lines = append(l.lines, part+":")
	l.line("MOVD R%d, R%d", at.base, second)
	name, word := "st1", uint32(0x0d008000)
	if load {
		l.zero(v)
		name, word = "ld1", word|1<<22
	}
	for i := range 4 {
		l.line("TBZ $%d, R%d, 2(PC)", 16*i, bits)
		l.word(word|uint32(i>>1<<30|i&1<<12|second<<5|v), "%s {v%d.s}[%d], [x%d]", name, v, i, second)
		if i < 3 {
			l.line("ADD $4, R%d", second)
		}
	}
	l.lines = append(l.lines, part+"done:")
}
