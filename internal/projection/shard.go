package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

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
// the same request is left as it is (there), and one that was interrupted goes on: placed is
// how many points get a position now. When ctx ends, what has been placed is kept, and
// the error is ErrInterrupted. Several processes may place the same part at once; the last
// writes it.
func (p *Projection) WritePart(ctx context.Context, r *Request, shard data.Shard, open func() (Source, error)) (placed int, there bool, err error) {
	path := Name(r.Output, shard)
	begun := path + unfinished
	for _, path := range []string{path, begun} {
		if err := mayBePart(path); err != nil {
			return 0, false, err
		}
	}
	about, err := r.about() // as it is before anything of it is read
	if err != nil {
		return 0, false, err
	}
	points, err := open()
	if err != nil {
		return 0, false, err
	}
	defer func() {
		if ctx.Err() == nil { // else the input may still be in use
			err = errors.Join(err, points.Close())
		}
	}()
	if err := CheckWidth(p.Embedding, r.Inputs[0], points.D()); err != nil {
		return 0, false, err
	}
	about.Count, about.Dim, about.Labeled = shard.Count, p.Embedding.Dim(), points.Labeled()
	part := Part{About: about, Index: shard.Index, Made: madeBy(isa.Best(), r.Device)}
	if before := r.earlier(path, &part); before != nil {
		defer before.close()
		if err := before.check(); err == nil && !before.Partly {
			p.Count, p.Bad = before.Rows, before.Bad
			return 0, true, nil
		}
		r.Log.Warn("the part that is there is damaged; it is placed again", "part", path)
	}
	interrupted := false
	err = writeOneOf(path, begun, func(w io.WriteSeeker) (whole bool, err error) {
		out, err := newPartWriter(path, w, part)
		if err != nil {
			return false, notWritten(path, err)
		}
		if err := p.resume(r, begun, out, points); err != nil {
			return false, err
		}
		earlier := p.Count - p.Bad
		err = p.place(ctx, points, out)
		placed = p.Count - p.Bad - earlier
		if interrupted = err != nil && ctx.Err() != nil; interrupted && out.Rows > 0 {
			out.Partly, err = true, nil
		}
		if err != nil {
			return false, err
		}
		if out.Bad = p.Bad; !out.Partly {
			out.From, out.To = points.Borders()
		}
		return !out.Partly, out.close()
	})
	if interrupted && err == nil {
		return placed, false, ErrInterrupted
	}
	if err == nil {
		// What there was of the part has become the whole. Who else is at work on it may
		// have taken it away.
		if err = os.Remove(begun); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return placed, false, err
}

// mayBePart refuses a path at which no part can be written, or where there is something that
// never was one.
func mayBePart(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the part cannot be written to %s (%w); choose another --output", path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("the part cannot be written to %s, which is no regular file; remove it, or choose another --output", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("the part cannot be written to %s (%w); choose another --output", path, err)
	}
	defer f.Close()
	head := make([]byte, len(partMagic))
	if n, err := io.ReadFull(f, head); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	} else if !strings.HasPrefix(partMagic, string(head[:n])) {
		return fmt.Errorf("%s is in the place of the part, but is none; remove it, or choose another --output", path)
	}
	return nil
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
func (p *Projection) resume(r *Request, begun string, out *partWriter, points Source) error {
	before := r.earlier(begun, &out.Part)
	if before == nil {
		return nil
	}
	defer before.close()
	// All of it is looked at before any of it is used.
	if err := before.check(); err != nil {
		r.Log.Info("what there is of the part is placed again", "part", begun, "because", "it is damaged")
		return nil
	}
	if err := before.each(out.write); err != nil {
		return err
	}
	p.Count, p.Bad = before.Rows, before.Bad
	return points.Skip(before.Rows)
}
