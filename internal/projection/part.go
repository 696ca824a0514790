package projection

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne/data"
	"cne/internal/text"
	"cne/internal/version"
)

// The file of a part begins with partMagic. Then come blocks of positions, each with the
// number of its rows in 4 bytes and that of the bytes of its labels in 8 (all numbers have
// the least significant byte first), the positions as float32, the labels, each with
// its length as a varint before it, and a checksum of all these. Then come a Part as JSON,
// its length and checksum, and partMagic again.
const (
	partMagic = "cnepart1"
	tailSize  = 8 + int64(len(partMagic))
	maxAbout  = 1 << 26 // bytes of a Part
	maxParts  = 100_000
	frameHead = 4 + 8
	frameTail = 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Part says of what a part of positions is. Parts that agree in About are put together.
type Part struct {
	About
	Index  int         `json:"index"` // of the part, counted from 0
	Made   string      `json:"made"`  // the version of the program, and the instruction set and device that it used
	Rows   int         `json:"rows"`
	Bad    int         `json:"bad"` // rows without a position
	From   data.Border `json:"from"`
	To     data.Border `json:"to"`
	Partly bool        `json:"partly,omitempty"` // the end is missing
}

// About is what all parts of the same positions have in common.
type About struct {
	Model   string      `json:"model"` // checksum of its files
	Input   []InputFile `json:"input"`
	Reading Reading     `json:"reading"`
	Count   int         `json:"count"` // of the parts
	Dim     int         `json:"dim"`
	Labeled bool        `json:"labeled"`
}

// An InputFile is a file of points, or "builtin:" and a name.
type InputFile struct {
	Name    string    `json:"name"` // without its folder, which may have other names elsewhere
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modified"`
}

// Reading is how the files are read, and what becomes of points without a position.
type Reading struct {
	LabelColumn string   `json:"label_column,omitempty"`
	Drop        []string `json:"drop,omitempty"`
	Header      string   `json:"header,omitempty"`
	SkipBad     bool     `json:"skip_bad,omitempty"`
}

// difference says in which respect two parts differ, "" if in none.
func (a *About) difference(b *About) string {
	sameReading := a.Reading.LabelColumn == b.Reading.LabelColumn && slices.Equal(a.Reading.Drop, b.Reading.Drop) &&
		a.Reading.Header == b.Reading.Header && a.Reading.SkipBad == b.Reading.SkipBad
	switch {
	case a.Model != b.Model:
		return "another model"
	case len(a.Input) != len(b.Input):
		return "another input"
	case a.Count != b.Count:
		return fmt.Sprintf("another number of parts, %d and %d", a.Count, b.Count)
	case !sameReading:
		return "other options (--label-column, --drop, --header, --skip-bad)"
	case a.Dim != b.Dim || a.Labeled != b.Labeled:
		return "another kind"
	}
	for i, f := range a.Input {
		switch g := b.Input[i]; {
		case f.Name != g.Name || f.Size != g.Size:
			return "another input"
		case !f.ModTime.Equal(g.ModTime):
			return fmt.Sprintf("another state of the input: %s has changed in between", text.Printable(f.Name))
		}
	}
	return ""
}

// inputFiles looks at the input.
func inputFiles(paths []string) ([]InputFile, error) {
	if slices.ContainsFunc(paths, isBuiltin) {
		var all []InputFile
		for _, path := range paths {
			all = append(all, InputFile{Name: path})
		}
		return all, nil
	}
	files, err := data.Files(paths)
	if err != nil {
		return nil, err
	}
	var all []InputFile
	for _, f := range files {
		all = append(all, InputFile{filepath.Base(f.Path), f.Info.Size(), f.Info.ModTime().UTC()})
	}
	return all, nil
}

// madeBy says what makes positions, which may differ in their last bits between others.
func madeBy(set fmt.Stringer, device string) string {
	return fmt.Sprintf("cne %s, %s, %s", version.String(), set, device)
}

// ParseShard understands i/k. Errors go on where a sentence has said what is given.
func ParseShard(given string) (s data.Shard, err error) {
	index, count, ok := strings.Cut(given, "/")
	if ok {
		s.Index, err = strconv.Atoi(index)
		if err == nil {
			s.Count, err = strconv.Atoi(count)
		}
	}
	switch {
	case !ok || err != nil:
		return s, errors.New("but must be i/k, the number of a part and that of all parts, such as 0/4")
	case s.Count < 1 || s.Count > maxParts:
		return s, fmt.Errorf("but there can be 1 to %d parts", maxParts)
	case s.Index < 0 || s.Index >= s.Count:
		return s, fmt.Errorf("but the parts are numbered from 0 to %d", s.Count-1)
	}
	return s, nil
}

// Name returns the name of the file of a part of the positions that output names.
func Name(output string, shard data.Shard) string {
	digits := len(strconv.Itoa(shard.Count - 1))
	return fmt.Sprintf("%s.part-%0*d-of-%d", output, digits, shard.Index, shard.Count)
}

// A partWriter writes the file of a part.
type partWriter struct {
	Part
	path  string
	w     io.Writer
	frame []byte
}

func newPartWriter(path string, w io.Writer, p Part) (*partWriter, error) {
	_, err := io.WriteString(w, partMagic)
	return &partWriter{Part: p, path: path, w: w}, err
}

// write implements sink.
func (p *partWriter) write(m *data.Matrix, labels []string) error {
	b := binary.LittleEndian.AppendUint32(p.frame[:0], uint32(m.N))
	b = binary.LittleEndian.AppendUint64(b, 0)
	for _, v := range m.X {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	before := len(b)
	for _, label := range labels {
		b = binary.AppendUvarint(b, uint64(len(label)))
		b = append(b, label...)
	}
	binary.LittleEndian.PutUint64(b[4:], uint64(len(b)-before))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	p.frame = b
	p.Rows += m.N
	_, err := p.w.Write(b)
	return notWritten(p.path, err)
}

// close writes what is known of the part at its end.
func (p *partWriter) close() error {
	b, err := json.Marshal(&p.Part)
	if err != nil {
		return err
	}
	n, sum := uint32(len(b)), crc32.Checksum(b, castagnoli)
	b = binary.LittleEndian.AppendUint32(b, n)
	b = binary.LittleEndian.AppendUint32(b, sum)
	_, err = p.w.Write(append(b, partMagic...))
	return notWritten(p.path, err)
}

// A partReader reads the file of a part.
type partReader struct {
	Part
	path   string
	file   io.Closer
	blocks *io.SectionReader
	r      *bufio.Reader
	left   int64 // bytes of blocks
	rows   int   // read
	buf    []byte
}

// errDamaged is wrapped by the error of a file that is no part, or not as it was written.
var errDamaged = errors.New("damaged")

func damaged(path, how string) error {
	return fmt.Errorf("%s is not as a part was written (%w: %s); remove it and place that part again", path, errDamaged, how)
}

// openPart reads what a file of a part says of itself.
func openPart(path string) (*partReader, error) {
	// Opening a pipe would wait for whoever writes to it.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, damaged(path, "no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r *partReader
	info, err := f.Stat()
	if err == nil {
		r, err = readPart(path, f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	r.file = f
	return r, nil
}

func readPart(path string, f io.ReaderAt, size int64) (*partReader, error) {
	begin := int64(len(partMagic))
	head, tail := make([]byte, begin), make([]byte, tailSize)
	if size < begin+tailSize {
		return nil, damaged(path, "it is cut off")
	}
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(tail, size-tailSize); err != nil {
		return nil, err
	}
	if string(head) != partMagic || string(tail[8:]) != partMagic {
		return nil, damaged(path, "it does not begin or end as one")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > min(maxAbout, size-begin-tailSize) {
		return nil, damaged(path, "its end is longer than the file")
	}
	about := make([]byte, n)
	if _, err := f.ReadAt(about, size-tailSize-n); err != nil {
		return nil, err
	}
	if crc32.Checksum(about, castagnoli) != binary.LittleEndian.Uint32(tail[4:]) {
		return nil, damaged(path, "the checksum of its end does not agree")
	}
	r := &partReader{path: path, blocks: io.NewSectionReader(f, begin, size-begin-tailSize-n)}
	if err := json.Unmarshal(about, &r.Part); err != nil {
		return nil, damaged(path, "its end cannot be understood")
	}
	if r.Dim < 1 || r.Dim > maxAbout || r.Rows < 0 || r.Count < 1 || r.Index < 0 || r.Index >= r.Count {
		return nil, damaged(path, "its numbers are impossible")
	}
	r.r = bufio.NewReaderSize(nil, 1<<16)
	return r, r.rewind()
}

// rewind goes back to the first block.
func (r *partReader) rewind() error {
	_, err := r.blocks.Seek(0, io.SeekStart)
	r.r.Reset(r.blocks)
	r.left, r.rows = r.blocks.Size(), 0
	return err
}

// next returns the next block, which is valid until it is called again; io.EOF after the
// last.
func (r *partReader) next() (*data.Matrix, []string, error) {
	if r.left == 0 {
		if r.rows != r.Rows {
			return nil, nil, damaged(r.path, fmt.Sprintf("it has %d rows in place of %d", r.rows, r.Rows))
		}
		return nil, nil, io.EOF
	}
	head, err := r.r.Peek(frameHead)
	if err != nil {
		return nil, nil, damaged(r.path, "a block is cut off")
	}
	rows, labelBytes := int64(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint64(head[4:])
	if rows == 0 || rows > r.left/4/int64(r.Dim) || labelBytes > uint64(r.left) || frameHead+4*rows*int64(r.Dim)+int64(labelBytes)+frameTail > r.left {
		return nil, nil, damaged(r.path, "a block is longer than the file")
	}
	total := int(frameHead + 4*rows*int64(r.Dim) + int64(labelBytes) + frameTail)
	r.buf = slices.Grow(r.buf[:0], total)[:total]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return nil, nil, err
	}
	r.left -= int64(total)
	content := r.buf[:total-frameTail]
	if crc32.Checksum(content, castagnoli) != binary.LittleEndian.Uint32(r.buf[total-frameTail:]) {
		return nil, nil, damaged(r.path, "the checksum of a block does not agree")
	}
	m := data.NewMatrix(int(rows), r.Dim)
	for i := range m.X {
		m.X[i] = math.Float32frombits(binary.LittleEndian.Uint32(content[frameHead+4*i:]))
	}
	labels, err := r.labels(content[frameHead+4*len(m.X):], m.N)
	r.rows += m.N
	return m, labels, err
}

// labels takes the labels of n rows apart.
func (r *partReader) labels(b []byte, n int) (labels []string, err error) {
	for r.Labeled && len(labels) < n {
		length, size := binary.Uvarint(b)
		if size <= 0 || length > uint64(len(b)-size) {
			return nil, damaged(r.path, "a label is cut off")
		}
		labels = append(labels, string(b[size:size+int(length)]))
		b = b[size+int(length):]
	}
	if len(b) > 0 {
		return nil, damaged(r.path, "there are more labels than rows")
	}
	return labels, nil
}

// each calls f with all blocks.
func (r *partReader) each(f func(m *data.Matrix, labels []string) error) error {
	if err := r.rewind(); err != nil {
		return err
	}
	for {
		m, labels, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(m, labels); err != nil {
			return err
		}
	}
}

// check reads all blocks.
func (r *partReader) check() error {
	return r.each(func(*data.Matrix, []string) error { return nil })
}

func (r *partReader) close() { r.file.Close() }
