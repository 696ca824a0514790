package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"cne/internal/app/report"
	"cne/train/quality"
)

// readAgainst reads the comparisons that an argument NAME=FILE[,FILE...] names, a file
// for each run of the group, in their order, into the runs' stops.
func (g *group) readAgainst(arg string) (name string, err error) {
	name, list, ok := strings.Cut(arg, "=")
	if !ok || name == "" {
		return "", fmt.Errorf("%q is not of the form NAME=FILE", arg)
	}
	files := strings.Split(list, ",")
	if len(files) != len(g.runs) {
		return "", fmt.Errorf("%s has %d files, but %s %d folders; give one for each, in their order", name, len(files), g.name, len(g.runs))
	}
	for r, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%w; give a file that cne evaluate --against has written", err)
		}
		var e report.Evaluation
		if err := json.Unmarshal(text, &e); err != nil || len(e.Embeddings) == 0 {
			return "", fmt.Errorf("%s is not what cne evaluate -o writes; make it again", file)
		}
		of := map[string]*quality.Figures{}
		for _, m := range e.Embeddings {
			of[filepath.Base(filepath.Dir(m.Path))] = m.Against
		}
		for i := range g.runs[r].Stops {
			s := &g.runs[r].Stops[i]
			c := of[s.Folder]
			if c == nil || c.KNNRecall == nil {
				return "", fmt.Errorf("%s does not compare %s/embedding.npy with another embedding; evaluate all of the spectrum with --against", file, s.Folder)
			}
			if s.Against == nil {
				s.Against = map[string]*quality.Figures{}
			}
			s.Against[name] = c
		}
	}
	return name, nil
}

// comparisons returns what is shown of each stop when it is compared with others.
func comparisons(names []string) (shown []figure) {
	for _, name := range names {
		shown = append(shown,
			figure{"kNN recall against " + name, false, func(s *stop) *float64 { return s.Against[name].KNNRecall }},
			figure{"Spearman against " + name, false, func(s *stop) *float64 { return s.Against[name].Spearman }})
	}
	return shown
}
