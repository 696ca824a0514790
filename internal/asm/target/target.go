// Package target is shared by the generators of assembly: avo's instructions for amd64 and
// their translation to arm64.
package target

import (
	"log"
	"os"
	"path/filepath"
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
	tables map[string]operand.Mem
}

func NewFile(constraint string) *File {
	f := &File{build.NewContext(), map[string]operand.Mem{}}
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
// instructions.
func Main(amd64, arm64 func(f *File)) {
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
	write("kernels_amd64.s", text, err)
	text, err = printer.NewStubs(by).Print(file)
	write("stubs_amd64.go", text, err)
	if arm64 == nil {
		return
	}
	f = NewFile("arm64")
	arm64(f)
	if file, err = f.Result(); err != nil {
		log.Fatal(err)
	}
	text, err = ARM64(file)
	write("kernels_arm64.s", text, err)
	text, err = printer.NewStubs(by).Print(file)
	write("stubs_arm64.go", text, err)
}
