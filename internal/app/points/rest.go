package points

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"cne"
	"cne/data"
	"cne/data/file"
	"cne/internal/app/rundir"
	"cne/internal/kind"
	"cne/internal/selection"
	"cne/model"
)

// PlaceRest reads all points of data.path again and writes the positions of the training
// points and of the rest into the folder, with their names, in the formats of the
// configuration. It returns the positions of the held-out rows, or nil. progress is called
// as points are placed.
func (in *Inputs) PlaceRest(ctx context.Context, e *cne.Embedding, dir *rundir.Dir, on *model.Device,
	progress func(done, all int)) (held *data.Matrix, err error) {
	defer kind.Catch(&err)
	d := &in.Config.Data
	in.log.Info("placing the other points", "points", in.Rest())
	in.checkFiles()
	if in.Config.Model.HasTable() {
		kind.Check(e.UseDevice(on))
	}
	o := d.Reading()
	given := o.Labels
	o.Labels = nil
	rows := kind.Got(file.Open(ctx, d.Path, e.Description.Preprocessing.Reading(o)))
	defer rows.Close()
	var labels []string // of all points, if they have files of their own
	if len(given) > 0 {
		labels = kind.Got(file.ReadLabels(ctx, given, in.N, o.NA))
	}
	if d.Holdout.Share > 0 {
		held = data.NewMatrix(len(in.Division.Held), e.Dim())
	}
	names, err := rundir.TableOf(in.Config).ReadNames(ctx, d.Names, in.Total(), nil)
	kind.Checkf(err, "data.names: %w", err)
	names = selection.Pick(names, in.Division.Placed(in.N))
	if in.ListsRows() {
		kind.Check(dir.WriteRows(rundir.RowsFile, in.Division.Placed(in.N)))
	}
	kind.Check(dir.WriteNames(names))
	files, labeled := dir.PositionFiles("embedding", in.Config.Output.CSV), labels != nil || rows.Labeled()
	return held, rundir.WritePositions(files, e.Dim(), labeled, names != nil, func(write rundir.PositionWriter) (err error) {
		defer kind.Catch(&err)
		read, written := 0, 0
		kind.Check(e.ProjectRows(ctx, rows, cne.Projection{Division: in.Division}, func(b *cne.ProjectedBlock) error {
			if read += b.Positions.N; len(b.Rows) == 0 || b.Rows[len(b.Rows)-1] >= in.N {
				return nil // an error in the end, if there are more rows than in the beginning
			}
			if labels != nil {
				b.Labels = selection.Pick(labels, b.Rows)
			}
			progress(b.First, in.N)
			in.takeHeld(b, held)
			if b.Positions.N == 0 {
				return nil
			}
			named := names[min(written, len(names)):min(written+b.Positions.N, len(names))] // nil for nil
			written += b.Positions.N
			return write(b.Positions, b.Labels, named)
		}))
		if want := in.N - len(in.Division.Left); read != want {
			return fmt.Errorf("data.path: got %d points, want %d as when the run began", read, want)
		}
		in.checkFiles()
		return nil
	})
}

// takeHeld moves the positions of points that are held out from a block to their matrix.
func (in *Inputs) takeHeld(b *cne.ProjectedBlock, held *data.Matrix) {
	if held == nil {
		return
	}
	kept := 0
	for i := range b.Positions.N {
		if k, out := slices.BinarySearch(in.Division.Held, b.Rows[i]); out {
			copy(held.Row(k), b.Positions.Row(i))
			continue
		}
		copy(b.Positions.Row(kept), b.Positions.Row(i))
		if b.Labels != nil {
			b.Labels[kept] = b.Labels[i]
		}
		kept++
	}
	b.Positions, b.Labels = b.Positions.Rows(0, kept), b.Labels[:min(kept, len(b.Labels))]
}

// checkFiles fails if a file of data.path has changed since it was read.
func (in *Inputs) checkFiles() {
	for i, info := range stat(in.Config.Data.Path) {
		moved := !os.SameFile(in.infos[i], info) && !strings.HasPrefix(in.Config.Data.Path[i], file.BuiltinPrefix)
		if before := in.infos[i]; moved || before.Size() != info.Size() || !before.ModTime().Equal(info.ModTime()) {
			kind.Check(fmt.Errorf("%s has changed since training", in.Config.Data.Path[i]))
		}
	}
}

func stat(paths []string) []fs.FileInfo {
	return selection.Map(paths, func(path string) fs.FileInfo {
		info, err := file.Stat(path)
		kind.Checkf(err, "data.path: %w", err)
		return info
	})
}
