package projection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"cne/data"
	"cne/internal/text"
)

// partName takes the name of a part apart, after that of the positions.
var partName = regexp.MustCompile(`^\.part-(\d{1,9})-of-(\d{1,9})$`)

// Merge writes the positions of all parts to the output, complete or not at all, once it
// is sure that the parts are those of one projection, each there and none twice. It
// returns how many points there are, how many of them have no position, and in how many
// parts. A request that names a model, or inputs, has to be that of the parts. The parts stay.
func Merge(ctx context.Context, r *Request, picture *Picture) (rows, bad, count int, err error) {
	parts, err := findParts(r.Output)
	if err != nil {
		return 0, 0, 0, err
	}
	heads := make([]Part, len(parts))
	for i, path := range parts {
		part, err := openPart(path)
		if err != nil {
			return 0, 0, 0, err
		}
		heads[i] = part.Part
		part.close()
		if err := heads[i].follows(path, i, heads[:i], parts); err != nil {
			return 0, 0, 0, err
		}
		rows, bad = rows+heads[i].Rows, bad+heads[i].Bad
	}
	first := &heads[0]
	if err := r.isOf(&first.About); err != nil {
		return 0, 0, 0, err
	}
	for i := range heads {
		if heads[i].Made != first.Made {
			r.Log.Warn("parts were made in different ways, so that positions may differ in their last bits", "part", parts[0], "by", first.Made, "and", parts[i], "by", heads[i].Made)
			break
		}
	}
	err = writePositions(r.Output, func(w io.WriteSeeker) error {
		out, err := newPositionWriter(r.Output, w, first.Dim, first.Labeled)
		if err != nil {
			return notWritten(r.Output, err)
		}
		for i, path := range parts {
			part, err := openPart(path)
			if err != nil {
				return err
			}
			if part.difference(&heads[i].About) != "" || part.Rows != heads[i].Rows {
				err = fmt.Errorf("%s has changed while parts were put together; begin again", path)
			} else {
				err = part.each(func(m *data.Matrix, labels []string) error {
					picture.add(m, labels)
					return errors.Join(ctx.Err(), out.write(m, labels))
				})
			}
			part.close()
			if err != nil {
				return err
			}
		}
		return notWritten(r.Output, out.close())
	})
	return rows, bad, len(parts), err
}

// isOf compares what the command line names with what the parts are of.
func (r *Request) isOf(parts *About) error {
	fault := func(what string) error {
		return fmt.Errorf("the parts of %s are of %s than the command line names; name what they are of, or place all parts again", r.Output, what)
	}
	if len(r.ModelFiles) > 0 {
		sum, err := checksum(r.ModelFiles)
		if err != nil {
			return fmt.Errorf("the model cannot be read (%w); check --model", err)
		}
		if sum != parts.Model {
			return fault("another model")
		}
	}
	if len(r.Inputs) == 0 {
		return nil
	}
	named := *parts
	var err error
	if named.Input, err = inputFiles(r.Inputs); err != nil {
		return err
	}
	named.Reading = r.Reading
	if how := parts.difference(&named); how != "" {
		return fault(how)
	}
	return nil
}

// follows checks that a part belongs to those before it and stands behind them.
func (p *Part) follows(path string, index int, before []Part, paths []string) error {
	if p.Partly {
		return fmt.Errorf("%s is a part whose end is missing; place it again with --shard %d/%d", path, index, len(paths))
	}
	if p.Index != index || p.Count != len(paths) {
		return fmt.Errorf("%s was written as part %d of %d, counted from 0; give it its name again, or place part %d of %d", path, p.Index, p.Count, index, len(paths))
	}
	if len(before) == 0 {
		return nil
	}
	if how := p.difference(&before[0].About); how != "" {
		return fmt.Errorf("%s is of %s than %s; place all parts with the same model, input and options", path, how, paths[0])
	}
	var nothing data.Border
	for i := index - 1; i >= 0; i-- {
		if before[i].Rows == 0 && before[i].From == nothing && before[i].To == nothing {
			continue // it had none of the files
		}
		if before[i].To != p.From && (p.Rows > 0 || p.From != nothing) {
			return fmt.Errorf("%s ends at %s of the input, but %s begins at %s; choose another number of parts, and place all", paths[i], before[i].To, path, p.From)
		}
		break
	}
	return nil
}

// findParts returns the files of all parts of the positions that output names, in order.
func findParts(output string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(output))
	if err != nil {
		return nil, err
	}
	count := 0
	var some string
	there := map[int]bool{}
	for _, e := range entries {
		ending, ok := strings.CutPrefix(e.Name(), filepath.Base(output))
		if !ok {
			continue
		}
		match := partName.FindStringSubmatch(ending)
		if match == nil {
			continue
		}
		index, _ := strconv.Atoi(match[1]) // of at most nine digits
		of, _ := strconv.Atoi(match[2])
		path := filepath.Join(filepath.Dir(output), e.Name())
		if of == 0 || index >= of || Name(output, data.Shard{Index: index, Count: of}) != output+ending {
			return nil, fmt.Errorf("%s has a name that no part has; remove it, or give it another name", path)
		}
		if count > 0 && of != count {
			return nil, fmt.Errorf("%s is one of %d parts, but %s one of %d; remove those that are not meant", some, count, path, of)
		}
		count, some, there[index] = of, path, true
	}
	if count == 0 {
		return nil, fmt.Errorf("there are no parts of %s beside it; place them first, with --shard 0/k, 1/k and so on, and the same --output", output)
	}
	var paths, missing []string
	for i := range count {
		shard := data.Shard{Index: i, Count: count}
		if paths = append(paths, Name(output, shard)); !there[i] {
			missing = append(missing, fmt.Sprintf("%d/%d", i, count))
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("of the %d parts of %s, %d are missing; place them with --shard %s", count, output, len(missing), text.Few(missing, nil))
	}
	return paths, nil
}
