package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/bench/figures"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/plot"
	"cne/train/quality"
)

// A spectrum is what is needed of a spectrum.json.
type spectrum struct {
	Axis  string `json:"axis"`
	Stops []stop `json:"embeddings"`
}

// A stop is one embedding of a spectrum. Against says how alike it and another embedding of
// its points are, by the name of the other.
type stop struct {
	rundir.StopMetrics
	Against map[string]*quality.Figures `json:"-"`
}

// A group is the runs of one name.
type group struct {
	name string
	runs []spectrum
}

// A figure is something that is shown of each stop.
type figure struct {
	name        string
	logarithmic bool
	value       func(*stop) *float64
}

// qualities are the figures that a spectrum has by itself.
var qualities = []figure{
	{"partition function", true, func(s *stop) *float64 { return s.PartitionFunction }},
	{"kNN recall", false, func(s *stop) *float64 { return s.KNNRecall }},
	{"Spearman correlation", false, func(s *stop) *float64 { return s.Spearman }},
	{"KL divergence", false, func(s *stop) *float64 { return s.KL }},
}

// spectra puts several spectra that cne spectrum has made at the same values into one
// picture and one table, with the mean and the standard deviation over the runs of a
// name.
//
// With -against OTHER=FILE[,FILE...], once or several times, it shows instead how alike
// the embeddings of one name are to another program's, as in Figures S4c-f. Each FILE
// belongs to a folder, in their order, and was written by
//
//	cne evaluate -o FILE --against OTHER.npy FOLDER/*/embedding.npy
func spectra(flags *flag.FlagSet) drawing {
	var against []string
	flags.Func("against", "`OTHER=FILE,...`: compare with the embedding OTHER instead, by files of cne evaluate (repeatable)", func(arg string) error {
		against = append(against, arg)
		return nil
	})
	return func(_ context.Context, args []string) (string, *plot.Curves, error) {
		groups, shown, err := readSpectra(args, against)
		if err != nil {
			return "", nil, err
		}
		return spectraTable(groups, shown), curves(groups, shown), nil
	}
}

// readSpectra reads the spectra that the arguments name and what is shown of them.
func readSpectra(args []string, against []string) ([]group, []figure, error) {
	if len(args) == 0 {
		return nil, nil, errors.New("give at least one NAME=FOLDER")
	}
	var groups []group
	for _, arg := range args {
		g, err := readGroup(arg)
		if err != nil {
			return nil, nil, err
		}
		groups = append(groups, g)
		if first, other := &groups[0].runs[0], &g.runs[0]; !other.matches(first) {
			return nil, nil, fmt.Errorf("%s and %s are not at the same values of the same axis; give spectra that are", groups[0].name, g.name)
		}
	}
	shown := qualities
	if len(against) > 0 {
		if len(groups) > 1 {
			return nil, nil, errors.New("give one NAME=FOLDER,... with -against")
		}
		var others []string
		for _, arg := range against {
			other, err := groups[0].readAgainst(arg)
			if err != nil {
				return nil, nil, err
			}
			others = append(others, other)
		}
		shown = comparisons(others)
	}
	return groups, shown, nil
}

// readGroup reads the spectra that an argument names.
func readGroup(arg string) (group, error) {
	name, folders, ok := strings.Cut(arg, "=")
	if !ok || name == "" {
		return group{}, fmt.Errorf("%q is not of the form NAME=FOLDER", arg)
	}
	g := group{name: name}
	for folder := range strings.SplitSeq(folders, ",") {
		path := filepath.Join(folder, "spectrum.json")
		text, err := os.ReadFile(path)
		if err != nil {
			return group{}, fmt.Errorf("%w; give the folder of a finished spectrum", err)
		}
		var s spectrum
		if err := json.Unmarshal(text, &s); err != nil || s.Axis == "" || len(s.Stops) == 0 {
			return group{}, fmt.Errorf("%s is not what cne spectrum writes; make the spectrum again", path)
		}
		if len(g.runs) > 0 && !s.matches(&g.runs[0]) {
			return group{}, fmt.Errorf("%s is not at the values of the others named %s; give runs that differ only in their seed", path, name)
		}
		g.runs = append(g.runs, s)
	}
	return g, nil
}

// matches reports whether two spectra are at the same values.
func (s *spectrum) matches(t *spectrum) bool {
	return s.Axis == t.Axis && slices.EqualFunc(s.Stops, t.Stops, func(a, b stop) bool { return a.Value == b.Value })
}

// values returns a figure of stop i for the runs that have it.
func (g *group) values(i int, value func(*stop) *float64) []float64 {
	var x []float64
	for r := range g.runs {
		if v := value(&g.runs[r].Stops[i]); v != nil {
			x = append(x, *v)
		}
	}
	return x
}

func spectraTable(groups []group, shown []figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | | runs |", groups[0].runs[0].Axis)
	for _, f := range shown {
		fmt.Fprintf(&b, " %s |", f.name)
	}
	b.WriteString("\n|---|---|---|" + strings.Repeat("---|", len(shown)) + "\n")
	for i, s := range groups[0].runs[0].Stops {
		for _, g := range groups {
			fmt.Fprintf(&b, "| %s | %s | %d |", s.Value, g.name, len(g.runs))
			for _, f := range shown {
				fmt.Fprintf(&b, " %s |", figures.MeanText(g.values(i, f.value)))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// curves returns the picture: a panel for each figure shown that some runs have.
func curves(groups []group, shown []figure) *plot.Curves {
	c := &plot.Curves{}
	place, label, logarithmic := abscissa(groups)
	for _, f := range shown {
		panel, some := plot.Panel{XLabel: label, LogX: logarithmic, YLabel: f.name, LogY: f.logarithmic}, false
		for _, g := range groups {
			series := plot.Series{Name: g.name, Marker: true}
			for i := range g.runs[0].Stops {
				mean, sd := math.NaN(), math.NaN()
				if v := g.values(i, f.value); len(v) > 0 {
					mean, sd = figures.MeanSD(v)
					some = true
				}
				low, high := mean-sd, mean+sd
				if f.logarithmic && low <= 0 { // for which there is no place
					low, high = math.NaN(), math.NaN()
				}
				series.X, series.Y = append(series.X, place(&g.runs[0], i)), append(series.Y, mean)
				series.Low, series.High = append(series.Low, low), append(series.High, high)
			}
			if len(g.runs) == 1 {
				series.Low, series.High = nil, nil
			}
			panel.Series = append(panel.Series, series)
		}
		if f.logarithmic && label == zBar {
			// The partition function is to be Z̄.
			equal := plot.Series{Name: "equal to Z̄", Dashed: true}
			for _, s := range groups[0].runs[0].Stops {
				equal.X, equal.Y = append(equal.X, *s.ZBar), append(equal.Y, *s.ZBar)
			}
			panel.Series = append(panel.Series, equal)
		}
		if some {
			c.Panels = append(c.Panels, panel)
		}
	}
	return c
}

// zBar is the name of an axis.
const zBar = "Z̄"

// abscissa says where the stops stand on the horizontal axis, and its name: at
// their Z̄ if all have one, otherwise at their values, or at their numbers if one
// of the values is a word.
func abscissa(groups []group) (place func(s *spectrum, i int) float64, label string, logarithmic bool) {
	byZBar := true
	for _, g := range groups {
		byZBar = byZBar && !slices.ContainsFunc(g.runs[0].Stops, func(s stop) bool { return s.ZBar == nil })
	}
	if byZBar {
		return func(s *spectrum, i int) float64 { return *s.Stops[i].ZBar }, zBar, true
	}
	first := groups[0].runs[0]
	x, words := make([]float64, len(first.Stops)), make([]string, len(first.Stops))
	numbers := true
	for i, s := range first.Stops {
		var err error
		x[i], err = strconv.ParseFloat(s.Value, 64)
		numbers, words[i] = numbers && err == nil, s.Value
	}
	if !numbers {
		return func(_ *spectrum, i int) float64 { return float64(i + 1) }, first.Axis + ": " + strings.Join(words, ", "), false
	}
	return func(_ *spectrum, i int) float64 { return x[i] }, first.Axis, first.Axis == "m"
}

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
