package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// small is what keeps a run of train short and quiet.
const small = "--epochs 4 --set output.plot=false -q"

// A bad file is one that is no points, with the reason that has to be given.
type bad struct {
	name    string // of the file
	content []byte
	message string
}

// badFiles returns a trial for each of some files: a command line, in which %s stands for
// the file's name, has to refuse it and to name it.
func badFiles(group, line string, files []bad) []trial {
	var all []trial
	for _, f := range files {
		all = append(all, trial{group + "/" + f.name, func(w *world) {
			w.write(f.name, f.content)
			res := w.refused(fmt.Sprintf(line, f.name), f.message)
			if !strings.Contains(res.last(), f.name) {
				w.fail("the message does not name %s: %s", f.name, res.last())
			}
		}})
	}
	return all
}

// onPoints is the command line for files of points.
const onPoints = "cne train " + small + " --set data.path=%s -o run"

// A form is a file that holds the very points of another.
type form struct {
	name    string
	content []byte
	options string
}

// sameForms returns a trial for each of some files, which have to give the embedding that
// the points give as an array of float32.
func sameForms(points table, files []form) []trial {
	var all []trial
	for _, f := range files {
		all = append(all, trial{"form/" + f.name, func(w *world) {
			dir, _ := w.base(fmt.Sprintf("forms of %d points", len(points)), func(u *world) { u.write("x.npy", points.npy()) },
				fmt.Sprintf(onPoints, "x.npy"))
			w.write(f.name, f.content)
			w.ok(fmt.Sprintf(onPoints, f.name) + " " + f.options)
			w.sameAs(dir, "run/embedding.npy", "run/graph.npz")
		}})
	}
	return all
}

// columnwise returns the values of points column by column.
func columnwise(t table) []float32 {
	var out []float32
	for j := range t[0] {
		for i := range t {
			out = append(out, t[i][j])
		}
	}
	return out
}

// floats64 returns the values of points in float64.
func floats64(t table) []float64 {
	var out []float64
	for _, v := range t.flat() {
		out = append(out, float64(v))
	}
	return out
}

// arrayTrials are about npy and IDX.
func arrayTrials() []trial {
	p := blobs(60, 4)
	raw := little(p.flat())
	with := func(at int, v float32) []byte {
		q := p.mapped(func(i, j int, old float32) float32 {
			if 4*i+j == at {
				return v
			}
			return old
		})
		return q.npy()
	}
	files := []bad{
		{"magic-only.npy", cut(p.npy(), 6), "ends|truncated"},
		{"half-a-header.npy", cut(p.npy(), 40), "ends|truncated"},
		{"header-only.npy", cut(p.npy(), 128), "ends|truncated|fewer"},
		{"mid-row.npy", cut(p.npy(), -7), "ends|truncated"},
		{"a-row-short.npy", cut(p.npy(), -16), "ends|truncated"},
		{"two-arrays.npy", slices.Concat(p.npy(), p.npy()), "more in the file"},
		{"negative-rows.npy", npy("<f4", "(-60, 4)", raw), "header|shape"},
		{"negative-columns.npy", npy("<f4", "(60, -4)", raw), "header|shape"},
		{"rows-2e62.npy", npy("<f4", "(4611686018427387904, 4)", raw), "header|large|ends|truncated"},
		{"overflow-to-zero.npy", npy("<f4", "(4294967296, 4294967296)", raw), "header|large|ends|truncated|shape"},
		{"beyond-int64.npy", npy("<f4", "(99999999999999999999, 4)", raw), "header"},
		{"one-dimension.npy", npy("<f4", "(240,)", raw), "shape|dimension"},
		{"a-scalar.npy", npy("<f4", "()", raw[:4]), "single number"},
		{"no-rows.npy", npy("<f4", "(0, 4)", nil), "no (points|data|values)|at least one|holds no"},
		{"no-columns.npy", npy("<f4", "(60, 0)", nil), "no (points|data|values)|at least one|holds no"},
		{"objects.npy", npy("|O", "(60, 4)", []byte("\x80\x04K\x01.")), "dtype"},
		{"complex.npy", npy("<c8", "(30, 4)", raw), "dtype"},
		{"words.npy", npy("<U4", "(15, 4)", raw), "texts"},
		{"dates.npy", npy("<M8[ns]", "(30, 4)", raw), "dtype"},
		{"long-double.npy", npy("<f16", "(15, 4)", raw), "dtype"},
		{"no-order.npy", npy("f4", p.shape(), raw), "dtype"},
		{"big-endian-cut.npy", cut(npy(">f4", p.shape(), big(p.flat())), -7), "ends|truncated"},
		{"half-infinite.npy", npy("<f2", "(60, 4)", bytes.Repeat([]byte{0, 0x7c}, 240)), "Inf|finite"},
		{"column-by-column-cut.npy", cut(npyHeaded("{'descr': '<f4', 'fortran_order': True, 'shape': (60, 4), }", little(columnwise(p))), -7), "ends|truncated"},
		{"column-by-column-2e40.npy", npyHeaded("{'descr': '<f4', 'fortran_order': True, 'shape': (1048576, 1048576), }", raw), "ends|truncated"},
		{"record.npy", npyHeaded("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (120,), }", raw), "structured"},
		{"version-9.npy", patched(p.npy(), 6, 9), "version"},
		{"header-beyond-the-end.npy", patched(p.npy(), 8, 0xff, 0xff), "header|ends|truncated"},
		{"no-dictionary.npy", npyHeaded("['descr']", raw), "header"},
		{"no-dtype.npy", npyHeaded("{'fortran_order': False, 'shape': (60, 4), }", raw), "header"},
		{"two-shapes.npy", npyHeaded("{'descr': '<f4', 'fortran_order': False, 'shape': (60, 4), 'shape': (30, 8), }", raw), "header"},
		{"code-in-header.npy", npyHeaded("{'descr': '<f4', 'fortran_order': False, 'shape': (60, 2*2), }", raw), "header"},
		{"shape-in-words.npy", npyHeaded("{'descr': '<f4', 'fortran_order': False, 'shape': ('60', '4'), }", raw), "header"},
		{"control-in-header.npy", npyHeaded("{'descr': '<f4\x1b[31m\x07', 'fortran_order': False, 'shape': (60, 4), }", raw), "dtype|header"},
		{"deep-header.npy", npyHeaded(strings.Repeat("(", 30000), raw), "header"},
		{"nan.npy", with(30, float32(math.NaN())), "NaN|finite"},
		{"inf-in-last.npy", with(239, float32(math.Inf(1))), "Inf|finite"},
		{"minus-inf-in-first.npy", with(0, float32(math.Inf(-1))), "Inf|finite"},
		{"float64-beyond-float32.npy", npy("<f8", "(60, 4)", patched(little(floats64(p)), 8*100, little(1e300)...)), "too large|float32|1e\\+?300|finite"},
		{"text-called.npy", p.csv(",", "\n"), "npy"},
		{"empty.npy", nil, "empty"},
		{"zeros.npy", make([]byte, 4096), "IDX|npy"},

		{"kind-0f.idx", idx(0x0f, raw, 60, 4), "IDX"},
		{"no-dimensions.idx", idx(0x0d, raw), "IDX|dimension|shape"},
		{"255-dimensions.idx", patched(idx(0x0d, raw, 60, 4), 3, 255), "dimension|size|large|ends|truncated"},
		{"sizes-beyond.idx", idx(0x0d, big(p.flat()), 4000000000, 4000000000), "impossible shape"},
		{"size-zero.idx", idx(0x0d, nil, 0, 4), "no (points|data|values)|at least one|holds no"},
		{"truncated.idx", cut(idx(0x0d, big(p.flat()), 60, 4), -3), "ends|truncated"},
		{"trailing.idx", slices.Concat(idx(0x0d, big(p.flat()), 60, 4), []byte("x")), "more in the file"},
		{"three-bytes.idx", []byte{0, 0, 8}, "fewer than"},
		{"nan.idx", idx(0x0d, patched(big(p.flat()), 400, 0x7f, 0xc0, 0, 1), 60, 4), "NaN|finite"},
	}
	all := badFiles("array", onPoints, files)
	all = append(all, sameForms(p, []form{
		{"float64.npy", npy("<f8", p.shape(), little(floats64(p))), ""},
		{"big-endian.npy", npy(">f4", p.shape(), big(p.flat())), ""},
		{"column-by-column.npy", npyHeaded("{'descr': '<f4', 'fortran_order': True, 'shape': (60, 4), }", little(columnwise(p))), ""},
		{"version-2.npy", slices.Concat([]byte("\x93NUMPY\x02\x00"), little(uint32(118)), p.npy()[10:]), ""},
		{"keys-in-another-order.npy", npyHeaded(`{"shape":(60,4),"descr":"<f4","fortran_order":False}`, raw), ""},
		{"four-dimensions.npy", npy("<f4", "(60, 2, 1, 2)", raw), ""},
		{"single.idx", idx(0x0d, big(p.flat()), 60, 4), ""},
		{"double.idx", idx(0x0e, big(floats64(p)), 60, 2, 2), ""},
		{"x.npy.gz", gz(p.npy()), ""},
		{"an-array-without-an-ending", p.npy(), ""},
		{"an-array-called.csv", p.npy(), ""},
		{"comma.csv", p.csv(",", "\n"), ""},
		{"semicolon.csv", p.csv(";", "\n"), ""},
		{"tab.tsv", p.csv("\t", "\n"), ""},
		{"windows.csv", p.csv(",", "\r\n"), ""},
		{"byte-order-mark.csv", slices.Concat([]byte("\ufeff"), p.csv(",", "\n", "a", "b", "c", "d")), ""},
		{"no-last-line-ending.csv", bytes.TrimRight(p.csv(",", "\n"), "\n"), ""},
		{"quoted.csv", quotedFields(p), ""},
		{"blank-lines.csv", bytes.ReplaceAll(p.csv(",", "\n"), []byte("\n"), []byte("\n\n")), ""},
		{"padded.csv", p.csv(" , ", " \n"), ""},
		{"many-digits.csv", bytes.ReplaceAll(p.csv(",", "\n"), []byte(","), []byte("e+0000000000000000000000000,")), ""},
		{"with-labels-dropped.csv", withColumn(p, "kind", func(i int) string { return "ab"[i%2 : i%2+1] }), "--set data.drop=[kind]"},
		{"with-label-column.csv", withColumn(p, "kind", func(i int) string { return `"a, ""b"""` }), "--set data.label_column=-1"},
		{"x.npz", npz(member{"x.npy", p.npy()}), ""},
		{"deflated.npz", zipped(zip.Deflate, member{"x.npy", p.npy()}), ""},
		{"with-labels.npz", npz(member{"y.npy", npy("<i8", "(60,)", make([]byte, 480))}, member{"x.npy", p.npy()}), ""},
		{"without-names.npz", npz(member{"arr_0.npy", p.npy()}), ""},
	})...)
	// A gzip file may have several members, which are one stream.
	text := p.csv(",", "\n")
	all = append(all, sameForms(p, []form{{"members.csv.gz", slices.Concat(gz(text[:500]), gz(text[500:])), ""}})...)
	return all
}

// quotedFields returns points as text with quotation marks around each value.
func quotedFields(t table) []byte {
	var b strings.Builder
	for _, row := range t {
		b.WriteString(`"` + strings.Join(fieldsOf(row), `","`) + "\"\n")
	}
	return []byte(b.String())
}

// columnsReversed returns points with their last column first.
func columnsReversed(t table) table {
	return t.mapped(func(i, j int, _ float32) float32 { return t[i][len(t[i])-1-j] })
}

// withColumn returns points as text with a header a, b, c, d and a further column.
func withColumn(t table, name string, value func(i int) string) []byte {
	var b strings.Builder
	b.WriteString("a,b,c,d," + name + "\n")
	for i, row := range t {
		b.WriteString(strings.Join(append(fieldsOf(row), value(i)), ",") + "\n")
	}
	return []byte(b.String())
}

// archiveTrials are about gzip and npz.
func archiveTrials() []trial {
	p := blobs(60, 4)
	x := member{"x.npy", p.npy()}
	sound := npz(x)
	bomb := slices.Concat(npy("<f4", "(60, 4)", little(p.flat())), make([]byte, 64<<20))
	huge := npy("<f4", "(1000000000, 32)", nil) // 128 GB of points, it says
	return append(badFiles("archive", onPoints, []bad{
		{"cut.csv.gz", cut(gz(p.csv(",", "\n")), -30), "gzip.*ends|damaged"},
		{"cut-in-trailer.npy.gz", cut(gz(p.npy()), -4), "gzip.*ends|damaged"},
		{"wrong-sum.npy.gz", patched(gz(p.npy()), -8, 1, 2, 3, 4), "gzip.*damaged"},
		{"wrong-length.npy.gz", patched(gz(p.npy()), -4, 1, 2, 3, 4), "gzip.*damaged"},
		{"garbage-behind.npy.gz", slices.Concat(gz(p.npy()), []byte("garbage")), "gzip"},
		{"header-only.gz", cut(gz(nil), 10), "gzip.*ends|damaged"},
		{"nothing-inside.gz", gz(nil), "empty"},
		{"twice.npy.gz", gz(gz(p.npy())), "gzip|twice|neither"},
		{"flipped-bit.npy.gz", patched(gz(p.npy()), 60, 0xaa), "gzip.*(damaged|ends)"},
		{"bomb.npy.gz", gz(bomb), "more in the file"},
		{"a-line-of-64-mb.csv.gz", gz(make([]byte, 64<<20)), "IDX|text|neither|dimension"},
		{"a-field-of-64-mb.csv.gz", gz(bytes.Repeat([]byte("1"), 64<<20)), "long|large|number|field|bytes"},

		{"no-members.npz", npz(), "holds no array|neither"},
		{"only-text.npz", npz(member{"readme.txt", []byte("hello")}), "holds no array"},
		{"in-a-folder.npz", npz(member{"a/x.npy", p.npy()}, member{"b/x.npy", p.npy()}), "holds no array"},
		{"not-the-right-names.npz", npz(member{"a.npy", p.npy()}, member{"b.npy", p.npy()}), "holds no array"},
		{"control-names.npz", npz(member{"a\x1b[2J\n\x07.npy", p.npy()}, member{"b\u202e.npy", p.npy()}), "holds no array"},
		{"thousand-long-names.npz", npz(longNames(1000)...), "holds no array"},
		{"not-an-array.npz", npz(member{"x.npy", []byte("hello")}), "x.npy"},
		{"empty-array.npz", npz(member{"x.npy", nil}), "x.npy"},
		{"cut-array.npz", npz(member{"x.npy", cut(p.npy(), -5)}), "x.npy"},
		{"array-with-more.npz", npz(member{"x.npy", slices.Concat(p.npy(), []byte("zz"))}), "x.npy"},
		{"no-directory.npz", cut(sound, len(sound)-60), "zip"},
		{"damaged-content.npz", patched(sound, 300, 0xff), "damaged|checksum"},
		{"wrong-name-in-directory.npz", bytes.Replace(sound, []byte("PK\x01\x02"), []byte("PK\x01\x03"), 1), "zip"},
		{"unknown-method.npz", bytes.ReplaceAll(sound, []byte("\x00\x00\x00\x00x.npy"), []byte("\x00\x00\x00\x00x.npy"))[:len(sound)-3], "zip"},
		{"bomb.npz", zipped(zip.Deflate, member{"x.npy", bomb}), "x.npy.*more"},
		{"labels-too-few.npz", npz(x, member{"y.npy", npy("<i8", "(59,)", make([]byte, 59*8))}), "59.*60|60.*59"},
		{"labels-too-many.npz", npz(x, member{"labels.npy", npy("<i8", "(61,)", make([]byte, 61*8))}), "61.*60|60.*61"},
		{"labels-2-d.npz", npz(x, member{"y.npy", npy("<i8", "(30, 2)", make([]byte, 480))}), "y.npy"},
		{"labels-objects.npz", npz(x, member{"y.npy", npy("|O", "(60,)", make([]byte, 480))}), "y.npy"},
		{"an-archive-in-gzip.npz.gz", gz(sound), "zip archive"},
	}),
		trial{"archive/promises-128-gb", func(w *world) {
			w.write("a.npy.gz", gz(huge))
			w.write("b.npz", zipped(zip.Deflate, member{"x.npy", huge}))
			w.write("m.safetensors", safetensors(network()...))
			for _, name := range []string{"a.npy.gz", "b.npz"} {
				w.refused(fmt.Sprintf(onPoints, name), "ends|truncated|1000000000 rows")
				w.refused("cne project -q --model m.safetensors "+name+" -o out.npy", "values")
				w.refused("cne evaluate -q "+name+" --data "+name, "ends|truncated|memory")
			}
		}},
	)
}

// longNames returns n members with long names.
func longNames(n int) []member {
	all := make([]member, n)
	for i := range all {
		all[i].name = fmt.Sprintf("%s%d.npy", strings.Repeat("long", 200), i)
	}
	return all
}

// tableTrials are about CSV and TSV.
func tableTrials() []trial {
	p := blobs(60, 4)
	text := string(p.csv(",", "\n"))
	line := func(n int, replacement string) []byte { // with a line replaced, counted from 1
		all := strings.SplitAfter(text, "\n")
		all[n-1] = replacement + "\n"
		return []byte(strings.Join(all, ""))
	}
	utf16le := func(s string) []byte {
		return append([]byte{0xff, 0xfe}, little(utf16.Encode([]rune(s)))...)
	}
	all := badFiles("table", onPoints, []bad{
		{"one-field-more.csv", line(20, "1,2,3,4,5"), "line 20.*5 fields"},
		{"one-field-less.csv", line(60, "1,2,3"), "line 60.*3 fields"},
		{"trailing-comma.csv", line(33, "1,2,3,4,"), "line 33"},
		{"open-quote.csv", line(10, `1,"2,3,4`), "line|quot"},
		{"quote-in-field.csv", line(10, `1,2"3",3,4`), "line 10"},
		{"nan.csv", line(7, "1,nan,3,4"), "line 7.*finite"},
		{"infinity.csv", line(7, "1,2,-Infinity,4"), "line 7.*finite"},
		{"na.csv", line(7, "1,NA,3,4"), "line 7"},
		{"missing.csv", line(7, "1,,3,4"), "line 7.*empty"},
		{"too-large.csv", line(7, "1,1e39,3,4"), "line 7.*float32"},
		{"far-too-large.csv", line(7, "1,1e999,3,4"), "line 7"},
		{"hexadecimal.csv", line(7, "1,0x1p4,3,4"), "line 7.*number"},
		{"underscore.csv", line(7, "1,0x_1p-2,3,4"), "line 7.*number"},
		{"underscores.csv", line(7, "1,1_000,3,4"), "line 7.*number"},
		{"arabic-digits.csv", line(7, "1,٣,3,4"), "line 7.*number"},
		{"full-width-digits.csv", line(7, "1,２,3,4"), "line 7.*number"},
		{"unicode-minus.csv", line(7, "1,−2,3,4"), "line 7.*number"},
		{"thousands.csv", line(7, `1,"1,000",3,4`), "line 7"},
		{"percent.csv", line(7, "1,50%,3,4"), "line 7.*number"},
		{"control.csv", line(7, "1,\x1b[31mred\x1b[0m,3,4"), "line 7"},
		{"invisible.csv", line(7, "1,2\u200b,3,4"), "line 7"},
		{"right-to-left.csv", line(7, "1,\u202e2,3,4"), "line 7"},
		{"not-utf8.csv", line(7, "1,\xff\xfe,3,4"), "line 7"},
		{"a-long-field.csv", line(7, "1,"+strings.Repeat("z", 200000)+",3,4"), "line 7"},
		{"nul.csv", line(2, "1,2\x00,3,4"), "text|line 2|neither"},
		{"utf-16.csv", utf16le(text), "text|UTF-8|neither"},
		{"only-newlines.csv", []byte("\n\n\n\r\n"), "no lines"},
		{"only-a-mark.csv", []byte("\ufeff"), "no lines|empty"},
		{"only-a-header.csv", []byte("a,b,c,d\n"), "header but no points"},
		{"only-commas.csv", []byte(",,,\n,,,\n"), "empty"},
		{"two-headers.csv", []byte("a,b,c,d\nu,v,w,x\n" + text), "line 2.*number"},
		{"comment.csv", []byte("# made by hand\n" + text), "line"},
		{"html.csv", []byte("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n"), "line 2|number"},
		{"words.csv", []byte(strings.Repeat("true,false\n", 60)), "number"},
		{"mixed-separators.csv", line(30, "1;2;3;4"), "line 30"},
		{"old-mac.csv", []byte(strings.ReplaceAll(text, "\n", "\r")), "line|number"},
		{"json-called.csv", []byte(`{"a": [1, 2, 3]}`), "line|number|points"},
		{"pickle-called.csv", []byte("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94"), "text|neither"},
		{"parquet-called.csv", []byte("PAR1\x15\x04\x15\x10PAR1"), "Parquet"},
	})
	options := []struct{ name, header, options, message string }{
		{"no-such-label-column", "a,b,c,d", "--set data.label_column=kind", `column.*kind`},
		{"label-column-0", "a,b,c,d", "--set data.label_column=0", "column.*0"},
		{"label-column-minus-99", "a,b,c,d", "--set data.label_column=-99", "column.*-99"},
		{"label-column-2e70", "a,b,c,d", "--set data.label_column=99999999999999999999", "column"},
		{"label-column-control", "a,b,c,d", "--set data.label_column=$'a\\e[2Jb'", "column"},
		{"all-columns-dropped", "a,b,c,d", "--set data.drop=[1,2,3,-1]", "no column is left"},
		{"label-column-dropped", "a,b,c,d", "--set data.label_column=a --set data.drop=[1]", "both|column"},
		{"name-of-two-columns", "a,b,a,d", "--set data.label_column=a", "both called"},
		{"blank-names", ",,,", "--set data.header=yes --set 'data.label_column=\" \"'", "column"},
		{"header-no-with-names", "a,b,c,d", "--set data.header=no", "line 1.*number"},
		{"column-without-header", "", "--set data.header=no --set data.drop=[a]", "header"},
		{"labels-twice", "a,b,c,d", "--set data.label_column=a --set data.labels=[l.txt]", "labels.*(twice|both)|both"},
	}
	for _, o := range options {
		all = append(all, trial{"table/" + o.name, func(w *world) {
			head := o.header
			if head != "" {
				head += "\n"
			}
			w.text("x.csv", head+text)
			w.text("l.txt", lines(60, func(i int) string { return "ab"[i%2 : i%2+1] }))
			w.refused(fmt.Sprintf(onPoints, "x.csv")+" "+o.options, o.message)
		}})
	}
	wide := blobs(40, 3000)
	all = append(all,
		trial{"table/width-3000", func(w *world) {
			w.write("x.csv", wide.csv(",", "\n"))
			w.write("x.npy", wide.npy())
			w.ok(fmt.Sprintf(onPoints, "x.csv"))
			w.ok("cne train " + small + " --set data.path=x.npy -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}},
		trial{"table/latin-1-header", func(w *world) {
			// Names that are not UTF-8 cannot be kept as they are, and are found again.
			w.write("x.csv", p.csv(",", "\n", "gr\xf6\xdfe", "gr\xe4\xdfe", "l\xe4nge", "d"))
			w.ok(fmt.Sprintf(onPoints, "x.csv") + " --set model.kind=mlp && cne project -q --model run x.csv -o out.npy")
			w.same("out.npy", "run/embedding.npy")
			w.write("y.csv", columnsReversed(p).csv(",", "\n", "d", "l\xe4nge", "gr\xe4\xdfe", "gr\xf6\xdfe"))
			w.ok("cne project -q --model run y.csv -o out2.npy")
			w.same("out2.npy", "out.npy")
		}},
		trial{"table/columns-of-one-name", func(w *world) {
			// Which of two columns of one name is meant cannot be told by name.
			w.write("x.csv", p.csv(",", "\n", "a", "a", "b", "b"))
			w.ok(fmt.Sprintf(onPoints, "x.csv") + " --set model.kind=mlp")
			if res := w.run("cne project -q --model run x.csv -o out.npy", effects{refused: true}); res.code == 0 {
				w.same("out.npy", "run/embedding.npy")
			}
			w.write("y.csv", columnsReversed(p).csv(",", "\n", "b", "b", "a", "a"))
			w.refused("cne project -q --model run y.csv -o out2.npy", "column")
		}},
		trial{"table/columns-in-another-order", func(w *world) {
			w.write("x.csv", p.csv(",", "\n", "a", "b", "c", "d"))
			w.write("y.csv", columnsReversed(p).csv(";", "\r\n", "d", "c", "b", "a"))
			w.ok(fmt.Sprintf(onPoints, "x.csv") + " --set model.kind=mlp && for f in x y; do cne project -q --model run $f.csv -o out$f.npy || exit; done")
			w.same("outx.npy", "outy.npy")
		}},
		trial{"table/columns-with-other-names", func(w *world) {
			w.write("x.csv", p.csv(",", "\n", "a", "b", "c", "d"))
			w.write("y.csv", p.csv(",", "\n", "a", "b", "c", "e"))
			w.ok(fmt.Sprintf(onPoints, "x.csv") + " --set model.kind=mlp")
			w.refused("cne project -q --model run y.csv -o out.npy", "y.csv.*\"?d\"?")
			w.refused("cne train "+small+" --set data.path=x.csv --set data.holdout=y.csv -o run2", "y.csv.*\"?d\"?")
		}},
		trial{"table/a-column-more", func(w *world) {
			w.write("x.csv", p.csv(",", "\n", "a", "b", "c", "d"))
			w.write("y.csv", withColumn(p, "e", func(i int) string { return "7" }))
			w.ok(fmt.Sprintf(onPoints, "x.csv") + " --set model.kind=mlp && cne project -q --model run x.csv -o out.npy")
			if res := w.run("cne project --model run y.csv -o out2.npy", effects{refused: true}); res.code == 0 {
				w.same("out.npy", "out2.npy")
				if !strings.Contains(res.stderr, "e") {
					w.fail("a column is left out without a word")
				}
			}
		}},
		trial{"table/files-of-other-columns", func(w *world) {
			w.write("a.csv", p.csv(",", "\n", "a", "b", "c", "d"))
			w.write("b.csv", p.csv(",", "\n", "d", "c", "b", "a"))
			w.refused("cne train "+small+" --set data.path=[a.csv,b.csv] -o run", "b.csv.*column")
		}},
		trial{"table/files-of-other-widths", func(w *world) {
			w.write("a.csv", p.csv(",", "\n"))
			w.write("b.npy", blobs(60, 5).npy())
			w.refused("cne train "+small+" --set data.path=[a.csv,b.npy] -o run", "b.npy.*5.*4|b.npy.*4.*5")
		}},
		trial{"table/numbers-as-header-are-told", func(w *world) {
			// 0,1,2,3 above values: what pandas writes, and what no person would notice.
			w.text("x.csv", "0,1,2,3\n"+text)
			w.says("cne train --epochs 4 --set output.plot=false --set data.path=x.csv -o run", "(?i)header|names|first line")
		}},
	)
	return all
}

// labelTrials are about files with labels.
func labelTrials() []trial {
	p := blobs(60, 4)
	files := []bad{
		{"too-few.txt", []byte(lines(59, func(int) string { return "a" })), "59.*60|60.*59"},
		{"too-many.txt", []byte(lines(62, func(int) string { return "a" })), "62.*60|60.*62"},
		{"empty.txt", nil, "empty"},
		{"blank.txt", []byte("\n\n\n"), "label"},
		{"two-d.npy", npy("<i8", "(60, 2)", make([]byte, 960)), "shape|dimension|label"},
		{"complex.npy", npy("<c16", "(60,)", make([]byte, 960)), "dtype"},
		{"cut.npy", cut(npy("<i8", "(60,)", make([]byte, 480)), -1), "ends|truncated"},
		{"negative-rows.npy", npy("<i8", "(-60,)", make([]byte, 480)), "header|shape"},
		{"images.idx", idx(8, make([]byte, 240), 60, 2, 2), "dimension|shape|label"},
		{"not-text.bin", []byte("\x00\x01\x02\xff\xfe"), "label|text|neither|IDX"},
	}
	var all []trial
	for _, f := range files {
		all = append(all, trial{"labels/" + f.name, func(w *world) {
			w.write("x.npy", p.npy())
			w.write(f.name, f.content)
			w.refused("cne train "+small+" --set data.path=x.npy -o run --set data.labels="+f.name, f.message)
		}})
	}
	all = append(all, trial{"labels/classes-that-look-like-numbers", func(w *world) {
		// 1_2 and 12 are two classes, whatever a language makes of underscores; so are
		// 0x10 and 16. 1e1 and 10.0 are one.
		names := []string{"1_2", "12", "0x10", "16"}
		w.write("x.npy", p.npy())
		w.text("l.txt", lines(60, func(i int) string { return names[i%4] }))
		w.ok("cne train " + small + " --set data.path=x.npy --set data.labels=l.txt -o run")
		for _, name := range names {
			if n := bytes.Count(w.read("run/embedding.csv"), []byte(","+name+"\n")); n != 15 {
				w.fail("%d points have the label %s in embedding.csv, not 15", n, name)
			}
		}
	}})
	kinds := []struct {
		name string
		line func(i int) string
	}{
		{"all-the-same", func(int) string { return "a" }},
		{"all-different", func(i int) string { return fmt.Sprint("label ", i) }},
		{"control-characters", func(i int) string { return "\x1b[3" + fmt.Sprint(i%3) + "m\x07" }},
		{"markup", func(i int) string { return `</script><script>alert(1)</script>"&'<!--` + fmt.Sprint(i%3) }},
		{"numbers-and-nan", func(i int) string { return []string{"1", "nan", "inf", "-0"}[i%4] }},
		{"very-long", func(i int) string { return strings.Repeat("x", 20000) + fmt.Sprint(i%2) }},
		{"unicode", func(i int) string { return []string{"Ünï", "日本語", "🙂", "א\u200f"}[i%4] }},
		{"latin-1", func(i int) string { return []string{"gr\xf6n", "gr\xe4n"}[i%2] }},
		{"formulas", func(i int) string { return []string{"=1+1", "@x", "a,b", `"q"`}[i%4] }},
	}
	for _, k := range kinds {
		all = append(all, trial{"labels/kinds/" + k.name, func(w *world) {
			w.write("x.npy", p.npy())
			w.text("l.txt", lines(60, k.line))
			w.ok("cne train --epochs 4 --set data.path=x.npy --set data.labels=l.txt --html -o run")
			w.have("run/embedding.png", "run/embedding.html", "run/embedding.csv")
			if bytes.Contains(w.read("run/embedding.html"), []byte("<script>alert(1)")) {
				w.fail("a label has become code in embedding.html")
			}
			// What was written is read again, with the same labels.
			w.ok("cne plot run/embedding.csv -o out.svg && cne evaluate run > out.txt")
			if n := bytes.Count(w.read("run/embedding.csv"), []byte("\n")); n != 61 {
				w.fail("embedding.csv has %d lines, not 61", n)
			}
		}})
	}
	return all
}
