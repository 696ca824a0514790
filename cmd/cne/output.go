package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne/internal/rundir"
	"cne/internal/text"
)

// checkEnding returns an error unless the file that a flag names has one of the
// endings.
func checkEnding(flag, path string, endings ...string) error {
	if slices.Contains(endings, strings.ToLower(filepath.Ext(path))) {
		return nil
	}
	return fmt.Errorf("%s is %s, but must end in %s", flag, text.Quote(path), strings.Join(endings, " or "))
}

// checkOutput finds what would keep the file that a flag names from being
// written, and whether it would replace an input, before any work is done.
func checkOutput(flag, path string, inputs ...string) error {
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is %s, but there is no folder %s; make it, or choose another file", flag, path, folder)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is %s, which is not a regular file; choose another", flag, path)
	}
	for _, input := range inputs {
		if rundir.SameFile(input, path) {
			return fmt.Errorf("%s would be replaced by the results (%s); choose another file for them", input, flag)
		}
	}
	return nil
}

// encodeJSON writes a value for people to read, too.
func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
