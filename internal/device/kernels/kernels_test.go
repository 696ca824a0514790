package kernels_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/internal/device/kernels"
)

func TestFind(t *testing.T) {
	file, params, ok := kernels.Find("sum")
	if file != "elementwise.ptx" || params != 4 || !ok {
		t.Errorf("sum is in %s, with %d parameters (%t)", file, params, ok)
	}
	if !strings.Contains(kernels.PTX(file), ".entry sum(") {
		t.Error("the file does not define it")
	}
	if _, _, ok := kernels.Find("su"); ok {
		t.Error("there is a kernel su")
	}
	if names := kernels.Names(); !slices.Contains(names, "sum") || !slices.IsSorted(names) {
		t.Errorf("the kernels are %v", names)
	}
	kernels.Add("more.ptx", ".visible .entry test_of_add(\n\t.param .u64 a,\n\t.param .u32 b\n)\n{\n}\n")
	if file, params, ok := kernels.Find("test_of_add"); file != "more.ptx" || params != 2 || !ok || !strings.HasPrefix(kernels.PTX(file), ".visible") {
		t.Errorf("what was added is in %s, with %d parameters (%t)", file, params, ok)
	}
}

// sources returns the module's parsed Go files without tests.
func sources(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "runs"):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, files
}

// TestLaunchesAgree compares every launch that names its kernel with the kernel's
// definition, and checks that every kernel is named somewhere.
func TestLaunchesAgree(t *testing.T) {
	set, files := sources(t)
	named := map[string]bool{}
	launches := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil {
					named[s] = true
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || method.Sel.Name != "Launch" && method.Sel.Name != "Each" || len(call.Args) < 2 {
				return true
			}
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			launches++
			at := set.Position(call.Pos())
			_, params, found := kernels.Find(name)
			switch given := len(call.Args) - 2; {
			case !found:
				t.Errorf("%s: there is no kernel %s", at, name)
			case given != params && !call.Ellipsis.IsValid():
				t.Errorf("%s: kernel %s gets %d arguments, and has %d parameters", at, name, given, params)
			}
			return true
		})
	}
	if launches == 0 {
		t.Error("no launch was found")
	}
	for _, name := range kernels.Names() {
		if !named[name] && !slices.ContainsFunc(patterns(name), func(p string) bool { return named[p] }) && !strings.HasPrefix(name, "test_") {
			t.Errorf("kernel %s is named nowhere, so that nothing can launch it", name)
		}
	}
}

// patterns returns the formats that give a name with a number, or any, in it.
func patterns(name string) []string {
	formats := []string{regexp.MustCompile(`_(any|[0-9])$`).ReplaceAllString(name, "_%s")}
	for _, at := range regexp.MustCompile(`[0-9]+`).FindAllStringIndex(name, -1) {
		formats = append(formats, name[:at[0]]+"%d"+name[at[1]:])
	}
	return formats
}

// TestParametersAreWords checks that kernels take only integers and pointers: a launch
// passes each in 64 bits.
func TestParametersAreWords(t *testing.T) {
	entry := regexp.MustCompile(`(?s)\.entry (\w+)\((.*?)\)`)
	kind := regexp.MustCompile(`\.param\s+(?:\.align \d+ )?\.(\w+)`)
	seen := map[string]bool{}
	for _, name := range kernels.Names() {
		file, _, _ := kernels.Find(name)
		if seen[file] {
			continue
		}
		seen[file] = true
		for _, e := range entry.FindAllStringSubmatch(kernels.PTX(file), -1) {
			for _, p := range kind.FindAllStringSubmatch(e[2], -1) {
				if !slices.Contains([]string{"u32", "u64"}, p[1]) {
					t.Errorf("%s: kernel %s has a parameter of type %s", file, e[1], p[1])
				}
			}
		}
	}
}
