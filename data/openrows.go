package data

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"cne/internal/rng"
)

// DrawRows draws count of n rows without replacement, all alike, and returns them in
// ascending order. The seed decides which. A count below 1 or above n gives ErrOption.
func DrawRows(n, count int, seed uint64) ([]int, error) {
	if count < 1 || count > n {
		return nil, errorf(ErrOption, "%d of %d rows cannot be drawn; draw from 1 to %d", count, n, n)
	}
	stream := rng.New(seed, rng.Training)
	rows := make([]int, 0, count)
	for i := 0; len(rows) < count; i++ {
		if stream.IntN(n-i) < count-len(rows) {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// CheckRows returns an error (ErrOption) unless rows, counted from 0, are some of n and
// ascend.
func CheckRows(rows []int, n int) error {
	for k, row := range rows {
		switch at := k + 1; {
		case row < 0 || row >= n:
			return errorf(ErrOption, "entry %d (counted from 1) is row %d, but rows are numbered from 0 to %d; leave it out", at, row, n-1)
		case k > 0 && row == rows[k-1]:
			return errorf(ErrOption, "entry %d (counted from 1) is row %d, as the one before; give each row once", at, row)
		case k > 0 && row < rows[k-1]:
			return errorf(ErrOption, "entry %d (counted from 1) is row %d, behind row %d; sort the rows in ascending order", at, row, rows[k-1])
		}
	}
	if len(rows) == 0 {
		return errorf(ErrOption, "there are no rows; give at least one")
	}
	return nil
}

// Take returns the points of some rows, which CheckRows accepts, with their labels and
// names. Points in memory are copied, others stay where they are.
func (ds *Dataset) Take(rows []int) (*Dataset, error) {
	n, _ := ds.Dims()
	if err := CheckRows(rows, n); err != nil {
		return nil, err
	}
	return ds.take(rows), nil
}

// Count returns how many points Open would read from files: what the heads of arrays and
// of Parquet files say, and otherwise what reading them shows. A pipe gives
// ErrUnsupported; other errors are those of OpenBlocks.
func Count(ctx context.Context, paths []string, opt Options) (int, error) {
	opt.Labels = nil
	files, err := findFiles(paths, opt)
	if err != nil {
		return 0, err
	}
	if err := refusePipes(files); err != nil {
		return 0, err
	}
	if size := PointsSize(ctx, paths, opt); size.Known() {
		return size.Low, nil
	}
	opt.Log = nil
	b, err := OpenBlocks(ctx, paths, opt)
	if err != nil {
		return 0, err
	}
	defer b.Close()
	block := NewMatrix(BlockRows(b.D()), b.D())
	for n := 0; ; {
		got, err := b.Next(block)
		n += got
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// refusePipes refuses files that cannot be read again.
func refusePipes(files []file) error {
	if canReadAgain(files) {
		return nil
	}
	return errorf(ErrUnsupported, "%s: some of the points are read before the others, for which a pipe cannot be read again; give files", files[0].path)
}

// OpenRows is Open for some of the points alone, which CheckRows accepts: what it returns
// is as if the files held no others, but that Dataset.Origin and messages know their rows.
// Files are read once from their beginning to their end – twice, if there is to be an
// Offset – a block at a time, and every value must be finite. The points are held in
// memory: as bytes in Dataset.Stored where Options.BlocksAbove would leave as many in
// their files and all are arrays of bytes. Of sparse files, all points are held meanwhile.
// n is the number of all points; if there are others, the error is ErrChanged.
func OpenRows(ctx context.Context, paths []string, opt Options, rows []int, n int) (*Dataset, error) {
	if err := CheckRows(rows, n); err != nil {
		return nil, err
	}
	files, err := findFiles(paths, opt)
	if err != nil {
		return nil, err
	}
	if err := refusePipes(files); err != nil {
		return nil, err
	}
	opt.rows = rows
	ds, err := openRowsOfBytes(ctx, files, opt)
	if ds == nil && err == nil {
		ds, err = openWhole(ctx, files, opt)
	}
	if err != nil {
		return nil, err
	}
	total := 0
	for _, p := range ds.parts {
		total += p.rows
	}
	if total != n {
		return nil, errorf(ErrChanged, "%s: there are %d points now, but there were %d a moment ago; begin again, and leave the files as they are", files[0].path, total, n)
	}
	if ds.Name = opt.Name; ds.Name == "" {
		ds.Name = nameOf(paths[0])
	}
	if len(opt.Labels) > 0 {
		labels, err := OpenLabels(ctx, opt.Labels, n)
		if err != nil {
			return nil, err
		}
		taken := make([]string, len(rows))
		for k, i := range rows {
			taken[k] = labels[i]
		}
		ds.Labels = NewLabels(taken)
	}
	ds.origin = rows
	return ds, nil
}

// OpenLabels reads the labels of n points as Open reads those of Options.Labels.
func OpenLabels(ctx context.Context, paths []string, n int) ([]string, error) {
	return readLabelFiles(ctx, paths, n)
}

// pair opens the labels that a collection has in a file of their own.
func (st *stream) pair(ctx context.Context, f file) error {
	if f.labels == "" || !st.labeled {
		return nil
	}
	return st.pairLabels(ctx, f.labels)
}

// readSome reads all points of a file, and appends those to b whose rows over all files
// are wanted, of which so many are in files before this one.
func (st *stream) readSome(b *builder, wanted []int, before int) error {
	if r, sparse := st.values.(*csrReader); sparse {
		if err := st.readSparse(b, r); err != nil {
			return err
		}
		var local []int
		for at, _ := slices.BinarySearch(wanted, before); at < len(wanted) && wanted[at] < before+st.rows; at++ {
			local = append(local, wanted[at]-before)
		}
		last := len(b.rows) - 1
		b.rows[last] = b.rows[last].take(local)
		if st.labels != nil {
			all := st.labels
			st.labels = nil
			for _, i := range local {
				st.labels = append(st.labels, all[i])
			}
		}
		return nil
	}
	if b.rows != nil {
		return errorf(ErrShape, "%s: these points are dense, but others are sparse; files that are read together must hold points of one kind", st.name)
	}
	b.d = st.d
	b.reserve(len(wanted)*st.d - len(b.x))
	block := NewMatrix(BlockRows(st.d), st.d)
	var labels []string
	return st.some(wanted, before, func() (int, error) {
		labels = labels[:0]
		n, err := st.readRows(block.X, &labels)
		if n > 0 {
			if row, column, v, bad := block.Rows(0, n).firstNotFinite(); bad {
				return 0, notFinite(fmt.Sprintf("%s: row %d", st.name, st.rows+row+1), column, v)
			}
		}
		return n, err
	}, func(i int) {
		b.x = append(b.x, block.Row(i)...)
		if st.labeled {
			st.labels = append(st.labels, labels[i])
		}
	})
}

// some calls next, which reads a block of rows, until the file ends, and take for those of
// each block that are wanted. It counts the rows.
func (st *stream) some(wanted []int, before int, next func() (int, error), take func(i int)) error {
	at, _ := slices.BinarySearch(wanted, before)
	for st.rows = 0; ; {
		n, err := next()
		if err != nil && err != io.EOF {
			return err
		}
		first := before + st.rows
		for ; at < len(wanted) && wanted[at] < first+n; at++ {
			take(wanted[at] - first)
		}
		st.rows += n
		if err == io.EOF {
			return nil
		}
	}
}

// openRowsOfBytes holds the wanted points as bytes, if the options want that and all files
// are arrays of bytes; if not, or if something is wrong with a file, which reading says
// best, it returns nil.
func openRowsOfBytes(ctx context.Context, files []file, opt Options) (*Dataset, error) {
	if opt.Offset != nil || len(files) > maxStreams {
		return nil, nil
	}
	opened, err := openStreams(ctx, files, opt)
	if err != nil {
		return nil, ctx.Err()
	}
	defer opened.close()
	d := opened.opened[0].d
	for _, st := range opened.opened {
		if r, ok := st.values.(*arrayReader); !ok || !r.isByte() || st.d != d {
			return nil, nil
		}
	}
	if !opt.staysWhereItIs(len(opt.rows), d) {
		return nil, nil
	}
	whole := &storedPart{file: files[0], bytes: make([]byte, 0, len(opt.rows)*d)}
	whole.scalarType, whole.shape = scalarType{kind: 'u', size: 1}, []int{len(opt.rows), d}
	ds := &Dataset{Bytes: true, Stored: &stored{opt: opt, n: len(opt.rows), d: d, parts: []*storedPart{whole}, finite: true}}
	var labels []string
	var first *stream
	for before := 0; opened.more(); before += ds.parts[len(ds.parts)-1].rows {
		st, err := opened.next()
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = st
		}
		if err = st.pair(ctx, files[len(ds.parts)]); err == nil {
			err = st.follows(first)
		}
		if err == nil {
			st.remark(opt, st == first)
			err = st.someBytes(whole, opt.rows, before)
		}
		st.close()
		if err != nil {
			return nil, err
		}
		labels, st.labels = append(labels, st.labels...), nil
		ds.parts = append(ds.parts, st.part)
	}
	if labels != nil {
		ds.Labels = NewLabels(labels)
	}
	return ds, nil
}

// someBytes is readSome of an array of bytes.
func (st *stream) someBytes(to *storedPart, wanted []int, before int) error {
	r := st.values.(*arrayReader)
	r.buf = make([]byte, max(1, storedBuffer/st.d)*st.d)
	var block []byte
	var labels []string
	return st.some(wanted, before, func() (int, error) {
		src, n, err := r.next(math.MaxInt)
		if err != nil && err != io.EOF {
			return 0, st.explain(err)
		}
		block, labels = src[:n], labels[:0]
		rows := n / st.d
		if st.beside == nil {
			return rows, err
		}
		return st.besideRows(&labels, rows, err)
	}, func(i int) {
		to.bytes = append(to.bytes, block[i*st.d:(i+1)*st.d]...)
		if st.beside != nil {
			st.labels = append(st.labels, labels[i])
		}
	})
}
