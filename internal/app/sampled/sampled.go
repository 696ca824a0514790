// Package sampled is about runs that learn from some of their points and place all others
// by what they have learnt (data.train_on). It reads the points to learn from, and in the
// end goes through all of them once more, block by block, and writes the embedding.
//
// How points are placed is in package cne (Embedding.PlaceAll), and how a run goes in the
// program's commands.
package sampled

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne/configs"
	"cne/data"
	"cne/internal/app/rundir"
	"cne/internal/text"
)

// Points are all points of a run, some of which it learns from. Nil are those of a run
// that learns from all.
type Points struct {
	N    int           // of all
	Rows []int         // those that are learnt from, ascending
	Took time.Duration // what placing the others took

	config  *configs.Config
	log     *slog.Logger
	builtin *data.Dataset // nil for files
	files   []fs.FileInfo // of the paths, as they were when they were read
}

// Open reads the points to learn from, by the data.train_on of a configuration.
func Open(ctx context.Context, log *slog.Logger, c *configs.Config) (*data.Dataset, *Points, error) {
	p := &Points{config: c, log: log}
	if i := slices.IndexFunc(c.Data.Path, data.IsCounts); i >= 0 {
		return nil, nil, fmt.Errorf("data.train_on is for points that are read in blocks, but %s holds counts of single-cell sequencing; set it to null, and data.holdout to a share if there are too many cells", c.Data.Path[i])
	}
	if name, ok := strings.CutPrefix(c.Data.Path[0], configs.BuiltinPrefix); ok {
		return p.openBuiltin(ctx, name)
	}
	var err error
	if p.files, err = stat(c.Data.Path); err != nil {
		return nil, nil, err
	}
	o := c.ReadOptions(&c.Data)
	o.Log = log
	if p.N, err = data.Count(ctx, c.Data.Path, o); err == nil {
		err = p.choose(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	set, err := data.OpenRows(ctx, c.Data.Path, o, p.Rows, p.N)
	return set, p, err
}

// openBuiltin is Open for points that are part of the program.
func (p *Points) openBuiltin(ctx context.Context, name string) (*data.Dataset, *Points, error) {
	if d := &p.config.Data; len(d.Path) > 1 || len(d.Labels) > 0 {
		return nil, nil, fmt.Errorf("data.path is %s, which has labels of its own and goes with no other file; leave the other paths and data.labels out", d.Path[0])
	}
	var err error
	if p.builtin, err = data.Builtin(name); err != nil {
		return nil, nil, err
	}
	p.N, _ = p.builtin.Dims()
	if err := p.choose(ctx); err != nil {
		return nil, nil, err
	}
	set, err := p.builtin.Take(p.Rows)
	return set, p, err
}

// choose fills in the rows.
func (p *Points) choose(ctx context.Context) (err error) {
	t := p.config.Data.TrainOn
	switch {
	case t.Number > p.N:
		return fmt.Errorf("data.train_on is %d, but there are %d points; train on fewer, or set it to null for all", t.Number, p.N)
	case t.File == "":
		p.Rows, err = data.DrawRows(p.N, t.Of(p.N), p.config.Seed)
		return err
	}
	if p.Rows, err = readRows(ctx, t.File); err != nil {
		return fmt.Errorf("data.train_on: %w", err)
	}
	if err := data.CheckRows(p.Rows, p.N); err != nil {
		return fmt.Errorf("data.train_on: %s: %w", t.File, err)
	}
	return nil
}

// readRows reads a file with a row on each line, or an array of them.
func readRows(ctx context.Context, path string) ([]int, error) {
	lines, heading, err := data.OpenLines(ctx, path)
	if err != nil {
		return nil, err
	}
	first := 1
	if heading {
		if _, err := strconv.Atoi(lines[0]); err != nil {
			lines, first = lines[1:], 2
		}
	}
	rows := make([]int, len(lines))
	for i, line := range lines {
		if rows[i], err = strconv.Atoi(line); err != nil {
			return nil, fmt.Errorf("%s: line %d (counted from 1) is %s, but must be a row of data.path, counted from 0; write one whole number on each line", path, first+i, text.Quote(line))
		}
	}
	return rows, nil
}

// Others returns how many points are placed in the end.
func (p *Points) Others() int { return p.N - len(p.Rows) }

// Beside returns how many points have to be counted beside those that are learnt from for
// the number of which configs.TrainOn.Of says how many are.
func (p *Points) Beside() int {
	if p.config.Data.TrainOn.File != "" {
		return 0
	}
	return p.Others()
}

// Learnt returns the name, without its ending, of the files in the run folder with the
// points that were learnt from.
func (p *Points) Learnt() string {
	if p == nil {
		return "embedding"
	}
	return rundir.SampleName
}

// RowsFile returns the name of the file in the run folder that says which rows of the
// input those points are.
func (p *Points) RowsFile() string {
	if p == nil {
		return rundir.RowsFile
	}
	return rundir.SampleRowsFile
}

// Key identifies which points are learnt from, and of how many; "" if all are.
func (p *Points) Key() string {
	if p == nil {
		return ""
	}
	hash := sha256.New()
	for _, row := range p.Rows {
		_ = binary.Write(hash, binary.LittleEndian, int64(row)) // a hash never fails
	}
	return fmt.Sprintf("%d of %d, %x", len(p.Rows), p.N, hash.Sum(nil)[:16])
}

func stat(paths []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return nil, fmt.Errorf("the data cannot be read (%w); check data.path", err)
		}
	}
	return infos, nil
}

// checkFiles reports files that are others than those that were learnt from.
func (p *Points) checkFiles() error {
	if p.builtin != nil {
		return nil
	}
	now, err := stat(p.config.Data.Path)
	if err != nil {
		return err
	}
	for i, info := range now {
		if before := p.files[i]; !os.SameFile(before, info) || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) {
			return fmt.Errorf("%s has changed since its points were learnt from; bring it back, and resume the run", p.config.Data.Path[i])
		}
	}
	return nil
}
