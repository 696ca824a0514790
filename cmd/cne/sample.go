package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne"
	"cne/configs"
	"cne/data"
	"cne/data/counts"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/text"
	"cne/model"
)

// A sample is the points that a run trains on where these are not all (data.sample). All
// others are placed when it has trained. A nil *sample is all points.
type sample struct {
	n    int           // number of all points
	rows []int         // of those that are trained on, ascending
	took time.Duration // what placing the others took

	config  *configs.Config
	builtin *data.Dataset // all points; nil for files
	files   []fs.FileInfo // of the paths, as they were when they were read
}

// readSample reads the points to train on.
func readSample(ctx context.Context, log *slog.Logger, c *configs.Config) (set *data.Dataset, s *sample, err error) {
	s = &sample{config: c}
	if i := slices.IndexFunc(c.Data.Path, counts.Is); i >= 0 {
		return nil, nil, fmt.Errorf("data.sample: got counts of single-cell sequencing in %s, want points that are read in blocks; if there are too many cells, set data.holdout to a share instead", c.Data.Path[i])
	}
	o := c.ReadOptions(&c.Data)
	o.Log = log
	builtin := strings.HasPrefix(c.Data.Path[0], configs.BuiltinPrefix)
	if builtin {
		in := &inputs{log: log}
		if s.builtin, err = in.read(ctx, &c.Data, o, "data.path", "data.labels"); err == nil {
			s.n, _ = s.builtin.Dims()
		}
	} else if s.files, err = stat(c.Data.Path); err == nil {
		s.n, err = file.Count(ctx, c.Data.Path, o)
	}
	if err == nil {
		err = s.choose(ctx)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case builtin:
		set, err = s.builtin.Take(s.rows)
	default:
		set, err = file.ReadRows(ctx, c.Data.Path, o, s.rows, s.n)
	}
	return set, s, err
}

// choose fills in the rows.
func (s *sample) choose(ctx context.Context) (err error) {
	t := s.config.Data.TrainOn
	switch {
	case t.Number > s.n:
		return fmt.Errorf("data.sample: got %d, want at most the %d points that there are", t.Number, s.n)
	case t.File == "":
		s.rows, err = data.DrawRows(s.n, t.Of(s.n), s.config.Embed.Seed)
		return err
	}
	if s.rows, err = readRows(ctx, t.File); err != nil {
		return fmt.Errorf("data.sample: %w", err)
	}
	if err := data.CheckRows(s.rows, s.n); err != nil {
		return fmt.Errorf("data.sample: %s: %w", t.File, err)
	}
	return nil
}

// readRows reads a file with a row on each line, or an array of them.
func readRows(ctx context.Context, path string) ([]int, error) {
	lines, heading, err := file.ReadLines(ctx, path)
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
			return nil, fmt.Errorf("%s: line %d (counted from 1): got %s, want a row of data.path, counted from 0", path, first+i, text.Quote(line))
		}
	}
	return rows, nil
}

// others returns how many points are placed in the end.
func (s *sample) others() int { return s.n - len(s.rows) }

// uncounted returns how many points have to be added to those that are trained on for the
// number of which configs.TrainOn.Of says how many are.
func (s *sample) uncounted() int {
	if s.config.Data.TrainOn.File != "" {
		return 0
	}
	return s.others()
}

// names returns the names of the files in the run folder with the positions of the points
// that were trained on, without ending, and with their rows.
func (s *sample) names() (positions, rows string) {
	if s == nil {
		return "embedding", rundir.RowsFile
	}
	return rundir.SampleName, rundir.SampleRowsFile
}

// key identifies which points are trained on, and of how many; "" if all are.
func (s *sample) key() string {
	if s == nil {
		return ""
	}
	hash := sha256.New()
	for _, row := range s.rows {
		_ = binary.Write(hash, binary.LittleEndian, int64(row)) // a hash never fails
	}
	return fmt.Sprintf("%d of %d, %x", len(s.rows), s.n, hash.Sum(nil)[:16])
}

func stat(paths []string) ([]fs.FileInfo, error) {
	infos := make([]fs.FileInfo, len(paths))
	for i, path := range paths {
		var err error
		if infos[i], err = os.Stat(path); err != nil {
			return nil, fmt.Errorf("data.path: %w", err)
		}
	}
	return infos, nil
}

// checkFiles reports files that are others than those that were read.
func (s *sample) checkFiles() error {
	if s.builtin != nil {
		return nil
	}
	now, err := stat(s.config.Data.Path)
	if err != nil {
		return err
	}
	for i, info := range now {
		if before := s.files[i]; !os.SameFile(before, info) || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) {
			return fmt.Errorf("%s has changed since its points were trained on; bring it back, and resume the run", s.config.Data.Path[i])
		}
	}
	return nil
}

// open opens all points, to be prepared as those that were trained on.
func (s *sample) open(ctx context.Context, before *model.Preprocessing) (file.Rows, error) {
	if s.builtin != nil {
		return file.Of(s.builtin), nil
	}
	o := s.config.Data.Options()
	o.Labels = nil
	return file.Open(ctx, s.config.Data.Path, before.Reading(o))
}

// placeOthers goes through all points and writes their positions into the run folder, in
// their order: of those that were trained on as they are, of the others as they are placed.
// It writes the forms that the configuration asks for, each complete or not at all, and the
// names of the points. If all were trained on it does nothing.
func (t *training) placeOthers(ctx context.Context) error {
	s := t.in.sample
	if s == nil {
		return nil
	}
	begun := time.Now()
	defer func() { s.took = time.Since(begun) }()
	t.Log.Info("placing the other points", "points", s.others())
	err := s.checkFiles()
	if err == nil {
		err = t.writeAll(ctx, s)
	}
	bad := new(cne.PointError)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted while the other points were placed; those trained on are in " + t.dir.Path(rundir.SampleName+".npy"))
	case errors.As(err, &bad):
		return fmt.Errorf("%s: %s; fix the values, and resume the run", bad.Name, bad.Fault)
	}
	return err
}

func (t *training) writeAll(ctx context.Context, s *sample) error {
	d, out, e := &t.config.Data, &t.config.Output, t.embedded
	rows, err := s.open(ctx, e.Description.Preprocessing)
	if err != nil {
		return err
	}
	defer rows.Close()
	var given []string // labels of all points, if they are not those of rows
	if len(d.Labels) > 0 && (out.CSV || out.Parquet) {
		if given, err = file.ReadLabels(ctx, d.Labels, s.n); err != nil {
			return err
		}
	}
	var names []string
	if d.Names != nil {
		if _, names, err = rundir.ReadColumn(ctx, rundir.TableOf(t.config), *d.Names, s.n, nil); err != nil {
			return fmt.Errorf("data.names: %w", err)
		}
	}
	var all *data.Matrix // for Parquet, which is written as a whole
	var labels []string
	if out.Parquet {
		all = data.NewMatrix(s.n, e.Dim())
	}
	files := []string{t.dir.Path("embedding.npy")}
	if out.CSV {
		files = append(files, t.dir.Path("embedding.csv"))
	}
	if err := writePositions(files, e.Dim(), given != nil || rows.Labeled(), func(write positionWriter) error {
		n, tell := 0, t.ProgressLogger("placing the other points")
		err := e.ProjectRows(ctx, rows, cne.Projection{Trained: s.rows}, func(b *cne.ProjectedBlock) error {
			if n += b.Positions.N; n > s.n {
				return nil // which is told in the end
			}
			if given != nil {
				b.Labels = given[b.First:n]
			}
			if all != nil {
				copy(all.X[b.First*all.D:], b.Positions.X)
				labels = append(labels, b.Labels...)
			}
			tell(n, s.n)
			return write(b.Positions, b.Labels)
		})
		if err == nil && n != s.n {
			err = fmt.Errorf("data.path: got %d points, want %d as when the run began; bring the others back, and resume the run", n, s.n)
		}
		if err == nil {
			err = s.checkFiles()
		}
		return err
	}); err != nil {
		return err
	}
	if err := t.dir.WriteNames(names); err != nil || all == nil {
		return err
	}
	return t.dir.WriteFile("embedding.parquet", func(w io.Writer) error {
		var named *data.Labels
		if labels != nil {
			named = data.NewLabels(labels)
		}
		return file.WriteParquet(w, all, named, names)
	})
}
