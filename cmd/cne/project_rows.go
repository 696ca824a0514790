package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cne/data/counts"
	"cne/data/file"
	"cne/model"
)

// A rowRange is a range of the rows of the input, counted from 0.
type rowRange struct {
	first int
	end   int // the row after the last; 0: to the end of the input
}

// parseRows parses a range such as 0:1000, :1000 or 1000:. The second number is excluded.
func parseRows(s string) (r rowRange, ok bool) {
	first, end, ok := strings.Cut(s, ":")
	number := func(s string) (n int) {
		if s != "" && ok {
			var err error
			n, err = strconv.Atoi(s)
			ok = err == nil && n >= 0
		}
		return n
	}
	r = rowRange{number(first), number(end)}
	return r, ok && (end == "" || r.first < r.end)
}

func (r rowRange) String() string {
	if r.end == 0 {
		return fmt.Sprintf("%d:", r.first)
	}
	return fmt.Sprintf("%d:%d", r.first, r.end)
}

// beyond is the error of a range that an input of n rows does not have.
func (r rowRange) beyond(n int) error {
	return fmt.Errorf("--rows: got %v, want rows of the %d points, counted from 0", r, n)
}

// open opens the points, from the first row of the range on.
func (p *projectRun) open(ctx context.Context, before *model.Preprocessing) (file.Rows, error) {
	rows, err := p.openAll(ctx, before)
	if err != nil || p.rows == (rowRange{}) {
		return rows, err
	}
	n, known := rows.Len() // known for arrays, before any point is placed
	if !known || p.rows.end <= n {
		if n, err = rows.Skip(p.rows.first); err == nil && n == p.rows.first {
			return rows, nil
		}
	}
	if err == nil {
		err = p.rows.beyond(n)
	}
	rows.Close()
	return nil, err
}

// openAll opens all points.
func (p *projectRun) openAll(ctx context.Context, before *model.Preprocessing) (file.Rows, error) {
	o := p.reading
	o.Log = p.Log
	if before != nil && o.Layer == "" {
		o.Layer, o.Obsm = before.Layer, before.Obsm
		if before.Counts != nil && slices.ContainsFunc(p.input, func(path string) bool { return !counts.Is(path, o) }) {
			o.Layer = "" // new cells may have their counts elsewhere
		}
	}
	switch at := slices.IndexFunc(p.input, func(path string) bool { return counts.Is(path, o) }); {
	case before != nil && before.Counts != nil:
		o.Columns, o.Name = before.Counts.Names, p.input[0]
		c, err := counts.Open(ctx, p.input, o)
		if err != nil {
			return nil, err
		}
		if missing := before.Counts.Missing(c); missing > 0 {
			p.Log.Warn("genes of the model are missing, and are taken for zeros", "missing", missing, "of", len(before.Counts.Genes))
		}
		return before.Counts.Rows(c), nil
	case at >= 0:
		return nil, fmt.Errorf("%s: got counts of single cells, want points as in training", p.input[at])
	}
	return file.Open(ctx, p.input, before.Reading(o))
}
