package file

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cne/data"
	"cne/internal/hdf5"
	"cne/internal/npy"
	"cne/internal/parquet"
	"cne/internal/selection"
)

// A format is one of the file formats that are read here.
type format struct {
	// magic is the beginning of its files, with letters in any case; "" for a format without.
	magic string
	// endings are the file name extensions. They are used if the content has no magic number.
	endings []string
	// anyOrder reports whether its files are read in any order. Pipes cannot be.
	anyOrder bool
	// open reads the head of points. It fails as kind.Need does, as the next two do; see caught.
	open func(in *Input, o *Options) reader
	// labels opens a file of labels; nil for text, or if the format has no such files.
	labels func(in *Input) *arrayReader
	// table reads the header of a table, whose columns can be text; nil for arrays.
	table func(in *Input, o *Options) table
}

// formats are all formats. The last one is the fallback.
var formats = []format{
	{zipMagic, []string{".npz"}, true, openNPZ, npzLabels, nil},
	{parquet.Magic, []string{".parquet"}, true, openParquet, nil, parquetTable},
	{mtxMagic, []string{".mtx"}, false, openMTX, nil, nil},
	{hdf5.Magic, []string{".h5ad", ".h5"}, true, openCells, nil, cellColumns},
	{npy.Magic, []string{".npy"}, false, npyHeader.open, npyHeader.labels, nil},
	{"\x00\x00", []string{".idx", "-ubyte"}, false, idxHeader.open, idxHeader.labels, nil},
	{"", []string{".csv", ".tsv", ".txt"}, false, openText, nil, textTable},
}

// Endings returns the endings of the names of files of points.
func Endings() []string {
	return slices.Concat(selection.Map(formats, func(f format) []string { return f.endings })...)
}

const (
	zipMagic = "PK\x03\x04"
	mtxMagic = "%%MatrixMarket"
)

// foreign are unsupported kinds of files that users may try, by their first bytes. In advice,
// {file} is the path in quotation marks, {open} what opens it in Python as text, {gzip} the import for this,
// and {table} the path without an ending.
var foreign = []struct {
	begins func(top []byte) bool
	advice string
}{
	{regexp.MustCompile(`(?i)^\x{feff}?\s*(%.*\s+)*@relation\s`).Match, "ARFF; convert it with python3 -c \"import csv, {gzip}re; " +
		`head, rows = re.split(r'(?im)^\s*@data.*', {open}.read(), maxsplit=1); ` +
		`names = map(''.join, re.findall(r'(?im)^\s*@attribute\s+(?:\x27(.*?)\x27\s|\x22(.*?)\x22\s|(\S+))', head)); ` +
		`rows = csv.reader([r for r in rows.splitlines() if r.strip() and r[0] not in '%'], quotechar=chr(39), escapechar=chr(92), skipinitialspace=True); ` +
		`csv.writer(open('{table}.csv', 'w')).writerows([names, *([v.strip('?') and v for v in r] for r in rows)])"`},
	{regexp.MustCompile(`^(?:SIMPLE  =|(?i:\x{feff}?\s*(<\?xml[^>]*>\s*)?(?s:<!--.*?-->\s*)*<VOTABLE\b))`).Match, "a FITS file or VOTable; convert it with python3 -c \"" +
		"from astropy.table import Table; Table.read({file}).write('{table}.csv')\", with the package astropy"},
	// A time such as 12:30 is no value of a column, unless others beside it are no times.
	{regexp.MustCompile(`^\x{feff}?([-+]?[.\d]+(e[-+]?\d+)?,?)*( +qid:\d+)?` + svmPairs + `* +\d+:(\d|\d{3,}|\d*[-+.eE][-+.\deE]*)` + svmPairs +
		`*( *(#.*)?\r?\n|` + svmPairs + `{9})`).Match, "in the format of svmlight; convert it with python3 -c \"import scipy.sparse, sklearn.datasets; " +
		"x, y = sklearn.datasets.load_svmlight_file({file}, multilabel=True); scipy.sparse.save_npz('{table}.npz', x); " +
		"open('{table}-labels.txt', 'w').writelines('+'.join('%.15g' % v for v in labels) + '\\n' for labels in y)\", for --labels"},
	{magic(zipMagic), "a zip archive within a gzip stream, or from a pipe; name the archive itself if it is an npz file, or else unpack it"},
	{magic(hdf5.Magic[:4], parquet.Magic), "an HDF5 or Parquet file within a gzip stream, or from a pipe; name the file itself, unpacked"},
	{magic("\xfd7zXZ", "BZh", "(\xb5/\xfd"), "compressed with xz, bzip2 or zstd; unpack it or compress it with gzip"},
	{magic("ARROW1", "FEA1"), "an Arrow (Feather) file; " + fromPython("{table}", "read_feather({file})")},
	{magic("MATLAB 5.0 MAT"), "a MATLAB file; in Python, numpy.save('{table}.npy', scipy.io.loadmat({file})['NAME']) makes an array of one of its variables"},
	{func(top []byte) bool {
		return len(top) > 262 && string(top[257:262]) == "ustar" && bytes.IndexByte(top[:257], 0) >= 0
	}, "a tar archive; unpack it, and name a file in it"},
	{magic("\x89PNG", "\xff\xd8\xff", "GIF8"), "an image; name a folder of images for \"cne simclr pretrain\", or features of images as .npy"},
	{magic("SQLite format 3\x00"), "an SQLite database; save a table of it as CSV"},
	{magic("\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"), "a pickle; save the array in it with numpy.save, or the table with its method to_csv"},
	{magic("\xd0\xcf\x11\xe0"), "an old Excel file; " + fromPython("{table}", "read_excel({file})")},
	{magic("<stata_dta>"), "a Stata file; " + fromPython("{table}", "read_stata({file})")},
	{magic("$FL2"), "an SPSS file; with the package pyreadstat, " + fromPython("{table}", "read_spss({file})")},
	{magic("X\n\x00\x00\x00"), "an R object; in R, write.csv(readRDS({file}), '{table}.csv', row.names = FALSE) makes a table of a data frame"},
	{magic("RDX"), "an R workspace; in R, load it, and write.csv(NAME, '{table}.csv', row.names = FALSE) makes a table of a data frame in it"},
}

// foreignZips are as foreign, archives with a file of some name.
var foreignZips = []struct{ member, advice string }{
	{"workbook.xml", "an Excel file; " + fromPython("{table}", "read_excel({file})")},
	{"content.xml", "an OpenDocument file; with the package odfpy, " + fromPython("{table}", "read_excel({file})")},
	{"data.pkl", "PyTorch's; in Python, numpy.save('{table}.npy', torch.load({file}).numpy()) makes an array of a tensor"},
}

const svmPairs = `( +\d+:[-+.\deE]+)`

// magic returns what reports whether a file begins with one of some texts, in letters of any
// case.
func magic(texts ...string) func(top []byte) bool {
	upper := func(c byte) byte { return c - selection.If[byte]('a' <= c && c <= 'z', 'a'-'A', 0) }
	return func(top []byte) bool {
		return slices.ContainsFunc(texts, func(s string) bool { // not by bytes.EqualFold, to which all bytes of no UTF-8 are equal
			return s != "" && slices.EqualFunc(top[:min(len(top), len(s))], []byte(s), func(a, b byte) bool { return upper(a) == upper(b) })
		})
	}
}

const wantUTF8 = "want UTF-8; save it as \"CSV UTF-8\" in Excel, or convert it with iconv -f UTF-16 -t UTF-8 FILE > NEW"

// inPython makes a path the inside of a string of Python that is the same to shells.
var inPython = strings.NewReplacer("'", `\x27`, `"`, `\x22`, "$", `\x24`, "`", `\x60`, `\`, `\x5c`, "!", `\x21`).Replace

// fromPython says how to make a table of a file; frame is the data frame that pandas makes.
func fromPython(path, frame string) string {
	return fmt.Sprintf(`convert it with python3 -c "import gzip, json, pandas; pandas.%s.to_csv('%s.csv', index=False)"`, frame, tableOf(path))
}

// tableOf returns the path, without an ending, of a table to be made of a file, as inPython does.
func tableOf(path string) string { return inPython(filepath.Join(filepath.Dir(path), NameOf(path))) }

// fromJSON says how to make a table of a file with the first bytes top, if it is JSON: a
// value on each line, or one value. Otherwise it returns "".
func fromJSON(path string, top []byte) string {
	line, rest, cut := bytes.Cut(bytes.TrimSpace(top), []byte("\n"))
	start, lines := string(bytes.Join(bytes.Fields(top[:min(len(top), 512)]), nil)), (json.Valid(line) || !cut) &&
		!slices.Contains([]string{"[[", "[{"}, string(line[:min(2, len(line))]))
	begins := func(with string) bool { return strings.HasPrefix(start, with) }
	if !slices.ContainsFunc([]string{"{\"", "[{", "[["}, begins) && !(begins("[") && cut && json.Valid(line)) {
		return ""
	}
	frame, open := "json.load(%s('%s'))", selection.If(strings.HasSuffix(path, ".gz"), "gzip.open", "open")
	if lines && (cut && len(rest) > 0 || strings.HasSuffix(unpackedName(path), "l")) {
		frame = "map(json.loads, %s('%s'))"
	}
	return fromPython(path, "DataFrame("+fmt.Sprintf(frame, open, inPython(path))+")")
}

// recognize returns the format of a named file, from its first bytes if possible and otherwise from
// its name.
func recognize(name string, in *Input) (*format, error) {
	head, err := in.r.Peek(userBlock + 4)
	if err != nil && err != io.EOF {
		return nil, explain(err)
	}
	if len(head) == 0 {
		return nil, errorf(data.ErrEmpty, "the file is empty")
	}
	name = cmp.Or(name, "FILE")
	quoted, packed := "'"+inPython(name)+"'", strings.HasSuffix(name, ".gz")
	fill := strings.NewReplacer("{file}", quoted, "{table}", tableOf(name), "{gzip}", selection.If(packed, "gzip, ", ""),
		"{open}", selection.If(packed, "gzip.open("+quoted+", 'rt')", "open("+quoted+")")).Replace
	if in.at != nil && magic(zipMagic)(head) {
		z, err := zip.NewReader(in.at, in.size)
		for _, other := range foreignZips {
			if err == nil && slices.ContainsFunc(z.File, func(f *zip.File) bool { return path.Base(f.Name) == other.member }) {
				return nil, errorf(data.ErrUnsupported, "the file is %s", fill(other.advice))
			}
		}
	}
	for i, f := range formats {
		if (magic(f.magic)(head) || f.magic == hdf5.Magic && isHDF5(head)) && (in.at != nil || !f.anyOrder) {
			return &formats[i], nil
		}
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, errorf(data.ErrFormat, "the file is text in UTF-16, "+wantUTF8)
	}
	top := in.Peek(readBuffer)
	if how := fromJSON(name, top); how != "" {
		return nil, errorf(data.ErrUnsupported, "the file is JSON; %s", how)
	}
	for _, f := range foreign {
		if f.begins(top) {
			return nil, errorf(data.ErrUnsupported, "the file is %s", fill(f.advice))
		}
	}
	isBinary := bytes.IndexByte(head, 0) >= 0 || areNumbers(top)
	for i, f := range formats {
		if f.hasEnding(name) && !f.anyOrder && (f.magic != "" || !isBinary) {
			return &formats[i], nil
		}
	}
	if isBinary {
		return nil, errorf(data.ErrUnsupported, "the file is neither IDX nor npy nor Parquet nor text in UTF-8; save the points with numpy.save, or as CSV; if it is text in UTF-16, "+wantUTF8)
	}
	return &formats[len(formats)-1], nil
}

// areNumbers reports whether the first bytes of a file are rather binary numbers
// than text: one in a hundred is a control character, and as many are not UTF-8.
func areNumbers(top []byte) bool {
	controls, invalid := 0, 0
	for i, r := range string(top) {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			controls++
		} else if r == utf8.RuneError && top[i] >= utf8.RuneSelf {
			invalid++
		}
	}
	return 100*min(controls, invalid) > len(top)
}

// hasEnding reports whether the name of a file has an extension of the format.
func (f *format) hasEnding(path string) bool {
	name := strings.ToLower(unpackedName(path))
	return slices.ContainsFunc(f.endings, func(ending string) bool { return strings.HasSuffix(name, ending) })
}

// Find returns the path of the first of the named files that a folder holds, plain or
// compressed, or "".
func Find(folder string, names ...string) string {
	for _, name := range names {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(folder, name+suffix)
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path
			}
		}
	}
	return ""
}

// FindEnding returns the paths of the files in a folder whose names end as given, plain or
// compressed: only the one with this name if it is there.
func FindEnding(folder, ending string) (paths []string) {
	if path := Find(folder, ending); path != "" {
		return []string{path}
	}
	entries, _ := os.ReadDir(folder) // of another folder, there are none
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(unpackedName(name), ending) {
			paths = append(paths, filepath.Join(folder, name))
		}
	}
	return paths
}

// IsMatrixMarket reports whether a file is a sparse matrix in the Matrix Market format. It
// does not open files with another format's extension, or pipes.
func IsMatrixMarket(path string) bool { return hasMagic(path, mtxMagic) }

// IsCells is IsMatrixMarket for HDF5, and so for files of single cells: of AnnData (.h5ad) or
// of 10x's programs (.h5).
func IsCells(path string) bool { return hasMagic(path, hdf5.Magic) }

func hasMagic(path, magic string) bool {
	if slices.ContainsFunc(formats, func(f format) bool { return f.magic != "" && f.magic != magic && f.hasEnding(path) }) {
		return false
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // reading from a pipe would consume data
	}
	in, f, err := source{path: path}.input(context.Background())
	if err != nil {
		return false
	}
	defer in.Close()
	return f.magic == magic
}

// unpackedName returns the name of a file without .gz.
func unpackedName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".gz") }

// NameOf makes a name for data out of the path of a file or folder.
func NameOf(path string) string {
	if name, ok := strings.CutPrefix(path, BuiltinPrefix); ok {
		return name
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // so that "." has a name
	}
	name := unpackedName(path)
	if stem := strings.TrimSuffix(name, filepath.Ext(name)); stem != "" {
		return stem
	}
	return name
}

// TrimEnding removes the ending (see Endings) and .gz from the path of a file of points.
// Other full stops in the name remain.
func TrimEnding(path string) string {
	cut := func(path string, endings ...string) string {
		if e := filepath.Ext(path); slices.Contains(endings, strings.ToLower(e)) && e != filepath.Base(path) {
			return strings.TrimSuffix(path, e)
		}
		return path
	}
	return cut(cut(path, ".gz"), Endings()...)
}
