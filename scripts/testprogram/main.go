// Command testprogram builds one program of the device tests of several packages, for
// machines without Go. go test -c makes a program for each package, all of which have
// most of their code in common, and which are too large to travel together.
//
//	testprogram -o FILE [-ldflags FLAGS] PACKAGE...
//	FILE PACKAGE [-test.run …]
//
// Packages are folders of this module, such as model/op, and must not be programs; what
// is built runs the tests and benchmarks of the package that its first argument names,
// as go test would. In it are those of which the names contain Device, with
// the build tag cu.
//
// It compiles a module that differs from this one in that files named *_test.go belong
// to their packages (see -overlay in go help build), or, where they are of an external
// test package, to a package in a folder of its own.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	out := flag.String("o", "", "`file` to write")
	ldflags := flag.String("ldflags", "", "for go build")
	flag.Parse()
	if *out == "" || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: testprogram -o FILE [-ldflags FLAGS] PACKAGE...")
		os.Exit(2)
	}
	if err := build(*out, *ldflags, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testprogram:", err)
		os.Exit(1)
	}
}

// build writes the program.
func build(out, ldflags string, packages []string) (err error) {
	work, err := os.MkdirTemp("", "testprogram")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	overlay, program, err := overlayOf(packages)
	if err != nil {
		return err
	}
	// The folder of the program is one that the module does not have.
	const folder = "scripts/testprogram/made"
	file := filepath.Join(work, "main.go")
	if err := os.WriteFile(file, program, 0o666); err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	overlay[filepath.Join(here, folder, "main.go")] = file
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	list := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(list, text, 0o666); err != nil {
		return err
	}
	// The linker sets this in what go test builds: testing.Testing depends on it.
	ldflags = strings.TrimSpace(ldflags + " -X testing.testBinary=1")
	cmd := exec.Command("go", "build", "-tags", "cu", "-overlay", list, "-ldflags", ldflags, "-o", out, "./"+folder)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// A listed is a package as go list -json prints it.
type listed struct {
	Dir, ImportPath, Name     string
	TestGoFiles, XTestGoFiles []string
}

// declared finds the tests and benchmarks of a file that are wanted.
var declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Za-z0-9_]*Device[A-Za-z0-9_]*)\(`)

// overlayOf returns which files of the module stand for which, and the text of the
// program's main package.
func overlayOf(packages []string) (overlay map[string]string, program []byte, err error) {
	args := []string{"list", "-tags", "cu", "-json=Dir,ImportPath,Name,TestGoFiles,XTestGoFiles"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	list := exec.Command("go", args...)
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	overlay = map[string]string{}
	var imports, tables bytes.Buffer
	for i, d := 0, json.NewDecoder(bytes.NewReader(text)); ; i++ {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if p.Name == "main" {
			return nil, nil, fmt.Errorf("%s is a program, whose tests cannot be part of another", packages[i])
		}
		var tests, benchmarks bytes.Buffer
		for _, part := range []struct{ files, folder, name string }{
			{strings.Join(p.TestGoFiles, " "), "", fmt.Sprintf("p%d", i)},
			{strings.Join(p.XTestGoFiles, " "), "external_tests", fmt.Sprintf("x%d", i)},
		} {
			used := false
			for _, name := range strings.Fields(part.files) {
				source := filepath.Join(p.Dir, name)
				overlay[filepath.Join(p.Dir, part.folder, "tests_"+strings.TrimSuffix(name, "_test.go")+".go")] = source
				text, err := os.ReadFile(source)
				if err != nil {
					return nil, nil, err
				}
				for _, m := range declared.FindAllSubmatch(text, -1) {
					to := &tests
					if bytes.HasPrefix(m[1], []byte("Benchmark")) {
						to = &benchmarks
					}
					fmt.Fprintf(to, "{%q, %s.%s},\n", m[1], part.name, m[1])
					used = true
				}
			}
			if used {
				path := p.ImportPath
				if part.folder != "" {
					path += "/" + part.folder
				}
				fmt.Fprintf(&imports, "%s %q\n", part.name, path)
			}
		}
		fmt.Fprintf(&tables, "%q: {\n[]testing.InternalTest{\n%s},\n[]testing.InternalBenchmark{\n%s},\n},\n", packages[i], &tests, &benchmarks)
	}
	program, err = format.Source(fmt.Appendf(nil, skeleton, &imports, &tables))
	return overlay, program, err
}

// skeleton is the program without its imports and its tests.
const skeleton = `package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

%s)

var packages = map[string]struct {
	tests      []testing.InternalTest
	benchmarks []testing.InternalBenchmark
}{
%s}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: tests PACKAGE [-test.run ...]")
		os.Exit(2)
	}
	// A test that starts itself again names no package.
	const variable = "TESTPROGRAM_PACKAGE"
	name := os.Getenv(variable)
	if !strings.HasPrefix(os.Args[1], "-") {
		name = os.Args[1]
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	p, ok := packages[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "there are no tests of %%q in this program\n", name)
		os.Exit(2)
	}
	os.Setenv(variable, name)
	match := func(pattern, name string) (bool, error) { return regexp.MatchString(pattern, name) }
	testing.Main(match, p.tests, p.benchmarks, nil)
}
`
