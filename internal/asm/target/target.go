// Package target is shared by the generators of assembly: avo's instructions for amd64 and
// their translation to arm64.
package target

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// A File is the assembly of one architecture: avo's instructions, and constants.
type File struct {
	*build.Context
	tables   map[string]operand.Mem
	families []family
}

// A family has functions of one signature, which Go calls as one function with their number
// as a further argument, the last.
type family struct {
	name    string
	members []string
}

func NewFile(constraint string) *File {
	f := &File{Context: build.NewContext(), tables: map[string]operand.Mem{}}
	f.ConstraintExpr(constraint + ",!noasm")
	return f
}

// TEXT begins a function. Functions do not keep their arguments.
func (f *File) TEXT(name string, attributes attr.Attribute, signature string) {
	f.Function(name)
	f.Pragma("noescape")
	f.Attributes(attributes)
	f.SignatureExpr(signature)
}

// Member makes a function that was begun the next of a family.
func (f *File) Member(of, name string) {
	i := slices.IndexFunc(f.families, func(x family) bool { return x.name == of })
	if i < 0 {
		i, f.families = len(f.families), append(f.families, family{name: of})
	}
	f.families[i].members = append(f.families[i].members, name)
}

// dispatch adds the functions that choose among the members of families to the assembly, and
// to the declarations in Go if they are not nil. load, compare and branch are the instructions
// of the architecture: to load the number, compare it, and branch if it is at least that.
func (f *File) dispatch(file *ir.File, text, stubs []byte, load, compare, branch string) (asm, declarations []byte) {
	var out bytes.Buffer
	for _, x := range f.families {
		fmt.Fprintf(&out, "\n// %s runs one of its kernels, by its number.\n", x.name)
		first := slices.IndexFunc(file.Functions(), func(k *ir.Function) bool { return k.Name == x.members[0] })
		at := (file.Functions()[first].ArgumentBytes() + 7) &^ 7 // where the number is
		fmt.Fprintf(&out, "TEXT ·%s(SB), NOSPLIT, $0-%d\n\t"+load+"\n", x.name, at+8, at)
		var choose func(lo, hi int)
		choose = func(lo, hi int) {
			if hi-lo == 1 {
				fmt.Fprintf(&out, "\tJMP %s<>(SB)\n", x.members[lo])
				return
			}
			middle := (lo + hi) / 2
			fmt.Fprintf(&out, "\t"+compare+"\n\t%s from%d\n", middle, branch, middle)
			choose(lo, middle)
			fmt.Fprintf(&out, "\nfrom%d:\n", middle)
			choose(middle, hi)
		}
		choose(0, len(x.members))
		for i, name := range x.members {
			text = bytes.Replace(text, []byte("·"+name+"(SB)"), []byte(name+"<>(SB)"), 1)
			stub := regexp.MustCompile(`(?m)^// ` + name + ` .*\n(//.*\n)*func ` + name + `\((.*)\)\n\n?`)
			replacement := ""
			if i == 0 {
				replacement = "// " + x.name + " runs one of its kernels, by its number.\n//\n//go:noescape\nfunc " + x.name + "(${2}, number int)\n\n"
			}
			stubs = stub.ReplaceAll(stubs, []byte(replacement))
		}
	}
	return append(text, out.Bytes()...), append(bytes.TrimSpace(stubs), '\n')
}

// Table returns the address of a read-only table; tables of the same name are emitted once.
func (f *File) Table(name string, words int, word func(i int) operand.Constant) operand.Mem {
	m, ok := f.tables[name]
	if !ok {
		m = f.StaticGlobal(name)
		f.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range words {
			w := word(i)
			f.AddDatum(w.Bytes()*i, w)
		}
		f.tables[name] = m
	}
	return m
}

// compile is avo's pass.Compile with fewRegisters, for one function.
var compile = pass.Concat(
	allocate(pass.InstructionPass(fewRegisters)),
	pass.FunctionPass(pass.EnsureBasePointerCalleeSaved),
	pass.FunctionPass(pass.PruneSelfMoves),
	pass.FunctionPass(pass.RequiredISAExtensions),
)

// allocate returns avo's passes up to register allocation, with more passes after the
// analysis of liveness.
func allocate(afterLiveness ...pass.Interface) pass.Interface {
	return pass.Concat(
		pass.Verify,
		pass.FunctionPass(pass.PruneJumpToFollowingLabel),
		pass.FunctionPass(pass.PruneDanglingLabels),
		pass.FunctionPass(pass.LabelTarget),
		pass.FunctionPass(pass.CFG),
		pass.InstructionPass(pass.ZeroExtend32BitOutputs),
		pass.FunctionPass(pass.Liveness),
		pass.Concat(afterLiveness...),
		pass.FunctionPass(pass.AllocateRegisters),
		pass.FunctionPass(pass.BindRegisters),
		pass.FunctionPass(pass.VerifyAllocation),
	)
}

// fewRegisters keeps the results of instructions without AVX-512 out of the vector registers
// from 16 on, which only AVX-512 has: avo uses them for all instructions.
func fewRegisters(i *ir.Instruction) error {
	for _, isa := range i.ISA {
		if strings.HasPrefix(isa, "AVX512") {
			return nil
		}
	}
	for _, r := range reg.Vector.Registers() {
		if r.PhysicalIndex() >= 16 {
			i.LiveOut.AddRegister(r) // as if it was in use
		}
	}
	return nil
}

// Main writes the kernels of a package, and their declarations, to the folder that is the
// program's argument. The function arm64 makes the kernels for arm64 from amd64's 128-bit
// instructions. If shared is set, all architectures have the declarations for amd64: a kernel
// that one lacks must not be called there.
func Main(amd64, arm64 func(f *File), shared bool) {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . FOLDER")
	}
	folder := os.Args[1]
	write := func(name string, text []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o644)
		}
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
	by := printer.Config{Name: "go generate", Pkg: filepath.Base(folder)}
	f := NewFile("amd64")
	amd64(f)
	file, err := f.Result()
	if err != nil {
		log.Fatal(err)
	}
	for _, kernel := range file.Functions() {
		if err := compile.Execute(&ir.File{Sections: []ir.Section{kernel}}); err != nil {
			log.Fatalf("%s: %v", kernel.Name, err)
		}
	}
	pass.IncludeTextFlagHeader(file)
	text, err := printer.NewGoAsm(by).Print(file)
	name := "stubs_amd64.go"
	if shared {
		name, file.Constraints = "stubs.go", nil
	}
	declarations, err2 := printer.NewStubs(by).Print(file)
	text, declarations = f.dispatch(file, text, declarations, "MOVQ number+%d(FP), AX", "CMPQ AX, $%d", "JGE")
	write("kernels_amd64.s", text, err)
	write(name, declarations, err2)
	f = NewFile("arm64")
	arm64(f)
	other, err := f.Result()
	if err != nil {
		log.Fatal(err)
	}
	text, err = ARM64(other)
	declarations, err2 = printer.NewStubs(by).Print(other)
	text, declarations = f.dispatch(other, text, declarations, "MOVD number+%d(FP), R0", "CMP $%d, R0", "BGE")
	write("kernels_arm64.s", text, err)
	if !shared {
		write("stubs_arm64.go", declarations, err2)
		return
	}
	write("none.s", none("!(amd64 || arm64) || noasm", file.Functions(), nil), nil)
	write("none_arm64.s", none("arm64 && !noasm", file.Functions(), other.Functions()), nil)
}

// none returns the assembly of kernels that crash, for those of all that are not in has.
func none(constraint string, all, has []*ir.Function) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Code generated by go generate. DO NOT EDIT.\n\n//go:build %s\n\n#include \"textflag.h\"\n", constraint)
	for _, kernel := range all {
		if !slices.ContainsFunc(has, func(k *ir.Function) bool { return k.Name == kernel.Name }) {
			fmt.Fprintf(&b, "\nTEXT ·%s(SB), NOSPLIT, $0-0\n\tUNDEF\n", kernel.Name)
		}
	}
	return b.Bytes()
}
