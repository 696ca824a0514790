package main

import (
	"archive/zip"
	"fmt"
	"math"
	"slices"
	"strings"
)

// parquetTrials are about Parquet files.
func parquetTrials() []trial {
	p := blobs(60, 4)
	sound := parquet(60, columnsOf(p)...)
	with := func(change func(c []column) []column) []byte { return parquet(60, change(columnsOf(p))...) }
	second := func(change func(c *column)) []byte {
		return with(func(c []column) []column { change(&c[1]); return c })
	}
	value := func(v float32) []byte {
		return second(func(c *column) { c.values = patched(c.values, 4*6, little(v)...) })
	}
	all := badFiles("parquet", onPoints, []bad{
		{"cut.parquet", cut(sound, -5), "truncated|PAR1"},
		{"half.parquet", cut(sound, len(sound)/2), "truncated|PAR1"},
		{"ends-alone.parquet", []byte("PAR1\x00\x00\x00\x00PAR1"), "metadata"},
		{"magic-alone.parquet", []byte("PAR1"), "fewer|PAR1"},
		{"encrypted.parquet", patched(sound, -4, []byte("PARE")...), "encrypt"},
		{"metadata-of-4-gb.parquet", patched(sound, -8, 0xff, 0xff, 0xff, 0xff), "metadata"},
		{"metadata-of-zeros.parquet", patched(sound, -200, make([]byte, 190)...), "metadata|schema|contradict"},
		{"many-rows.parquet", parquet(1<<30, columnsOf(p)...), "rows"},
		{"negative-rows.parquet", parquet(-60, columnsOf(p)...), "rows"},
		{"other-rows.parquet", parquet(61, columnsOf(p)...), "60 values for the 61 rows"},
		{"no-rows.parquet", parquet(0, columnsOf(p)...), "no rows"},
		{"no-columns.parquet", parquet(60), "no columns|contradict"},
		{"claims-more-values.parquet", second(func(c *column) { c.claimed = 1 << 40 }), "values"},
		{"page-of-a-gigabyte.parquet", second(func(c *column) { c.page = 1 << 30 }), "claims to hold"},
		{"fewer-values.parquet", second(func(c *column) { c.values = c.values[:200] }), "fewer values"},
		{"nan.parquet", value(float32(math.NaN())), "row 7, column 2.*NaN"},
		{"infinite.parquet", value(float32(math.Inf(-1))), "row 7, column 2.*Inf"},
		{"null.parquet", second(func(c *column) {
			c.present = slices.Repeat([]bool{true}, 60)
			c.present[6] = false
		}), `row 7.*"b".*missing`},
		{"brotli.parquet", second(func(c *column) { c.codec = 4 }), "Brotli"},
		{"unknown-codec.parquet", second(func(c *column) { c.codec = 77 }), "unknown codec"},
		{"not-snappy.parquet", second(func(c *column) { c.codec = 1 }), "snappy"},
		{"a-text.parquet", with(func(c []column) []column {
			return append(c, texts("kind", strings.Split(strings.Repeat("a ", 60), " ")[:60]...))
		}), `"kind" is text`},
		{"a-date.parquet", with(func(c []column) []column { c[2].physical, c[2].converted = 1, 7; return c }), `"c" is a date`},
		{"two-lists.parquet", parquet(60, listOf("v", p, nil), listOf("w", p, nil)), "hold lists"},
		{"ragged-list.parquet", parquet(60, listOf("v", p, func(n []int) { n[5], n[6] = 3, 5 })), `row 6.*"v"`},
		{"control-characters.parquet", with(func(c []column) []column {
			c[1].name = "b\x1b[2J\n\u202e"
			return append(c, texts("k\x07", make([]string, 60)...))
		}), "is text"},
		{"name-not-utf8.parquet", with(func(c []column) []column { return append(c, texts("k\xff", make([]string, 60)...)) }), "is text"},
		{"in-gzip.parquet.gz", gz(sound), "gzip"},
	})
	all = append(all, sameForms(p, []form{
		{"x.parquet", sound, ""},
		{"called.csv", sound, ""},
		{"list.parquet", parquet(60, listOf("v", p, nil)), ""},
		{"double.parquet", with(func(c []column) []column {
			for j := range c {
				var v []float64
				for i := range p {
					v = append(v, float64(p[i][j]))
				}
				c[j].physical, c[j].values = 5, little(v)
			}
			return c
		}), ""},
		{"more-columns.parquet", with(func(c []column) []column {
			return append(c, texts("id", strings.Split(strings.Repeat("a ", 60), " ")[:60]...))
		}), "--set data.drop=[id]"},
		{"chosen-columns.parquet", with(func(c []column) []column { return append(c, c[0]) }), "--set data.columns=[1,b,c,d]"},
	})...)
	return append(all,
		trial{"parquet/columns-by-name", func(w *world) {
			w.write("x.parquet", with(func(c []column) []column {
				c[3].name = "a"
				return append(c, texts("kind", make([]string, 60)...))
			}))
			line := fmt.Sprintf(onPoints, "x.parquet")
			w.refused(line+" --set data.drop=[kind] --set data.columns=[a,b]", "both called")
			w.refused(line+" --set data.drop=[kin]", `no column "kin"`)
			w.refused(line+" --set data.drop=[9]", "column")
			w.refused(line+" --set data.label_column=kinds", `no column "kinds"`)
			w.refused(line+" --set data.drop=[1,2,3,4,5]", "no column is left")
			w.refused(line+" --set data.label_column=kind --set data.drop=[kind]", "kind")
			w.ok(line + " --set data.label_column=kind")
		}},
		trial{"parquet/labels-not-utf8", func(w *world) {
			kinds := slices.Repeat([]string{"ä"}, 60)
			kinds[8] = "\xe4"
			w.write("x.parquet", with(func(c []column) []column { return append(c, texts("kind", kinds...)) }))
			line := fmt.Sprintf(onPoints, "x.parquet")
			w.refused(line+" --set data.label_column=kind", "x.parquet.*row 9.*UTF-8")
			w.refused(line+" --set data.drop=[kind] --set data.names=kind", "row 9.*UTF-8")
			w.refused(line+" --set data.drop=[kind] --set output.html_color=[kind] --html", "row 9.*UTF-8")
		}},
		trial{"parquet/from-a-pipe", func(w *world) {
			w.write("x.parquet", sound)
			w.ok("mkfifo outpipe; cne version > out.txt")
			w.refused("cat x.parquet > outpipe 2> /dev/null & cne train "+small+" --set data.path=outpipe -o run", "from a pipe")
			w.refused("cne train "+small+" --set data.path=/dev/stdin -o run < /dev/null", "empty")
		}},
		trial{"parquet/written-and-read", func(w *world) {
			w.write("x.parquet", sound)
			w.ok(fmt.Sprintf(onPoints, "x.parquet") + " --set output.parquet=true && cne evaluate -q run --against run/embedding.parquet > out.txt && cne plot -q run/embedding.parquet --html -o out.html")
		}},
	)
}

// listOf returns a column of the points as lists, whose lengths may be changed.
func listOf(name string, t table, change func(lengths []int)) column {
	c := column{name: name, physical: 4, values: little(t.flat()), count: len(t.flat()), lists: slices.Repeat([]int{len(t[0])}, len(t))}
	if change != nil {
		change(c.lists)
	}
	return c
}

// sparseTrials are about points in scipy's CSR format.
func sparseTrials() []trial {
	p := blobs(60, 4)
	for i := range p {
		p[i][i%4] = 0
	}
	indptr, indices, values := p.rows()
	n := len(values)
	with := func(name string, content []byte) []byte { return sparse(p, map[string][]byte{name: content}) }
	ints := func(v []int32, at int, to int32) []byte {
		v = slices.Clone(v)
		v[at] = to
		return npy("<i4", fmt.Sprintf("(%d,)", len(v)), little(v))
	}
	floats := func(at int, to float32) []byte {
		v := slices.Clone(values)
		v[at] = to
		return npy("<f4", fmt.Sprintf("(%d,)", len(v)), little(v))
	}
	shape := func(v ...int64) []byte { return npy("<i8", fmt.Sprintf("(%d,)", len(v)), little(v)) }
	reversed, swapped := slices.Clone(indices), slices.Clone(values) // unsorted rows
	for i := range p {
		slices.Reverse(reversed[indptr[i]:indptr[i+1]])
		slices.Reverse(swapped[indptr[i]:indptr[i+1]])
	}
	line := onPoints + " --set graph.pca=2"
	all := badFiles("sparse", line, []bad{
		{"no-data.npz", with("data.npy", nil), "data"},
		{"no-indices.npz", with("indices.npy", nil), "indices|no array"},
		{"no-indptr.npz", with("indptr.npy", nil), "indptr"},
		{"no-shape.npz", with("shape.npy", nil), "shape|no array"},
		{"no-format.npz", with("format.npy", nil), "format"},
		{"coo.npz", with("format.npy", npy("|S3", "()", []byte("coo"))), "coo.*tocsr"},
		{"pickled-format.npz", with("format.npy", npy("|O", "()", []byte("\x80\x04."))), "format"},
		{"falling.npz", with("indptr.npy", ints(indptr, 10, 20)), "entry 10 .*20"},
		{"negative-start.npz", with("indptr.npy", ints(indptr, 0, -1)), "begins with -1"},
		{"negative-row.npz", with("indptr.npy", ints(indptr, 30, -5)), "entry 30 .*-5"},
		{"starts-at-2.npz", with("indptr.npy", ints(indptr, 0, 2)), "begins with 2"},
		{"ends-early.npz", with("indptr.npy", ints(indptr, 60, int32(n-1))), "ends with|values"},
		{"ends-late.npz", with("indptr.npy", ints(indptr, 60, int32(n+1))), fmt.Sprint(n + 1)},
		{"rows-too-few.npz", with("indptr.npy", npy("<i4", "(60,)", little(indptr[:60]))), "60 entries"},
		{"index-4.npz", with("indices.npy", ints(indices, 7, 4)), "entry 7 .*4.*0 to 3"},
		{"index-negative.npz", with("indices.npy", ints(indices, 7, -1)), "entry 7 .*-1"},
		{"more-indices.npz", with("indices.npy", npy("<i4", fmt.Sprintf("(%d,)", n+1), little(append(slices.Clone(indices), 1)))), "indices"},
		{"indices-of-floats.npz", with("indices.npy", npy("<f4", fmt.Sprintf("(%d,)", n), little(values))), "whole numbers"},
		{"indices-of-two-dimensions.npz", with("indices.npy", npy("<i4", fmt.Sprintf("(%d, 1)", n), little(indices))), "one dimension"},
		{"indices-promise-more.npz", with("indices.npy", npy("<i4", "(1000000000000,)", little(indices))), "indices"},
		{"all-promise-more.npz", sparse(p, map[string][]byte{"indices.npy": npy("<i4", "(1000000000000,)", little(indices)), "data.npy": npy("<f4", "(1000000000000,)", little(values))}), "indices|data"},
		{"nan.npz", with("data.npy", floats(3, float32(math.NaN()))), "row 2, column.*NaN"},
		{"infinite.npz", with("data.npy", floats(3, float32(math.Inf(1)))), "row 2, column.*Inf"},
		{"texts.npz", with("data.npy", npy("|S4", fmt.Sprintf("(%d,)", n), little(values))), "data|text"},
		{"shape-of-one.npz", with("shape.npy", shape(60)), "shape"},
		{"shape-of-three.npz", with("shape.npy", shape(60, 2, 2)), "shape"},
		{"shape-negative.npz", with("shape.npy", shape(-60, 4)), "shape|rows"},
		{"shape-huge.npz", with("shape.npy", shape(60, 1<<40)), "shape|columns"},
		{"rows-huge.npz", with("shape.npy", shape(1<<40, 4)), "61 entries|indptr"},
		{"no-columns.npz", with("shape.npy", shape(60, 0)), "0 columns"},
		{"cut.npz", cut(sparse(p, nil), -60), "npz|zip"},
	})
	dense := p.npy()
	same := func(name string, content []byte, options string) trial {
		return trial{"sparse/" + name, func(w *world) {
			// Of few columns, sparse points become dense, and are the same.
			w.write("x.npy", dense)
			w.write("s.npz", content)
			w.ok(fmt.Sprintf(onPoints, "x.npy") + " --set data.scale=none " + options)
			w.ok("cne train " + small + " --set data.path=s.npz --set data.scale=none " + options + " -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
		}}
	}
	return append(all,
		same("as-dense", sparse(p, nil), ""),
		same("unsorted-rows", csrOf(map[string][]byte{"shape.npy": shape(60, 4)}, 60, indptr, reversed, swapped), "--set graph.metric=cosine"),
		same("deflated", zipped(zip.Deflate, member{"shape.npy", shape(60, 4)}, member{"format.npy", npy("|S3", "()", []byte("csr"))},
			member{"indptr.npy", ints(indptr, 0, 0)}, member{"indices.npy", ints(indices, 0, indices[0])}, member{"data.npy", floats(0, values[0])}), ""),
		trial{"sparse/what-would-make-them-dense", func(w *world) {
			w.write("s.npz", sparse(p, nil))
			w.write("x.npy", dense)
			w.refused(fmt.Sprintf(line, "s.npz")+" --set data.scale=standard", "data.scale.*dense")
			w.refused(fmt.Sprintf(line, "s.npz")+" --set graph.metric=correlation", "graph.metric.*dense")
			w.refused("cne train "+small+" --set graph.pca=2 --set data.path=[s.npz,x.npy] -o run", "x.npy.*dense|sparse")
			w.refused("cne train "+small+" --set graph.pca=2 --set data.path=[x.npy,s.npz] -o run", "s.npz.*sparse|dense")
			w.refused("cne evaluate -q s.npz --data x.npy", "s.npz.*sparse")
		}},
		trial{"sparse/rows-of-zeros", func(w *world) {
			q := slices.Clone(p)
			q[4] = make([]float32, 4)
			w.write("s.npz", sparse(q, nil))
			w.refused(fmt.Sprintf(line, "s.npz")+" --set graph.metric=cosine", "s.npz: row 5.*no direction")
			w.ok(fmt.Sprintf(line, "s.npz"))
			w.finite("run/embedding.npy", 60, 2)
			w.write("none.npz", sparse(q.mapped(func(int, int, float32) float32 { return 0 }), nil))
			if res := w.run(fmt.Sprintf(line, "none.npz")+" --force", effects{refused: true}); res.code == 0 {
				w.finite("run/embedding.npy", 60, 2)
			}
		}},
		trial{"sparse/in-pieces", func(w *world) {
			w.write("s.npz", sparse(p, nil))
			w.write("a.npz", sparse(p[:17], nil))
			w.write("b.npz", sparse(p[17:], nil))
			w.ok(fmt.Sprintf(line, "s.npz") + " && cne train " + small + " --set graph.pca=2 --set data.path=[a.npz,b.npz] -o run2")
			w.same("run/embedding.npy", "run2/embedding.npy")
			w.write("c.npz", sparse(blobs(20, 5), nil))
			w.refused("cne train "+small+" --set graph.pca=2 --set data.path=[a.npz,c.npz] -o run3", "c.npz.*5.*4|c.npz")
		}},
	)
}

// givenTrials are about nearest neighbours that other programs have found, and about
// weights of graphs.
func givenTrials() []trial {
	p := blobs(60, 4)
	const k = 5
	near := make([]int64, 0, 60*k)
	for i := range 60 {
		for j := range k {
			near = append(near, int64((i+j*7)%60)) // the first is the point itself
		}
	}
	whole := func(dtype, shape string, v any) []byte { return npy(dtype, shape, little(v)) }
	changed := func(at int, to int64) []byte {
		v := slices.Clone(near)
		v[at] = to
		return whole("<i8", "(60, 5)", v)
	}
	floats := make([]float32, len(near))
	for i, v := range near {
		floats[i] = float32(v)
	}
	sound := whole("<i8", "(60, 5)", near)
	indptr, indices, weights := ring(60)
	weighted := func(change func(v []float32)) []byte {
		v := slices.Clone(weights)
		change(v)
		return csr(60, indptr, indices, v)
	}
	distances := npy("<f4", "(60, 5)", little(floats))
	var all []trial
	for _, f := range []struct {
		bad
		options string
	}{
		{bad{"index-60.npy", changed(8, 60), "neighbour 3 of row 1 .*60"}, ""},
		{bad{"index-negative.npy", changed(8, -2), "neighbour 3 of row 1 "}, ""},
		{bad{"index-huge.npy", changed(8, 1<<40), "neighbour 3 of row 1 "}, ""},
		{bad{"fewer-rows.npy", whole("<i8", "(30, 5)", slices.Repeat([]int64{0, 1, 2, 3, 4}, 30)), "30 points.*60"}, ""},
		{bad{"more-rows.npy", whole("<i8", "(61, 5)", append(slices.Clone(near), 0, 1, 2, 3, 4)), "61 points.*60"}, ""},
		{bad{"floats.npy", npy("<f4", "(60, 5)", little(floats)), "whole numbers"}, ""},
		{bad{"texts.npy", npy("|S8", "(60, 5)", little(near)), "text|whole numbers|type"}, ""},
		{bad{"objects.npy", npy("|O", "(60, 5)", little(near)), "object|pickle|type|whole"}, ""},
		{bad{"one-dimension.npy", whole("<i8", "(300,)", near), "n×k"}, ""},
		{bad{"three-dimensions.npy", whole("<i8", "(60, 5, 1)", near), "3 dimensions"}, ""},
		{bad{"no-columns.npy", whole("<i8", "(60, 0)", []int64{}), "no columns"}, ""},
		{bad{"no-rows.npy", whole("<i8", "(0, 5)", []int64{}), "0 points|rows|points"}, ""},
		{bad{"nobody.npy", whole("<i8", "(60, 5)", slices.Repeat([]int64{-1}, 300)), "no edges|neighbour"}, ""},
		{bad{"itself-alone.npy", whole("<i8", "(60, 1)", counted(60)), "no edges|neighbour"}, ""},
		{bad{"cut.npy", cut(sound, -9), "300 items"}, ""},
		{bad{"promises-more.npy", whole("<i8", "(1000000000, 1000)", near), "truncated|ends|bytes|rows"}, ""},
		{bad{"overflowing.npy", whole("<i8", "(4294967296, 4294967296)", near), "header announces"}, ""},
		{bad{"overflowing-to-what-is-there.npy", whole("<i8", "(60, 4611686018427387909)", near), "header announces"}, ""},
		{bad{"points.csv", p.csv(",", "\n"), "npz|npy|archive"}, ""},
		{bad{"distances-alone.npz", npz(member{"distances.npy", distances}), "indices|csr|scipy"}, ""},
		{bad{"index-60.npz", npz(member{"indices.npy", changed(8, 60)}, member{"distances.npy", distances}), "neighbour 3 of row 1 .*60"}, ""},
		{bad{"cut.npz", cut(npz(member{"indices.npy", sound}), -40), "npz|zip"}, ""},
		{bad{"nan-weight.npz", weighted(func(v []float32) { v[6] = float32(math.NaN()) }), "NaN|finite"}, "--set graph.weights=sample"},
		{bad{"infinite-weight.npz", weighted(func(v []float32) { v[6] = float32(math.Inf(1)) }), "infinite|finite"}, "--set graph.weights=sample"},
		{bad{"no-weight.npz", weighted(func(v []float32) { clear(v) }), "no edges|weight"}, "--set graph.weights=sample"},
	} {
		all = append(all, trial{"given/" + f.name, func(w *world) {
			w.write("x.npy", p.npy())
			w.write(f.name, f.content)
			res := w.refused(fmt.Sprintf(onPoints, "x.npy")+" --set graph.file="+f.name+" "+f.options, f.message)
			if !strings.Contains(res.last(), f.name) {
				w.fail("the message does not name the file: %s", res.last())
			}
		}})
	}
	return append(all,
		trial{"given/forms", func(w *world) {
			// The same neighbours in every form are the same graph.
			w.write("x.npy", p.npy())
			var narrow []int16
			var behind []int64
			for i, v := range near {
				narrow = append(narrow, int16(v))
				if behind = append(behind, v); i%k == k-1 {
					behind = append(behind, -1)
				}
			}
			columnwise := make([]int64, 0, len(near))
			for j := range k {
				for i := range 60 {
					columnwise = append(columnwise, near[i*k+j])
				}
			}
			for name, content := range map[string][]byte{
				"a.npy": sound, "b.npy": whole("<i2", "(60, 5)", narrow), "c.npy": npy(">i8", "(60, 5)", big(near)), "d.npy": whole("<i8", "(60, 6)", behind),
				"e.npy": npyHeaded("{'descr': '<i8', 'fortran_order': True, 'shape': (60, 5), }", little(columnwise)),
				"f.npz": npz(member{"indices.npy", sound}, member{"distances.npy", distances}), "g.npz": zipped(zip.Deflate, member{"indices.npy", sound}),
			} {
				w.write(name, content)
			}
			w.ok("for g in a.npy b.npy c.npy d.npy e.npy f.npz g.npz; do cne train " + small + " --set data.path=x.npy --set graph.file=$g -o run-$g || exit; done")
			for _, g := range []string{"b.npy", "c.npy", "d.npy", "e.npy", "f.npz", "g.npz"} {
				w.same("run-a.npy/embedding.npy", "run-"+g+"/embedding.npy")
			}
		}},
		trial{"given/unequal-weights-are-told", func(w *world) {
			w.write("x.npy", p.npy())
			w.write("g.npz", weighted(func(v []float32) {
				for i := range v {
					v[i] = 1 + float32(i%3)
				}
			}))
			line := "cne train --epochs 4 --set output.plot=false --set data.path=x.npy --set graph.file=g.npz"
			w.says(line+" -o run", "weights")
			w.write("negative.npz", weighted(func(v []float32) {
				for i := range v {
					v[i] = float32(1+i%3) * float32(1-2*(i%2)) // whose magnitudes count
				}
			}))
			w.ok("cne train " + small + " --set data.path=x.npy --set graph.file=g.npz --set graph.weights=sample -o run3 && cne train " + small + " --set data.path=x.npy --set graph.file=negative.npz --set graph.weights=sample -o run4")
			w.same("run3/embedding.npy", "run4/embedding.npy")
			w.ok(line + " --set graph.weights=sample -o run2 && cne train -q --resume run2 --epochs 6")
			w.finite("run2/embedding.npy", 60, 2)
		}},
		trial{"given/without-a-graph", func(w *world) {
			w.write("x.npy", p.npy())
			w.ok(fmt.Sprintf(onPoints, "x.npy") + " --set graph.weights=sample") // UMAP's weights
			w.finite("run/embedding.npy", 60, 2)
			w.write("knn.npy", sound)
			w.says("cne train --epochs 4 --set output.plot=false --set data.path=x.npy --set graph.file=knn.npy --set graph.weights=sample -o run2", "equal weights")
			w.refused("cne train "+small+" --set data.path=x.npy --set graph.file=none.npy -o run3", "graph.file.*none.npy")
		}},
	)
}

// counted returns the numbers from 0 to n−1.
func counted(n int) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i)
	}
	return v
}
