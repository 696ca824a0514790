package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// longest is the step of which the run travels in pieces.
const longest = "simclr-run"

// archive is where pack writes.
func (v *visit) archive() string { return v.out + ".tar" }

// pack puts all that is to come back into one file, beside the folder that has it: the
// reports, those of earlier visits among them, and the pieces of the run that is
// furthest, so that the last archive is all that the next visit needs.
func (v *visit) pack() error {
	files := map[string]string{}
	for _, s := range steps {
		for _, folder := range []string{v.resume, v.out} {
			file := filepath.Join(folder, reportName(s.name))
			if _, err := os.Stat(file); err == nil {
				files[filepath.Base(file)] = file
			}
		}
	}
	// A run that is at its end needs no pieces.
	if r := v.earlier(longest); r == nil || r.Left != "" || r.Error != "" {
		p := pieces{run: longest}
		for _, file := range p.found(p.furthest(v.out, v.resume)) {
			files[filepath.Base(file)] = file
		}
	}
	if len(files) == 0 {
		return nil
	}
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := addFile(w, path.Join("out", name), files[name]); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return replace(v.archive(), text.Bytes())
}

// addFile adds a file to an archive.
func addFile(w *tar.Writer, name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// sayPacked says what is to come back.
func (v *visit) sayPacked() {
	info, err := os.Stat(v.archive())
	if err != nil {
		return // there is nothing yet
	}
	how := ""
	if info.Size() > v.part {
		how = fmt.Sprintf(", which is more than the %.4g MiB of -part-mib: bring the files of %s instead", float64(v.part)/mib, v.out)
	}
	fmt.Fprintf(v.stdout, "%s has all that is to come back, %.2f MiB%s\n", v.archive(), float64(info.Size())/mib, how)
}
