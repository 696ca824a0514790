package target

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// conditions are amd64's conditions in the names of arm64.
var conditions = map[string]string{
	"E": "EQ", "EQ": "EQ", "Z": "EQ", "NE": "NE", "NZ": "NE", "L": "LT", "LT": "LT", "GE": "GE", "G": "GT", "GT": "GT", "LE": "LE",
	"S": "MI", "NS": "PL", "B": "LO", "CS": "LO", "AE": "HS", "CC": "HS", "A": "HI", "HI": "HI", "BE": "LS", "LS": "LS",
}

// The flags that an instruction sets as amd64 does: only whether the result is zero; all
// but the carry; or all.
const (
	onlyZero = iota
	signed
	all
)

// condition returns the condition that an instruction reads.
func condition(i *ir.Instruction) string {
	if i.IsBranch && i.IsConditional {
		return conditions[strings.TrimPrefix(i.Opcode, "J")]
	}
	if c, ok := strings.CutPrefix(i.Opcode, "SET"); ok {
		return conditions[c]
	}
	return ""
}

// flags reports whether the flags that an instruction sets are read. It fails if a flag is
// read that arm64 does not set as amd64 does.
func (l *lowering) flags(i *ir.Instruction, same int) (read bool) {
	seen := map[*ir.Instruction]bool{}
	next := slices.Clone(i.Succ)
	for len(next) > 0 {
		i := next[0]
		next = next[1:]
		if i == nil || seen[i] {
			continue
		}
		seen[i] = true
		if c := condition(i); c != "" {
			read = true
			if same == onlyZero && c != "EQ" && c != "NE" || same == signed && strings.Contains("LO HS HI LS", c) {
				l.fail("its flags are not the same")
			}
		}
		if !setsFlags(i) {
			next = append(next, i.Succ...)
		}
	}
	return read
}

func setsFlags(i *ir.Instruction) bool {
	for _, name := range []string{"ADD", "SUB", "AND", "OR", "XOR", "INC", "DEC", "NEG", "IMUL", "SHL", "SHR", "SAR", "CMP", "TEST", "POPCNT", "VPTEST"} {
		if strings.HasPrefix(i.Opcode, name) {
			return true
		}
	}
	return false
}

func (l *lowering) branch(i *ir.Instruction) {
	l.settle()
	label, ok := i.Operands[0].(operand.LabelRef)
	name := "JMP"
	if i.IsConditional {
		name = "B" + condition(i)
	}
	if !ok || name == "B" {
		l.fail("unknown")
	}
	l.line("%s %s", name, label)
}

// memory returns memory in the syntax of Go's assembler.
func (l *lowering) memory(m operand.Mem, bytes int) string {
	switch m.Base {
	case reg.FramePointer:
		return m.Asm()
	case reg.StaticBase:
		return fmt.Sprintf("%d(R%d)", l.tables[m.Symbol.Name]+m.Disp, tableBase)
	}
	disp := m.Disp
	m.Disp = 0
	switch a := l.address(m, bytes); {
	case a.scale == 0:
		return fmt.Sprintf("%d(R%d)", disp, a.base)
	case disp != 0: // the index is added first
		return fmt.Sprintf("%d(R%d)", disp, l.address(m, 0).base)
	default:
		return fmt.Sprintf("(R%d)(R%d<<%d)", a.base, a.index, bits.TrailingZeros(uint(a.scale)))
	}
}

// value returns a register with an operand, or a constant.
func (l *lowering) value(op operand.Op, load string, bytes int) string {
	switch op := op.(type) {
	case operand.Mem:
		l.line("%s %s, R%d", load, l.memory(op, bytes), second)
		return fmt.Sprintf("R%d", second)
	case reg.Register:
		return fmt.Sprintf("R%d", l.gp(op))
	}
	return fmt.Sprintf("$%d", l.constant(op))
}

// loads are the moves to 64 bits, by name and bytes.
var loads = map[string]struct {
	name  string
	bytes int
}{"MOVQ": {"MOVD", 8}, "MOVL": {"MOVWU", 4}, "MOVLQSX": {"MOVW", 4}, "MOVWQZX": {"MOVHU", 2}, "MOVBQZX": {"MOVBU", 1}, "MOVWLZX": {"MOVHU", 2}, "MOVBLZX": {"MOVBU", 1}}

// stores are the moves to memory.
var stores = map[string]struct {
	name  string
	bytes int
}{"MOVQ": {"MOVD", 8}, "MOVL": {"MOVW", 4}, "MOVW": {"MOVH", 2}, "MOVB": {"MOVB", 1}}

// Instructions that change a register: by another operand, by a shift and by 1.
var (
	arithmetic = map[string]string{"ADD": "ADD", "SUB": "SUB", "AND": "AND", "OR": "ORR", "XOR": "EOR"}
	turned     = map[string]string{"SHL": "LSL", "SHR": "LSR", "SAR": "ASR"}
	byOne      = map[string]string{"INC": "ADD", "DEC": "SUB"}
)

// scalar writes an instruction of general registers and reports whether it is one.
func (l *lowering) scalar(i *ir.Instruction, name string, ops []operand.Op) bool {
	// The result, where it is a register.
	d := -1
	if n := len(ops); n > 0 {
		if r, ok := ops[n-1].(reg.Register); ok && r.Kind() == reg.KindGP {
			d = l.gp(r)
		}
	}
	stem, width, bytes, load := "", "", 8, "MOVD"
	if n := len(name) - 1; name[n] == 'Q' || name[n] == 'L' {
		stem = name[:n]
		if name[n] == 'L' {
			width, bytes, load = "W", 4, "MOVWU"
		}
	}
	switch {
	case name == "RET":
		l.line("RET")
		return true
	case name == "PREFETCHT0":
		m := ops[0].(operand.Mem)
		if m.Index != nil && m.Disp == 0 && m.Scale == 1 {
			base, index := l.gp(m.Base), l.gp(m.Index)
			l.word(0xf8a06800|uint32(index<<16|base<<5), "prfm pldl1keep, [x%d, x%d]", base, index)
			return true
		}
		a := l.address(m, 0)
		l.word(0xf9800000|uint32(a.offset/8<<10|a.base<<5), "prfm pldl1keep, [x%d, #%d]", a.base, a.offset)
		return true
	case stem == "CMP":
		l.flags(i, all)
		if _, ok := ops[0].(operand.Constant); ok || operand.IsMem(ops[0]) && operand.IsMem(ops[1]) {
			return false
		}
		first := l.value(ops[0], load, bytes)
		l.line("CMP%s %s, %s", width, l.value(ops[1], load, bytes), first)
		return true
	case stem == "TEST":
		l.flags(i, signed)
		l.line("TST%s %s, R%d", width, l.value(ops[0], load, bytes), d)
		return d >= 0
	case operand.IsMem(ops[len(ops)-1]):
		m := ops[len(ops)-1].(operand.Mem)
		if store := stores[name]; store.name != "" {
			r := l.value(ops[0], "", 0)
			if r[0] == '$' {
				l.line("MOVD %s, R%d", r, second)
				r = fmt.Sprintf("R%d", second)
			}
			l.line("%s %s, %s", store.name, r, l.memory(m, store.bytes))
			return true
		}
		op, by := byOne[stem]+arithmetic[stem], "$1"
		if op == "" || len(ops) > 1 && operand.IsMem(ops[0]) || l.flags(i, onlyZero) {
			return false
		}
		if byOne[stem] == "" {
			by = l.value(ops[0], load, bytes)
		}
		at := l.memory(m, bytes)
		l.line("%s %s, R%d", load, at, scratch)
		l.line("%s%s %s, R%d", op, width, by, scratch)
		l.line("%s R%d, %s", stores["MOV"+name[len(name)-1:]].name, scratch, at)
		return true
	case strings.HasPrefix(name, "SET") && condition(i) != "":
		l.line("CSET %s, R%d", condition(i), scratch)
		l.line("BFI $0, R%d, $8, R%d", scratch, d)
	case loads[name].name != "":
		from := loads[name]
		if m, ok := ops[0].(operand.Mem); ok {
			l.line("%s %s, R%d", from.name, l.memory(m, from.bytes), d)
		} else if ops[0] == ops[1] && name == "MOVQ" {
			return true
		} else if r := l.value(ops[0], "", 0); r[0] != '$' {
			l.line("%s %s, R%d", from.name, r, d)
		} else if c := l.constant(ops[0]); name == "MOVQ" {
			l.line("MOVD $%d, R%d", c, d)
		} else if name == "MOVL" {
			l.line("MOVD $%d, R%d", uint32(c), d)
		} else {
			return false
		}
	case name == "LEAQ":
		m := ops[0].(operand.Mem)
		if at, ok := l.tables[m.Symbol.Name]; ok && m.Index == nil {
			l.line("ADD $%d, R%d, R%d", at+m.Disp, tableBase, d)
			break
		}
		if m.Base == nil || m.Base.Kind() != reg.KindGP {
			return false
		}
		base := l.gp(m.Base)
		if m.Index != nil && m.Scale > 0 {
			l.line("ADD R%d<<%d, R%d, R%d", l.gp(m.Index), bits.TrailingZeros(uint(m.Scale)), base, d)
			base = d
		}
		if m.Disp != 0 || base != d {
			l.line("ADD $%d, R%d, R%d", m.Disp, base, d)
		}
	case stem == "XOR" && ops[0] == ops[1]:
		l.line("MOVD ZR, R%d", d)
		if l.flags(i, signed) {
			l.line("CMP $0, R%d", d)
		}
	case arithmetic[stem] != "" || byOne[stem] != "":
		by, op := "$1", byOne[stem]
		if op == "" {
			by, op = l.value(ops[0], load, bytes), arithmetic[stem]
		}
		same := signed
		if op == "SUB" && stem == "SUB" {
			same = all
		}
		if !l.flags(i, same) {
			l.line("%s%s %s, R%d", op, width, by, d)
		} else if op == "ADD" || op == "SUB" || op == "AND" {
			l.line("%sS%s %s, R%d", op, width, by, d)
		} else {
			l.line("%s%s %s, R%d", op, width, by, d)
			l.line("CMP%s $0, R%d", width, d)
		}
	case turned[stem] != "":
		l.line("%s%s %s, R%d", turned[stem], width, l.value(ops[0], "", 0), d)
		if l.flags(i, onlyZero) {
			l.line("CMP%s $0, R%d", width, d)
		}
	case stem == "NEG":
		s := ""
		if l.flags(i, signed) {
			s = "S"
		}
		l.line("NEG%s%s R%d, R%d", s, width, d, d)
	case stem == "IMUL" && len(ops) == 2:
		by := l.value(ops[0], load, bytes)
		if by[0] == '$' || l.flags(i, all) {
			return false
		}
		l.line("MUL%s %s, R%d", width, by, d)
	case name == "IMUL3Q":
		if l.flags(i, all) {
			return false
		}
		from := l.value(ops[1], load, bytes)
		l.line("MOVD $%d, R%d", l.constant(ops[0]), scratch)
		l.line("MUL R%d, %s, R%d", scratch, from, d)
	case name == "POPCNTL":
		if l.flags(i, all) {
			return false
		}
		from := l.value(ops[0], load, bytes)
		t := l.temporary()
		l.line("FMOVS %s, F%d", from, t)
		l.two("cnt v%[1]d.8b, v%[2]d.8b", t, t)
		l.two("addv b%[1]d, v%[2]d.8b", t, t)
		l.line("FMOVS F%d, R%d", t, d)
	default:
		return false
	}
	if d < 0 {
		l.fail("no register")
	}
	l.written(d)
	return true
}
