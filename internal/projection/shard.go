package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"cne/data"
	"cne/internal/isa"
)

// A Request is a projection as the command line describes it, of which all or a part is
// carried out.
type Request struct {
	Output     string
	ModelFiles []string // that Load has read
	Inputs     []string
	Reading    Reading
	Device     string // on which points are placed
	Log        *slog.Logger
}

// about returns what the parts of a request have in common, but for what the points and
// the model say.
func (r *Request) about() (a About, err error) {
	a.Reading = r.Reading
	if a.Input, err = inputFiles(r.Inputs); err != nil {
		return a, err
	}
	if a.Model, err = checksum(r.ModelFiles); err != nil {
		return a, fmt.Errorf("the model cannot be read (%w); check --model", err)
	}
	return a, nil
}

// unfinished is what the name of a part ends with that was interrupted.
const unfinished = ".unfinished"

// ErrInterrupted is the error of a part that was interrupted and whose beginning is kept.
var ErrInterrupted = errors.New("interrupted; what has been placed is kept, and the same command goes on from there")

// WritePart places one part of the points, which open opens, and writes their positions to
// the file that Name names, complete or not at all. A part that is there already and is of
// the same request is left as it is, and one that was interrupted goes on: done is how many
// of the points had been placed before. When ctx ends, what has been placed is kept, and
// the error is ErrInterrupted.
func (p *Projection) WritePart(ctx context.Context, r *Request, shard data.Shard, open func() (Source, error)) (done int, err error) {
	about, err := r.about() // as it is before anything of it is read
	if err != nil {
		return 0, err
	}
	points, err := open()
	if err != nil {
		return 0, err
	}
	defer func() {
		if ctx.Err() == nil { // else the input may still be in use
			err = errors.Join(err, points.Close())
		}
	}()
	if err := CheckWidth(p.Embedding, r.Inputs[0], points.D()); err != nil {
		return 0, err
	}
	about.Count, about.Dim, about.Labeled = shard.Count, p.Embedding.Dim(), points.Labeled()
	part := Part{About: about, Index: shard.Index, Made: madeBy(isa.Best(), r.Device)}
	path := Name(r.Output, shard)
	if before := r.earlier(path, &part); before != nil && !before.Partly {
		defer before.close()
		err := before.each(func(*data.Matrix, []string) error { return nil })
		if err == nil {
			p.Count, p.Bad = before.Rows, before.Bad
			return before.Rows, nil
		}
		r.Log.Warn("the part that is there is damaged; it is placed again", "part", path)
	}
	begun := path + unfinished
	interrupted := false
	err = writePositions(begun, func(w io.WriteSeeker) error {
		out, err := newPartWriter(path, w, part)
		if err != nil {
			return notWritten(path, err)
		}
		if done, err = p.resume(r, begun, out, points); err != nil {
			return err
		}
		err = p.place(ctx, points, out)
		if interrupted = err != nil && ctx.Err() != nil; interrupted && out.Rows > 0 {
			out.Partly, err = true, nil
		}
		if err != nil {
			return err
		}
		if out.Bad = p.Bad; !out.Partly {
			out.From, out.To = points.Borders()
		}
		return out.close()
	})
	switch {
	case interrupted && err == nil:
		return done, ErrInterrupted
	case err != nil:
		return done, err
	}
	return done, notWritten(path, os.Rename(begun, path))
}

// earlier opens a part that is there from before, if it is of the same request and was
// made in the same way.
func (r *Request) earlier(path string, part *Part) *partReader {
	before, err := openPart(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	why := ""
	switch {
	case err != nil:
		why = "it is damaged"
	case before.difference(&part.About) != "":
		why = "it is of " + before.difference(&part.About)
	case before.Index != part.Index:
		why = "it is another part"
	case before.Made != part.Made:
		why = "it was made by " + before.Made
	default:
		return before
	}
	if before != nil {
		before.close()
	}
	r.Log.Info("what there is of the part is placed again", "part", path, "because", why)
	return nil
}

// resume copies what an interrupted part has to out, and passes over its points.
func (p *Projection) resume(r *Request, begun string, out *partWriter, points Source) (done int, err error) {
	before := r.earlier(begun, &out.Part)
	if before == nil {
		return 0, nil
	}
	defer before.close()
	// All of it is looked at before any of it is used.
	if err := before.each(func(*data.Matrix, []string) error { return nil }); err != nil {
		r.Log.Info("what there is of the part is placed again", "part", begun, "because", "it is damaged")
		return 0, nil
	}
	again, err := openPart(begun)
	if err != nil {
		return 0, err
	}
	defer again.close()
	if err := again.each(out.write); err != nil {
		return 0, err
	}
	p.Count, p.Bad = again.Rows, again.Bad
	return again.Rows, points.Skip(again.Rows)
}
