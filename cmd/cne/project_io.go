package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"cne/configs"
	"cne/data"
)

// A pointSource is where points come from, in blocks: see data.Blocks.
type pointSource interface {
	D() int
	Labeled() bool
	Next(dst *data.Matrix) (int, error)
	Labels() []string
	Row(i int) string
	Close() error
}

// open opens the input.
func (p *projection) open(ctx context.Context) (pointSource, error) {
	p.data.Log = p.Log
	if before := p.embedding.Description.Preprocessing; before != nil && before.Counts != nil {
		return p.openCounts(ctx)
	}
	if err := p.checkCounts(); err != nil {
		return nil, err
	}
	p.data = p.embedding.Description.Preprocessing.Reading(p.data)
	builtin := slices.IndexFunc(p.input, func(path string) bool { return strings.HasPrefix(path, configs.BuiltinPrefix) })
	if builtin < 0 {
		return data.OpenBlocks(ctx, p.input, p.data)
	}
	name := p.input[builtin]
	if len(p.input) > 1 {
		return nil, fmt.Errorf("%s goes with no other file; place them one after the other", name)
	}
	if p.data.LabelColumn != "" || len(p.data.Drop) > 0 || p.data.Header != data.HeaderAuto {
		return nil, fmt.Errorf("%s has labels and no columns; leave --label-column, --drop and --header out", name)
	}
	set, err := data.Builtin(strings.TrimPrefix(name, configs.BuiltinPrefix))
	if err != nil {
		return nil, err
	}
	return &datasetSource{set: set}, nil
}

// A datasetSource is a data set in memory, with labels, as a pointSource.
type datasetSource struct {
	set      *data.Dataset
	from, to int // the last block
}

func (s *datasetSource) D() int { return s.set.Points.D }

func (s *datasetSource) Labeled() bool { return true }

func (s *datasetSource) Next(dst *data.Matrix) (int, error) {
	s.from, s.to = s.to, min(s.set.Points.N, s.to+dst.N)
	if s.from == s.to {
		return 0, io.EOF
	}
	copy(dst.X, s.set.Points.X[s.from*dst.D:s.to*dst.D])
	return s.to - s.from, nil
}

func (s *datasetSource) Labels() []string {
	var names []string
	for _, c := range s.set.Labels.Class[s.from:s.to] {
		names = append(names, s.set.Labels.Names[c])
	}
	return names
}

func (s *datasetSource) Row(i int) string { return fmt.Sprintf("%s: row %d", s.set.Name, i+1) }

func (s *datasetSource) Close() error { return nil }

// A positionWriter writes positions block by block, as an array or a table.
type positionWriter struct {
	array *data.NPYWriter
	table *data.CSVWriter
}

func newPositionWriter(path string, w io.WriteSeeker, d int, labelled bool) (*positionWriter, error) {
	var p positionWriter
	var err error
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		p.table, err = data.NewCSVWriter(w, d, labelled)
	} else {
		p.array, err = data.NewNPYWriter(w, d)
	}
	return &p, err
}

func (p *positionWriter) write(m *data.Matrix, labels []string) error {
	if p.array != nil {
		return p.array.Write(m)
	}
	return p.table.Write(m, labels)
}

func (p *positionWriter) close() error {
	if p.array != nil {
		return p.array.Close()
	}
	return p.table.Close()
}
