package target

import (
	"fmt"
	"strings"
)

// Go's assembler for arm64 lacks most vector instructions, so all are written as words. A
// comment gives the text for GNU's assembler, and a test compares the two.

// threes are the instructions vd, vn, vm by name and arrangement.
var threes = map[string]uint32{
	"fadd.4s": 0x4e20d400, "fadd.2d": 0x4e60d400, "fsub.4s": 0x4ea0d400, "fsub.2d": 0x4ee0d400,
	"fmul.4s": 0x6e20dc00, "fmul.2d": 0x6e60dc00, "fdiv.4s": 0x6e20fc00, "fdiv.2d": 0x6e60fc00,
	"fmla.4s": 0x4e20cc00, "fmla.2d": 0x4e60cc00, "fmls.4s": 0x4ea0cc00, "fmls.2d": 0x4ee0cc00,
	"fcmgt.4s": 0x6ea0e400, "fcmge.4s": 0x6e20e400, "fcmeq.4s": 0x4e20e400,
	"fcmgt.2d": 0x6ee0e400, "fcmge.2d": 0x6e60e400, "fcmeq.2d": 0x4e60e400,
	"and.16b": 0x4e201c00, "orr.16b": 0x4ea01c00, "eor.16b": 0x6e201c00, "bic.16b": 0x4e601c00,
	"bsl.16b": 0x6e601c00, "bit.16b": 0x6ea01c00, "bif.16b": 0x6ee01c00,
	"add.4s": 0x4ea08400, "add.2d": 0x4ee08400, "sub.4s": 0x6ea08400, "sub.2d": 0x6ee08400, "sub.8h": 0x6e608400, "addp.4s": 0x4ea0bc00, "mul.4s": 0x4ea09c00,
	"cmgt.4s": 0x4ea03400, "cmgt.2d": 0x4ee03400, "cmeq.4s": 0x6ea08c00, "cmeq.2d": 0x6ee08c00,
	"umax.4s": 0x6ea06400, "umin.4s": 0x6ea06c00, "smax.4s": 0x4ea06400, "smin.4s": 0x4ea06c00,
	"zip1.4s": 0x4e803800, "zip2.4s": 0x4e807800, "zip1.2d": 0x4ec03800, "zip2.2d": 0x4ec07800,
	"uzp1.4s": 0x4e801800, "uzp2.4s": 0x4e805800, "trn1.4s": 0x4e802800, "trn2.4s": 0x4e806800,
}

// twos are other instructions by their text; %[1]d and %[2]d are vd and vn.
var twos = map[string]uint32{
	"mvn v%[1]d.16b, v%[2]d.16b":                 0x6e205800,
	"xtn v%[1]d.2s, v%[2]d.2d":                   0x0ea12800,
	"xtn v%[1]d.4h, v%[2]d.4s":                   0x0e612800,
	"fcvtl v%[1]d.2d, v%[2]d.2s":                 0x0e617800,
	"scvtf v%[1]d.4s, v%[2]d.4s":                 0x4e21d800,
	"fsqrt v%[1]d.4s, v%[2]d.4s":                 0x6ea1f800,
	"fsqrt v%[1]d.2d, v%[2]d.2d":                 0x6ee1f800,
	"fneg v%[1]d.4s, v%[2]d.4s":                  0x6ea0f800,
	"fneg v%[1]d.2d, v%[2]d.2d":                  0x6ee0f800,
	"rev64 v%[1]d.4s, v%[2]d.4s":                 0x4ea00800,
	"cmlt v%[1]d.4s, v%[2]d.4s, #0":              0x4ea0a800,
	"ushll v%[1]d.4s, v%[2]d.4h, #0":             0x2f10a400,
	"ushll v%[1]d.8h, v%[2]d.8b, #0":             0x2f08a400,
	"smull v%[1]d.4s, v%[2]d.4h, v%[2]d.4h":      0x0e60c000, // and vm
	"smull2 v%[1]d.4s, v%[2]d.8h, v%[2]d.8h":     0x4e60c000, // and vm
	"umaxv s%[1]d, v%[2]d.4s":                    0x6eb0a800,
	"cnt v%[1]d.8b, v%[2]d.8b":                   0x0e205800,
	"addv b%[1]d, v%[2]d.8b":                     0x0e31b800,
	"usra v%[1]d.2d, v%[2]d.2d, #31":             0x6f611400,
	"fmov d%[1]d, d%[2]d":                        0x1e604000,
	"fmov w%[1]d, s%[2]d":                        0x1e260000,
	"fmov x%[1]d, d%[2]d":                        0x9e660000,
	"fmov s%[1]d, w%[2]d":                        0x1e270000,
	"fmov d%[1]d, x%[2]d":                        0x9e670000,
	"dup v%[1]d.4s, w%[2]d":                      0x4e040c00,
	"dup v%[1]d.2d, x%[2]d":                      0x4e080c00,
	"mov w%[1]d, v%[2]d.s[2]":                    0x0e143c00,
	"fcvt d%[1]d, s%[2]d":                        0x1e22c000,
	"ld1r {v%[1]d.4s}, [x%[2]d]":                 0x4d40c800,
	"ld1r {v%[1]d.2d}, [x%[2]d]":                 0x4d40cc00,
	"ld1 {v%[1]d.d}[1], [x%[2]d]":                0x4d408400,
	"st1 {v%[1]d.d}[1], [x%[2]d]":                0x4d008400,
	"umull v%[1]d.2d, v%[2]d.2s, v30.2s":         0x2ebec000,
	"ext v%[1]d.16b, v%[2]d.16b, v%[2]d.16b, #8": 0x6e004000, // and vm
}

// word writes an instruction as its bits.
func (l *lowering) word(word uint32, text string, args ...any) {
	l.line("WORD $%#08x // %s", word, fmt.Sprintf(text, args...))
}

// three writes an instruction of three registers.
func (l *lowering) three(name string, d, n, m int) {
	word, ok := threes[name]
	if !ok {
		l.fail("no word for " + name)
	}
	mnemonic, arrangement, _ := strings.Cut(name, ".")
	l.word(word|uint32(m<<16|n<<5|d), "%s v%d.%[3]s, v%[4]d.%[3]s, v%[5]d.%[3]s", mnemonic, d, arrangement, n, m)
}

// two writes an instruction by its text in twos.
func (l *lowering) two(text string, d, n int) {
	word, ok := twos[text]
	if !ok {
		l.fail("no word for " + text)
	}
	if strings.HasPrefix(text, "ext") || strings.HasPrefix(text, "smull") {
		word |= uint32(n << 16)
	}
	l.word(word|uint32(n<<5|d), text, d, n)
}

func (l *lowering) move(d, n int) {
	if d != n {
		l.word(0x4ea01c00|uint32(n<<16|n<<5|d), "mov v%d.16b, v%d.16b", d, n)
	}
}

func (l *lowering) zero(d int) { l.word(0x6f00e400|uint32(d), "movi v%d.2d, #0", d) }

// A lane is one of a register's lanes of 4 or 8 bytes.
type lane struct{ register, index, bytes int }

func (x lane) String() string {
	return fmt.Sprintf("v%d.%s[%d]", x.register, map[int]string{4: "s", 8: "d"}[x.bytes], x.index)
}

// number returns the lane's number in instructions that move lanes.
func (x lane) number() uint32 { return uint32(x.bytes * (2*x.index + 1)) }

// duplicate sets all lanes of d to x.
func (l *lowering) duplicate(d int, x lane) {
	l.word(0x4e000400|x.number()<<16|uint32(x.register<<5|d), "dup v%d.%s, %v", d, map[int]string{4: "4s", 8: "2d"}[x.bytes], x)
}

// insert sets a lane to another one.
func (l *lowering) insert(to, from lane) {
	l.word(0x6e000400|to.number()<<16|uint32(from.bytes*from.index)<<11|uint32(from.register<<5|to.register), "mov %v, %v", to, from)
}

// byLane writes fmla, fmls or fmul with one lane of the second factor.
func (l *lowering) byLane(name string, d, n int, x lane) {
	word := map[string]uint32{"fmla": 0x4f801000, "fmls": 0x4f805000, "fmul": 0x4f809000}[name]
	arrangement, bits := "4s", uint32(x.index&1<<21|x.index>>1<<11)
	if x.bytes == 8 {
		arrangement, bits = "2d", uint32(1<<22|x.index<<11)
	}
	l.word(word|bits|uint32(x.register<<16|n<<5|d), "%s v%d.%[3]s, v%[4]d.%[3]s, %[5]v", name, d, arrangement, n, x)
}

// shift writes ushr, sshr or shl for lanes of the given number of bits.
func (l *lowering) shift(name string, d, n, bits, by int) {
	switch {
	case by == 0:
		l.move(d, n)
		return
	case by >= bits && name == "sshr":
		by = bits
	case by >= bits:
		l.zero(d)
		return
	}
	word, number := map[string]uint32{"ushr": 0x6f000400, "sshr": 0x4f000400, "shl": 0x4f005400}[name], 2*bits-by
	if name == "shl" {
		number = bits + by
	}
	l.word(word|uint32(number<<16|n<<5|d), "%s v%d.%[3]s, v%[4]d.%[3]s, #%[5]d", name, d, map[int]string{32: "4s", 64: "2d"}[bits], n, by)
}

// An address is a register plus an offset, or plus another register times a scale.
type address struct{ base, offset, index, scale int }

// access writes a load of bytes to a vector register, or its store.
func (l *lowering) access(load bool, bytes, v int, a address) {
	word := map[int]uint32{4: 0xbc000000, 8: 0xfc000000, 16: 0x3c800000}[bytes]
	name := "str"
	if load {
		word, name = word|1<<22, "ldr"
	}
	register := fmt.Sprintf("%s%d", map[int]string{4: "s", 8: "d", 16: "q"}[bytes], v)
	word |= uint32(a.base<<5 | v)
	switch {
	case a.scale > 1:
		shift := map[int]int{4: 2, 8: 3, 16: 4}[bytes]
		l.word(word|1<<21|0x7800|uint32(a.index<<16), "%s %s, [x%d, x%d, lsl #%d]", name, register, a.base, a.index, shift)
	case a.scale == 1:
		l.word(word|1<<21|0x6800|uint32(a.index<<16), "%s %s, [x%d, x%d]", name, register, a.base, a.index)
	case a.offset < 0 || a.offset%bytes != 0:
		l.word(word|uint32(a.offset&0x1ff)<<12, "%s %s, [x%d, #%d]", name[:2]+"u"+name[2:], register, a.base, a.offset)
	default:
		before := l.access16
		if bytes == 16 && before.load == load && before.at == len(l.lines) && before.base == a.base && before.offset+16 == a.offset &&
			a.offset <= 1024 && before.v != v {
			l.lines = l.lines[:len(l.lines)-1]
			l.word(map[bool]uint32{false: 0xad000000, true: 0xad400000}[load]|uint32((before.offset/16)<<15|v<<10|a.base<<5|before.v),
				"%s q%d, q%d, [x%d, #%d]", map[bool]string{false: "stp", true: "ldp"}[load], before.v, v, a.base, before.offset)
			l.access16 = access16{} // a third access must not replace this one
			return
		}
		l.word(word|1<<24|uint32(a.offset/bytes)<<10, "%s %s, [x%d, #%d]", name, register, a.base, a.offset)
		if bytes == 16 {
			l.access16 = access16{load, v, a.base, a.offset, len(l.lines)}
		}
	}
}

// An access16 is the last load or store of a whole register: the next one makes a pair with
// it if it follows in memory.
type access16 struct {
	load            bool
	v, base, offset int
	at              int // lines before the next one
}
