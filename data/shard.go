package data

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"sort"
	"sync"
)

// A Shard is one of several parts of points, of rows that follow each other. All parts,
// one after the other, are the points, each once.
type Shard struct {
	Index int // of the part, counted from 0
	Count int // of all parts
}

// check refuses a part that is none.
func (s Shard) check() error {
	if s.Count < 1 || s.Index < 0 || s.Index >= s.Count {
		return errorf(ErrOption, "there is no part %d of %d; parts are numbered from 0", s.Index, s.Count)
	}
	return nil
}

// Cut returns which of n things that follow each other the part has: those from lo on
// and before hi. The parts of the same n differ by one at most.
func (s Shard) Cut(n int) (lo, hi int) { return s.cut(s.Index, n), s.cut(s.Index+1, n) }

// cut returns where part i begins.
func (s Shard) cut(i, n int) int { return mulDiv(i, n, s.Count) }

// mulDiv returns ⌊a·b/c⌋ of numbers of which the product may be too large, but not the
// result.
func mulDiv(a, b, c int) int {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int(q)
}

// A Border is where a part of points begins or ends.
type Border struct {
	File int `json:"file"` // of points, counted from 0; their number after the last
	// At is how many rows of the file are before it, or how many bytes if that is text; 0
	// for the beginning of the file.
	At int64 `json:"at"`
}

func (b Border) String() string { return fmt.Sprintf("%d in file %d", b.At, b.File+1) }

// An InputFile is a file of points as it was when it was looked at.
type InputFile struct {
	Path string
	Info fs.FileInfo
}

// check reports a file that is no longer what it was.
func (f *InputFile) check() error {
	info, err := os.Stat(f.Path)
	if err == nil && os.SameFile(info, f.Info) && info.Size() == f.Info.Size() && info.ModTime().Equal(f.Info.ModTime()) {
		return nil
	}
	return errorf(ErrChanged, "%s has changed while it was read; begin again, and leave the file as it is until its points are read", f.Path)
}

// Files returns the files from which Open, OpenBlocks or OpenCounts would read the points
// at these paths, in their order, with those of labels that lie beside them. All must be
// regular files (ErrUnsupported).
func Files(paths []string) ([]InputFile, error) {
	var all []string
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() && IsCounts(path) {
			for _, names := range [][]string{mtxFiles, barcodeFiles, geneFiles} {
				if file := findFile(path, names...); file != "" {
					all = append(all, file)
				}
			}
			continue
		}
		files, err := expand([]string{path})
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if all = append(all, f.path); f.labels != "" {
				all = append(all, f.labels)
			}
		}
	}
	return lookAt(all)
}

// lookAt looks at files, which must be regular ones.
func lookAt(paths []string) ([]InputFile, error) {
	files := make([]InputFile, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("the data cannot be read (%w); check the path", err)
		}
		if !info.Mode().IsRegular() {
			return nil, errorf(ErrUnsupported, "%s: this is no regular file, and points are read in parts from such alone; write them to a file", path)
		}
		files[i] = InputFile{path, info}
	}
	return files, nil
}

// A share is what a part has of a file: of its size in bytes those from lo on and before
// hi, and with them the rows that begin there.
type share struct {
	info         *InputFile
	number       int // of the file among all, counted from 0
	lo, hi, size int
	count        int // of the parts
	rows         int // still to be read, where the file tells how many it has; else -1
}

// whole tells whether a share is its whole file.
func (s *share) whole() bool { return s.lo == 0 && s.hi == s.size }

// OpenShard opens files as OpenBlocks does, and delivers one part of their rows. Parts
// are as large as each other by the bytes of the files: a row belongs to the part in
// which it begins. Arrays are cut by the numbers of their rows; so is Parquet, between row
// groups if a file has as many of them as there are parts; text between its lines. What
// is compressed is read from its beginning on; compressed text, of which nobody knows how
// many rows it has, is not cut, but belongs to one part, and gives ErrUnsupported if it is
// the only file. All must be regular files (ErrUnsupported) that stay the same until they
// are read (ErrChanged). Where there are more parts than rows, some are empty: Next
// returns io.EOF.
//
// A field in quotation marks may hold line ends. Where there are quotation marks up to a
// MiB before a cut, rows are therefore found from the beginning of the file; those of a
// longer field would show in Borders that do not agree.
func OpenShard(ctx context.Context, paths []string, opt Options, shard Shard) (*Blocks, error) {
	if err := shard.check(); err != nil {
		return nil, err
	}
	b, files, err := newBlocks(paths, opt)
	if err != nil {
		return nil, err
	}
	if b.shares, err = shard.shares(ctx, files); err != nil {
		return nil, err
	}
	b.inParts = true
	var mine []file
	for _, s := range b.shares {
		mine = append(mine, files[s.number])
	}
	// What all points have in common, the first file says.
	if len(mine) == 0 || b.shares[0].number > 0 {
		if b.first, err = openStream(ctx, files[0], opt); err != nil {
			return nil, err
		}
		if err := b.first.close(); err != nil {
			return nil, err
		}
		b.first.remark(opt, true)
	}
	if err := b.start(ctx, mine); err != nil {
		return nil, err
	}
	return b, nil
}

// shares divides files, and returns what the part has of those of which it has something.
func (s Shard) shares(ctx context.Context, files []file) (mine []*share, err error) {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	looked, err := lookAt(paths)
	if err != nil {
		return nil, err
	}
	sizes, total := make([]int, len(files)), 0
	for i, f := range looked {
		// An empty file is somebody's, too, who refuses it.
		sizes[i] = int(max(1, f.Info.Size()))
		if total += sizes[i]; total < 0 {
			return nil, errorf(ErrUnsupported, "%s and the other files have too many bytes together; read some of them at a time", f.Path)
		}
	}
	lo, hi := s.Cut(total)
	before := 0
	for i, size := range sizes {
		part := &share{info: &looked[i], number: i, lo: max(0, lo-before), hi: min(size, hi-before), size: size, count: s.Count}
		before += size
		if part.lo >= part.hi {
			continue
		}
		if !part.whole() {
			packed, err := isPackedText(ctx, files[i].path)
			if err != nil {
				return nil, err
			}
			if packed && len(files) == 1 {
				return nil, errorf(ErrUnsupported, "%s: compressed text cannot be read in parts, since its lines are found only from the beginning; unpack it, or divide it into several files", files[i].path)
			}
			if middle := size / 2; packed && (middle < part.lo || middle >= part.hi) {
				continue
			} else if packed {
				part.lo, part.hi = 0, size
			}
		}
		mine = append(mine, part)
	}
	return mine, nil
}

// isPackedText tells whether a file is text that is compressed.
func isPackedText(ctx context.Context, path string) (bool, error) {
	s, format, c, err := openFile(ctx, path, false)
	if err != nil {
		return false, err
	}
	return format == formatText && s.packed, c.Close()
}

// Borders returns where the part of an OpenShard begins and ends, once it has been read to
// its end. A part ends where the next begins; one without files has twice the zero Border.
func (b *Blocks) Borders() (from, to Border) { return b.from, b.to }

// Skip passes over as many points as Next would deliver first, before it has been called.
// Fewer give ErrEmpty.
func (b *Blocks) Skip(points int) error {
	for b.err == nil && b.rows < points {
		rows := points - b.rows
		s := b.share()
		if s != nil && s.rows >= 0 {
			rows = min(rows, s.rows)
		}
		passed, err := b.current.skipRows(rows)
		if s != nil && s.rows >= 0 {
			s.rows -= passed
		}
		b.rows += passed
		b.parts[len(b.parts)-1].rows += passed
		if b.err = err; err == nil && b.rows < points {
			b.err = b.goOn()
		}
	}
	if b.err == io.EOF && b.rows < points {
		return errorf(ErrEmpty, "there are %d points, fewer than the %d that are to be passed over", b.rows, points)
	}
	if b.err == io.EOF {
		return nil
	}
	return b.err
}

// skipRows passes over rows, and over their labels.
func (st *stream) skipRows(rows int) (passed int, err error) {
	if passed, err = st.values.skip(rows); err != nil {
		return passed, st.explain(err)
	}
	if st.beside != nil {
		if _, err := st.beside.skip(passed); err != nil {
			return passed, fmt.Errorf("%s: %w", st.besideName, err)
		}
	}
	return passed, nil
}

// share returns what a part has of the current file; nil for all of it.
func (b *Blocks) share() *share {
	if !b.inParts {
		return nil
	}
	return b.shares[len(b.parts)-1]
}

// enter restricts the current file to a share.
func (b *Blocks) enter(s *share) error {
	from := Border{File: s.number}
	p := &b.parts[len(b.parts)-1]
	t, ok := b.current.values.(*table)
	if ok {
		s.rows = -1
		if err := t.restrict(s); err != nil {
			return b.current.explain(err)
		}
		p.before = t.rowsAbove
		if s.lo > 0 {
			from.At = t.begin
		}
		if t.err == io.EOF {
			from = Border{File: s.number + 1}
		}
	} else {
		lo, hi := s.cutRows(b.current.values)
		s.rows = hi - lo
		if _, err := b.current.skipRows(lo); err != nil {
			return err
		}
		p.before = func() int { return lo }
		if from.At = int64(lo); lo == rowsOf(b.current.values) {
			from = Border{File: s.number + 1}
		}
	}
	if len(b.parts) == 1 {
		b.from = from
	}
	return nil
}

// leave notes where the part ends in the current file, and makes sure that this is still
// the file that was opened.
func (b *Blocks) leave(s *share) error {
	b.to = Border{File: s.number + 1}
	if t, ok := b.current.values.(*table); ok {
		if t.err != io.EOF {
			b.to = Border{s.number, t.begin}
		}
	} else if _, hi := s.cutRows(b.current.values); hi < rowsOf(b.current.values) {
		b.to = Border{s.number, int64(hi)}
	}
	return s.info.check()
}

// rowsOf returns how many rows a file has that tells.
func rowsOf(v valueReader) int {
	switch v := v.(type) {
	case *arrayReader:
		return v.total / v.d
	case *parquetReader:
		return v.file.Rows
	}
	return v.(*csrReader).n
}

// cutRows returns which rows of a file belong to a share.
func (s *share) cutRows(v valueReader) (lo, hi int) {
	n := rowsOf(v)
	lo, hi = mulDiv(s.lo, n, s.size), mulDiv(s.hi, n, s.size)
	p, ok := v.(*parquetReader)
	if !ok {
		return lo, hi
	}
	groups := p.file.Groups()
	if len(groups) < s.count {
		return lo, hi
	}
	borders := make([]int, len(groups)+1)
	for i, rows := range groups {
		borders[i+1] = borders[i] + rows
	}
	return nearest(borders, lo), nearest(borders, hi)
}

// nearest returns that of ascending numbers which is nearest to n, the smaller one of two.
func nearest(ascending []int, n int) int {
	i := sort.SearchInts(ascending, n)
	if i == len(ascending) || i > 0 && n-ascending[i-1] <= ascending[i]-n {
		i--
	}
	return ascending[i]
}

// quotedReach is how many bytes before a cut of a table quotation marks are looked for.
const quotedReach = 1 << 20

// restrict has a table whose head has been read deliver the rows that begin in a share.
func (t *table) restrict(s *share) error {
	if s.whole() {
		return nil
	}
	if s.hi < s.size {
		t.until = int64(s.hi)
	}
	top, linesAbove := t.begin, t.first-1
	if int64(s.lo) <= top {
		return nil
	}
	at, err := t.lineFrom(top, int64(s.lo))
	if err != nil {
		return err
	}
	// The file may have been closed by the time that somebody asks.
	count := sync.OnceValues(func() (rows, lines int) {
		f, err := os.Open(s.info.Path)
		if err != nil {
			return 0, linesAbove
		}
		defer f.Close()
		r := section(f, top, at)
		for {
			if _, err := r.gather(); err != nil {
				return rows, linesAbove + r.line
			}
			rows++
		}
	})
	t.above = func() int { _, lines := count(); return lines }
	t.rowsAbove = func() int { rows, _ := count(); return rows }
	t.r.Reset(io.NewSectionReader(t.s.at, at, t.s.size-at))
	t.taken, t.line = at, 0
	if t.advance(); t.err != nil && t.err != io.EOF {
		return t.err
	}
	return nil
}

// section begins to read the rows of a part of a file.
func section(file io.ReaderAt, from, to int64) *rowReader {
	return &rowReader{r: bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), readBuffer), taken: from}
}

// lineFrom returns where the first line begins, at or after a byte of the file, that is
// not within a row; the rows begin at top.
func (t *table) lineFrom(top, from int64) (int64, error) {
	start := max(top, from-quotedReach)
	r := bufio.NewReaderSize(io.NewSectionReader(t.s.at, start, t.s.size-start), readBuffer)
	for at := start; ; {
		piece, err := r.ReadSlice('\n')
		at += int64(len(piece))
		switch {
		case bytes.IndexByte(piece, '"') >= 0 || at-from > maxRow:
			return t.rowFrom(top, from)
		case err == bufio.ErrBufferFull:
		case err == io.EOF:
			return t.s.size, nil
		case err != nil:
			return 0, explain(err)
		case at >= from:
			return at, nil
		}
	}
}

// rowFrom returns where the first row begins at or after a byte of the file, found from the
// first row on.
func (t *table) rowFrom(top, from int64) (int64, error) {
	r := section(t.s.at, top, t.s.size)
	for {
		if _, err := r.gather(); err == io.EOF {
			return t.s.size, nil
		} else if err != nil {
			return 0, err
		}
		if r.begin >= from {
			return r.begin, nil
		}
	}
}
