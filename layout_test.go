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
	list, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	within := func(path, folder string) bool { return strings.HasPrefix(path+"/", folder+"/") }
	pipeline := []string{"cne/configs", "cne/model", "cne/train", "cne/simclr"}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		path, imports := fields[0], fields[1:]
		if within(path, "cne/internal/app") || path == "cne/cmd/cne" {
			continue
		}
		for _, i := range imports {
			above := i == "cne" || slices.ContainsFunc(pipeline, func(p string) bool { return within(i, p) })
			data := within(i, "cne/data") && path != "cne/internal/plot" && path != "cne/internal/explorer"
			if within(path, "cne/internal") && (above || data) || i == "cne/configs" {
				t.Errorf("%s imports %s, which only internal/app and the program may", path, i)
			}
		}
	}
}
