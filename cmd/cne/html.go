package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cne/configs"
	"cne/data"
	"cne/internal/explorer"
	"cne/internal/plot"
	"cne/internal/rundir"
	"cne/internal/text"
)

// pageOf returns the explorer of what a picture shows. The title defaults to a
// name. images may be nil.
func pageOf(s *plot.Scatter, name string, facts []explorer.Fact, images *data.Images) *explorer.Page {
	return &explorer.Page{
		Title:      cmp.Or(s.Title, name),
		Views:      []explorer.View{{Embedding: s.Embedding, Facts: facts}},
		Classes:    s.Classes,
		ClassNames: s.ClassNames,
		Values:     s.Values,
		HeldOut:    s.HeldOut,
		Images:     images,
	}
}

// factsOf returns what metrics.json says of an embedding's quality, for an
// explorer; none for nil.
func factsOf(m *Metrics) []explorer.Fact {
	var facts []explorer.Fact
	add := func(name, format string, value *float64) {
		if value != nil {
			facts = append(facts, explorer.Fact{Name: name, Value: fmt.Sprintf(format, *value)})
		}
	}
	rounded := func(name string, value *float64) {
		if value != nil {
			facts = append(facts, roundedFact(name, *value))
		}
	}
	if m != nil {
		add("kNN recall", "%.3f", m.KNNRecall)
		add("Spearman", "%.3f", m.Spearman)
		add("kNN accuracy", "%.3f", m.Accuracy)
		rounded("partition function", m.PartitionFunction)
		add("KL divergence", "%.3f", m.KL)
		rounded("learnt Z", m.Z)
	}
	return facts
}

// roundedFact returns a figure of any size with three digits.
func roundedFact(name string, value float64) explorer.Fact {
	v, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 3, 64), 64) // of what was a number just now
	return explorer.Fact{Name: name, Value: plot.Number(v)}
}

// imagesOf returns the images that the points of files are, in the order of the
// points, or nil if they are none. It reads the files, whose values are long
// since scaled where they have been points.
func imagesOf(paths []string) (*data.Images, error) {
	if slices.ContainsFunc(paths, data.IsCounts) {
		return nil, nil
	}
	images, err := readImages(paths)
	if errors.Is(err, data.ErrUnsupported) || errors.Is(err, data.ErrShape) {
		return nil, nil
	}
	return images, err
}

// readImages reads images, also those that come with the program.
func readImages(paths []string) (*data.Images, error) {
	if name, ok := strings.CutPrefix(paths[0], configs.BuiltinPrefix); ok && len(paths) == 1 {
		return data.BuiltinImages(name)
	}
	return data.OpenImages(context.Background(), paths, data.ImageOptions{})
}

// runImages returns the images of all points of a run: of those of data.path,
// and behind them of those of data.holdout if these have files of their own.
// They are nil unless all are images of one size.
func runImages(c *configs.Config) (*data.Images, error) {
	images, err := imagesOf(c.Data.Path)
	if images == nil || c.Data.Holdout == nil || len(c.Data.Holdout.Paths) == 0 {
		return images, err
	}
	held, err := imagesOf(c.Data.Holdout.Paths)
	if held == nil || held.H != images.H || held.W != images.W || held.C != images.C {
		return nil, err
	}
	images.Pixels = slices.Concat(images.Pixels, held.Pixels)
	images.N += held.N
	images.Labels, images.Train = nil, nil
	return images, nil
}

// inInputOrder puts the rows of a picture of the training points and, behind
// them, those held out into the order that they had in the input: heldRows says
// which of its rows were held out, in increasing order. Numbers of rows that
// somebody takes from an explorer are then those of the input.
func inInputOrder(s *plot.Scatter, heldRows []int) {
	n := s.Embedding.N
	train, held := 0, n-len(heldRows)
	from := make([]int, n)
	for i := range from {
		if k := held - (n - len(heldRows)); k < len(heldRows) && heldRows[k] == i {
			from[i] = held
			held++
		} else {
			from[i] = train
			train++
		}
	}
	embedding := data.NewMatrix(n, s.Embedding.D)
	for to, i := range from {
		copy(embedding.Row(to), s.Embedding.Row(i))
	}
	s.Embedding = embedding
	s.Classes, s.Values, s.HeldOut = reorder(s.Classes, from), reorder(s.Values, from), reorder(s.HeldOut, from)
}

// reorder returns the values that were at places; nil for nil.
func reorder[T any](values []T, from []int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(from))
	for to, i := range from {
		out[to] = values[i]
	}
	return out
}

// readRows reads the rows of an input of at most n rows from a file that a run
// has written; nil if there is none.
func readRows(path string, n int) ([]int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rows []int
	lines := bufio.NewScanner(f)
	for line := 1; lines.Scan(); line++ {
		if line == 1 && lines.Text() == "row" {
			continue
		}
		row, err := strconv.Atoi(lines.Text())
		if err != nil || row < 0 || row >= n || len(rows) > 0 && row <= rows[len(rows)-1] {
			return nil, fmt.Errorf("%s: line %d is %s, but must be a row of the input, counted from 0, above that before it and below %d; remove the file if it does not belong to the run", path, line, text.Quote(lines.Text()), n)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s, behind row %d: %w; remove the file if it does not belong to the run", path, len(rows), err)
	}
	return rows, nil
}

// drawHTML makes the explorer of a run, if one is asked for. held may be nil,
// and so may m, for a run that was interrupted.
func (t *training) drawHTML(s *plot.Scatter, m *Metrics) error {
	if !t.config.Output.HTML {
		return nil
	}
	// With data.imbalance there are no places for the points that were left out.
	if t.in.rows == nil && t.in.heldRows != nil {
		inInputOrder(s, t.in.heldRows)
	}
	return pageOf(s, t.in.points.Name, factsOf(m), t.pageImages(s.Embedding.N)).Save(t.dir.Path(rundir.PageFile))
}

// pageImages returns the images of the run's n points for a page, nil if there
// are none or none are asked for. They are read once, for all pages.
func (t *training) pageImages(n int) *data.Images {
	in := t.in
	if t.config.Output.HTMLImages && !in.imagesRead {
		rows := in.rows
		if rows != nil {
			rows = slices.Concat(rows, in.heldRows)
		}
		in.images, in.imagesRead = readableImages(t.Log, t.config, n, rows), true
	}
	return in.images
}

// readableImages returns runImages of a run with n points, or those of the given
// rows if rows is not nil. A page without images is better than none: what keeps
// them from being read is said and no error.
func readableImages(log *slog.Logger, c *configs.Config, n int, rows []int) *data.Images {
	images, err := runImages(c)
	if err == nil && images != nil && rows != nil {
		images, err = takeImages(images, rows)
	}
	if err == nil && images != nil && images.N != n {
		err = fmt.Errorf("data.path has %d images now, but the embedding %d points", images.N, n)
	}
	if err != nil {
		log.Warn("the images of the points are left out of the page", "reason", err)
		return nil
	}
	return images
}

// takeImages returns the images of the given rows, without labels.
func takeImages(images *data.Images, rows []int) (*data.Images, error) {
	taken := &data.Images{Name: images.Name, N: len(rows), H: images.H, W: images.W, C: images.C}
	for _, i := range rows {
		if i < 0 || i >= images.N {
			return nil, fmt.Errorf("data.path has %d images now, but row %d was embedded", images.N, i)
		}
		taken.Pixels = append(taken.Pixels, images.Image(i)...)
	}
	return taken, nil
}

// isHTML says whether cne plot writes a page rather than a picture.
func (p *plotting) isHTML() bool {
	return p.html || strings.EqualFold(filepath.Ext(p.output), ".html")
}

// checkHTML finds flags that do not go with a page, or only with one.
func (p *plotting) checkHTML() error {
	if !p.isHTML() {
		if len(p.images) > 0 {
			return errors.New("--images is given, but a picture shows no images; add --html, or an --output that ends in .html")
		}
		return nil
	}
	for _, f := range []struct {
		flag  string
		value float64
	}{{"--point-size", p.plot.PointSize}, {"--width", p.plot.WidthCM}, {"--height", p.plot.HeightCM}} {
		if f.value != 0 {
			return fmt.Errorf("%s is for pictures; a page fits itself to its window, leave the flag out", f.flag)
		}
	}
	return nil
}

// page returns the explorer of an embedding that was read from a file.
func (p *plotting) page(log *slog.Logger, s *plot.Scatter, file string) (*explorer.Page, error) {
	folder := ""
	if file != p.input {
		folder = p.input
	}
	name, err := filepath.Abs(p.input)
	if err != nil {
		return nil, err
	}
	name = data.TrimEnding(filepath.Base(name))
	if folder == "" {
		images, err := p.givenImages(s.Embedding.N)
		return pageOf(s, name, nil, images), err
	}
	// Of a run that left points out, rows says which are there.
	rows, err := readRows(filepath.Join(folder, rundir.RowsFile), math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if s.HeldOut != nil {
		largest := s.Embedding.N
		if rows != nil {
			largest = math.MaxInt32
		}
		path := filepath.Join(folder, rundir.HeldRowsFile)
		heldRows, err := readRows(path, largest)
		if err != nil {
			return nil, err
		}
		if held := s.Embedding.N - slices.Index(s.HeldOut, true); heldRows != nil && len(heldRows) != held {
			return nil, fmt.Errorf("%s has %d rows, but there are %d points that were held out; remove the file if it does not belong to the run", path, len(heldRows), held)
		}
		if rows != nil {
			rows = slices.Concat(rows, heldRows)
		} else if heldRows != nil {
			inInputOrder(s, heldRows)
		}
	}
	images, err := p.givenImages(s.Embedding.N)
	if err != nil {
		return nil, err
	}
	if len(p.images) == 0 {
		c, _, err := configs.Train.Load(configs.Sources{File: filepath.Join(folder, rundir.ConfigFile)})
		switch {
		case err != nil:
			log.Warn("the images of the points are left out of the page", "reason", err)
		case c.Output.HTMLImages:
			images = readableImages(log, c, s.Embedding.N, rows)
		}
	}
	return pageOf(s, name, factsOf(readMetricsFile(filepath.Join(folder, rundir.MetricsFile))), images), nil
}

// noImages is the argument of --images for a page without.
const noImages = "none"

// givenImages returns the images that --images names; nil if it names none.
func (p *plotting) givenImages(n int) (*data.Images, error) {
	if len(p.images) == 0 || slices.Equal(p.images, []string{noImages}) {
		return nil, nil
	}
	images, err := readImages(p.images)
	if err != nil {
		return nil, fmt.Errorf("--images: %w", err)
	}
	if images.N != n {
		return nil, fmt.Errorf("--images names %d images, but the embedding has %d points; give one per point, in the same order", images.N, n)
	}
	return images, nil
}

// readMetricsFile returns the metrics of a run, or nil if they cannot be read:
// the page then does without.
func readMetricsFile(path string) *Metrics {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var m Metrics
	if json.Unmarshal(text, &m) != nil {
		return nil
	}
	return &m
}
