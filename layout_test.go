package cne_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports checks who may import whom: below internal, only internal/app knows the
// pipeline; only the program and internal/app know configurations.
func TestImports(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command, which lists the imports, is not there")
	}
	list, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.Module.Path}} {{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		module, path, imports := fields[0], fields[1], fields[2:]
		within := func(path, folder string) bool { return strings.HasPrefix(path+"/", module+"/"+folder+"/") }
		if within(path, "internal/app") || within(path, "cmd/cne") {
			continue
		}
		for _, i := range imports {
			pipeline := slices.ContainsFunc([]string{"configs", "model", "train", "simclr"}, func(f string) bool { return within(i, f) })
			data := within(i, "data") && !within(path, "internal/plot") && !within(path, "internal/explorer")
			if within(path, "internal") && (i == module || pipeline || data) || within(i, "configs") {
				t.Errorf("%s imports %s, which only internal/app and the program may", path, i)
			}
		}
	}
}
