package configs

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// CheckFiles refuses files that are missing or cannot be opened, by key, before any of
// them is read.
func (c *Config) CheckFiles() error {
	var held []string
	if c.Data.Holdout != nil {
		held = c.Data.Holdout.Paths
	}
	var graph []string
	if c.Graph.File != nil {
		graph = []string{*c.Graph.File}
	}
	var rows []string
	if t := c.Data.TrainOn; t != nil && t.File != "" {
		rows = []string{t.File}
	}
	for _, x := range []struct {
		key   string
		paths []string
	}{
		{"data.labels", c.Data.Labels},
		{"data.holdout", held},
		{"data.holdout_labels", c.Data.HoldoutLabels},
		{"data.train_on", rows},
		{"graph.file", graph},
		{"data.path", c.Data.Path},
	} {
		if err := checkReadable(x.key, x.paths); err != nil {
			return err
		}
	}
	return nil
}

// SplitColumn takes apart what names a column of the points: the path of a file with a line
// or value for each point, FILE:COLUMN for a column of any table, or a column of the table
// of the points, for which file is "". column is "" for a whole file.
func SplitColumn(spec string) (file, column string) {
	isFile := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	if isFile(spec) {
		return spec, ""
	}
	if at := strings.LastIndexByte(spec, ':'); at > 0 && isFile(spec[:at]) {
		return spec[:at], spec[at+1:]
	}
	return "", spec
}

// checkReadable refuses paths, which a key names, of files that are missing or cannot be
// opened.
func checkReadable(key string, paths []string) error {
	if len(paths) > 0 && strings.HasPrefix(paths[0], BuiltinPrefix) {
		return nil
	}
	i := slices.IndexFunc(paths, func(path string) bool { return readable(path) != nil })
	if i < 0 {
		return nil
	}
	err := readable(paths[i])
	switch key {
	case "graph.file":
		return fmt.Errorf("graph.file cannot be used: %w", err)
	case "data.labels", "data.holdout_labels":
		return fmt.Errorf("%w (%s)", err, key)
	}
	return fmt.Errorf("the data cannot be read (%w); check the path (%s)", err, key)
}

// readable says why a file cannot be opened. Of what is no file, such as a pipe, only
// whether it is there is known without taking something away.
func readable(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// CheckFiles is that of Config; key is what names the images, such as data.path.
func (d *ImageData) CheckFiles(key string) error {
	return cmp.Or(checkReadable("data.labels", d.Labels), checkReadable(key, d.Path))
}
