// Package counts converts the counts of single-cell sequencing to points. Open reads
// counts, Fit chooses the most variable genes, and the Scaling that Fit returns converts
// counts to points.
package counts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cne/data"
	"cne/data/file"
	"cne/internal/elementary"
	"cne/internal/kind"
	"cne/internal/parallel"
	"cne/internal/selection"
	"cne/internal/text"
)

// A Matrix is a sparse matrix of counts: the number of times that each gene was seen in
// each cell. It takes 8 bytes for every count above 0.
type Matrix struct {
	// Name says what the cells are, for titles and logs.
	Name string
	// Cells and Genes are the numbers of cells and genes. Each cell becomes a point.
	Cells, Genes int
	// CSR has a row for each cell and a column for each gene, of counts above 0.
	data.CSR
	// CellNames and GeneNames are the barcodes of the cells and the identifiers
	// of the genes; nil if they are not known.
	CellNames, GeneNames []string
	// OtherNames are second names of the genes, such as symbols next to identifiers; nil
	// without.
	OtherNames []string
	// Labels is nil when the cells have none.
	Labels *data.Labels
}

// Check returns an error wrapping data.ErrShape if fields contradict each other,
// data.ErrLabels if the number of labels is wrong, data.ErrNotFinite or data.ErrFormat if
// a value is not finite or not above 0, and data.ErrEmpty if there are no cells, genes or
// counts. Open calls it.
func (c *Matrix) Check() (err error) {
	defer kind.Catch(&err)
	kind.Need(min(c.Cells, c.Genes, len(c.Value)) > 0, data.ErrEmpty,
		"counts: got %d counts of %d genes in %d cells, want at least one of each", len(c.Value), c.Genes, c.Cells)
	fit := func(names []string, n int) bool { return names == nil || len(names) == n }
	kind.Need(fit(c.CellNames, c.Cells) && fit(c.GeneNames, c.Genes) && fit(c.OtherNames, c.Genes), data.ErrShape,
		"counts: inconsistent fields: got %d names for %d cells, and %d for %d genes", len(c.CellNames), c.Cells, len(c.GeneNames), c.Genes)
	kind.Check(c.Labels.Check(c.Cells))
	fault := c.Fault(c.Cells, c.Genes)
	kind.Need(fault == "", data.ErrShape, "counts: inconsistent fields: %s", fault)
	faults := make([]error, parallel.Pieces(c.Cells, cellGrain))
	parallel.For(c.Cells, cellGrain, func(piece, lo, hi int) {
		for i := lo; i < hi && faults[piece] == nil; i++ {
			gene, value := c.Row(i)
			for k, v := range value {
				switch {
				case v-v != 0:
					faults[piece] = kind.Errorf(data.ErrNotFinite, "gene %d in cell %d (counted from 0): got %v, want a finite count", gene[k], i, v)
				case v <= 0:
					faults[piece] = kind.Errorf(data.ErrFormat, "gene %d in cell %d (counted from 0): got %v, want a count above 0", gene[k], i, v)
				}
			}
		}
	})
	return cmp.Or(faults...)
}

// cellGrain is the number of cells in a piece of work.
const cellGrain = 256

// filesOf returns the files of counts at a path, a file or a folder, plain or compressed with
// gzip: the matrix, or several that a folder has, and the lists of its genes and cells next
// to it, or "".
func filesOf(path string) (matrices []string, genes, cells string) {
	if matrices = matricesIn(path); matrices == nil {
		matrices = []string{path}
	}
	if len(matrices) > 1 {
		return matrices, "", ""
	}
	folder, name := filepath.Split(file.TrimEnding(matrices[0]))
	var features, barcodes []string
	for _, prefix := range []string{strings.TrimSuffix(name, "matrix"), name + ".", name + "_", ""} {
		features = append(features, prefix+"features.tsv", prefix+"genes.tsv", prefix+"genes.txt")
		barcodes = append(barcodes, prefix+"barcodes.tsv", prefix+"barcodes.txt")
	}
	return matrices, file.Find(folder, features...), file.Find(folder, barcodes...)
}

// matricesIn returns the matrices that a folder has, matrix.mtx only if it is there.
func matricesIn(folder string) []string {
	if paths := file.FindEnding(folder, "matrix.mtx"); paths != nil {
		return paths
	}
	return file.FindEnding(folder, ".mtx")
}

// Is reports whether a path is for Open, and not for file.Read: a folder with a file
// .mtx, a file that begins like the Matrix Market format, or one of single cells (see
// file.IsCells) whose values, by Layer and Obsm of the options, are counts. It returns false
// if the path cannot be read.
func Is(path string, o file.Options) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() {
		return matricesIn(path) != nil
	}
	return file.IsMatrixMarket(path) || file.IsCells(path) && file.HasCounts(path, o)
}

// Barcodes returns the files with the names of the cells of paths for Open, or of files of
// single cells, nil unless each has one.
func Barcodes(paths []string) (files []string) {
	for _, path := range paths {
		_, _, barcodes := filesOf(path)
		if file.IsCells(path) {
			barcodes = path
		} else if barcodes == "" || !Is(path, file.Options{}) {
			return nil
		}
		files = append(files, barcodes)
	}
	return files
}

// ReadBarcodes reads the names of the cells from the files that Barcodes returns. It uses
// the option Layer.
func ReadBarcodes(ctx context.Context, files []string, o file.Options) (names []string, err error) {
	defer kind.Catch(&err)
	for _, path := range files {
		if file.IsCells(path) {
			columns := kind.Got(file.ReadColumns(ctx, []string{path}, []string{file.CellNames}, file.Options{Layer: o.Layer}))
			names = append(names, columns[0]...)
		} else {
			names = append(names, fields(readLines(ctx, path), 0)...)
		}
	}
	return names, nil
}

// Gene returns the values of a gene as text, by its name or second name: see
// file.GeneValues. If there is none, or several, the error wraps data.ErrOption.
func (c *Matrix) Gene(name string) ([]string, error) {
	for _, names := range [][]string{c.GeneNames, c.OtherNames} {
		if g := slices.Index(names, name); g >= 0 {
			if slices.Contains(names[g+1:], name) {
				return nil, kind.Errorf(data.ErrOption, "genes: got several called %.60q, want one; give its identifier", name)
			}
			return file.GeneValues(&c.CSR, g, true, nil), nil
		}
	}
	return nil, kind.Errorf(data.ErrOption, "genes: got no %.60q, want names such as %s", name, text.Few(c.GeneNames, text.Printable))
}

// EmptyCells returns the number of cells without counts.
func (c *Matrix) EmptyCells() int {
	return len(selection.Where(c.Cells, func(i int) bool { return c.Start[i] == c.Start[i+1] }))
}

// Open reads the counts of single-cell sequencing, and concatenates the cells of all paths.
// A path is a file of AnnData (.h5ad) or 10x's programs (.h5), see file.ReadCells; a file in
// the Matrix Market format (.mtx); or a folder with such a file, as 10x's programs write it.
// Lists next to the matrix have the names of the cells (barcodes.tsv or .txt) and the genes
// (features.tsv, genes.tsv or .txt) in their first columns, and second names of the genes in
// the second one. The lists may have a prefix as GEO and kallisto name them. Rows are genes,
// and columns are cells, unless the lengths of the lists say the opposite.
// Files other than HDF5 may be compressed with gzip.
//
// If features are of several kinds, only "Gene
// Expression" features are kept, as by scanpy.read_10x_mtx; if no feature is of this
// kind, all are kept, and Options.Log reports it. It is an error if most cells have no
// counts, as in 10x's unfiltered matrix.
//
// All paths must have the same genes. Open uses the options Name, Labels and Log, and for
// .h5ad and .h5 LabelColumn, Layer and Obsm. It uses Columns, the names of a model's genes,
// only to log that the file has no names. For other files with LabelColumn or Layer, and for
// options of tables, the error wraps data.ErrOption. A count takes 8 bytes of
// memory, and 16 if the cells of a file are out of order or its rows, and while several
// paths are joined. Errors name the file, and are of package data's kinds or the file system's.
func Open(ctx context.Context, paths []string, o file.Options) (_ *Matrix, err error) {
	defer kind.Catch(&err)
	kind.Need(len(paths) > 0, data.ErrOption, "counts: got no path, want files or folders in the Matrix Market format")
	kind.Check(kind.Named(paths[0], o.CheckColumns(file.IsCells(paths[0]))))
	parts := make([]*Matrix, len(paths))
	for i, path := range paths {
		c := openPath(ctx, path, o)
		kind.Need(len(c.Value) > 0, data.ErrEmpty,
			"%s: counts: got only zeros for %d genes in %d cells, want counts above 0", path, c.Genes, c.Cells)
		kind.Check(kind.Named(path, c.Check()))
		parts[i] = c
		first := parts[0]
		kind.Need(c.Genes == first.Genes, data.ErrShape, "%s: genes: got %d, want %d as in %s", path, c.Genes, first.Genes, paths[0])
		for g, name := range c.GeneNames {
			if first.GeneNames != nil && first.GeneNames[g] != name {
				kind.Fail(data.ErrShape, "%s: gene %d: got %.60q, want %.60q as in %s", path, g+1, name, first.GeneNames[g], paths[0])
			}
		}
	}
	c := join(parts)
	if c.GeneNames == nil && len(o.Columns) > 0 && o.Log != nil {
		o.Log.Info("the genes have no names and are taken in the order of training", "file", paths[0])
	}
	c.Name = cmp.Or(o.Name, file.NameOf(paths[0]))
	if len(o.Labels) > 0 {
		c.Labels = data.NewLabels(kind.Got(file.ReadLabels(ctx, o.Labels, c.Cells, o.NA)))
	} else if o.LabelColumn != "" {
		c.Labels = data.NewLabels(kind.Got(file.ReadColumns(ctx, paths, []string{o.LabelColumn}, file.Options{}))[0])
	}
	return c, c.Labels.Check(c.Cells)
}

// join puts the cells of several matrices one after the other.
func join(parts []*Matrix) *Matrix {
	if len(parts) == 1 {
		return parts[0]
	}
	c := &Matrix{Genes: parts[0].Genes, OtherNames: parts[0].OtherNames}
	rows := make([]*data.CSR, len(parts))
	for i, p := range parts {
		rows[i] = &p.CSR
		c.Cells += p.Cells
		c.CellNames = append(c.CellNames, p.CellNames...)
		if c.GeneNames == nil {
			c.GeneNames = p.GeneNames
		}
	}
	if len(c.CellNames) < c.Cells { // some part has none
		c.CellNames = nil
	}
	c.CSR = *data.ConcatCSR(rows)
	return c
}

// openPath reads the counts of a file, or of a folder of 10x. It fails as kind.Need does.
func openPath(ctx context.Context, path string, o file.Options) *Matrix {
	if file.IsCells(path) {
		cells := kind.Got(file.ReadCells(ctx, path, o))
		m := cells.Counts
		c := &Matrix{Cells: m.N, Genes: m.D, CSR: *m.CSR, CellNames: cells.Names, GeneNames: m.Columns, OtherNames: cells.Other}
		c.keepGenes(cells.Kinds, path, o.Log)
		return c
	}
	info, err := os.Stat(path)
	kind.Check(kind.Named("the counts cannot be read", err))
	matrices, genesPath, cellsPath := filesOf(path)
	matrix := matrices[0]
	kind.Need(len(matrices) == 1, data.ErrUnsupported, "%s: got %d matrices, want one; name the files to read, such as %s",
		path, len(matrices), text.Few(matrices, text.Printable))
	kind.Need(!info.IsDir() || matrix != path, data.ErrUnsupported,
		"%s: got a folder without a matrix (.mtx or .mtx.gz), want one with counts", path)
	genes, cells := readLines(ctx, genesPath), readLines(ctx, cellsPath)
	rows := kind.Got(file.Open(ctx, []string{matrix}, file.Options{Layer: o.Layer, Obsm: o.Obsm}))
	defer rows.Close()
	n, _ := rows.Len()
	d := rows.Width()
	fit := func(n, d int) bool { return (genes == nil || len(genes) == d) && (cells == nil || len(cells) == n) }
	turned := !fit(n, d)
	if turned && !fit(d, n) {
		lists := []string{fmt.Sprintf("%s of length %d", genesPath, len(genes)), fmt.Sprintf("%s of length %d", cellsPath, len(cells))}
		lists = slices.DeleteFunc(lists, func(s string) bool { return s[0] == ' ' })
		kind.Fail(data.ErrShape, "%s: got %d rows and %d columns, want them as in the lists next to it: %s; move a list of another matrix away",
			matrix, d, n, strings.Join(lists, ", "))
	}
	if genes == nil && cells == nil {
		kind.Need(!info.IsDir() || strings.HasSuffix(file.TrimEnding(matrix), "matrix"), data.ErrUnsupported,
			"%s: got %s without a list of genes or cells next to it (genes.tsv, barcodes.tsv), want one, or the path of the file, with genes as rows", path, matrix)
		if o.Log != nil {
			o.Log.Info("there is no list of genes or cells; the rows of the matrix are taken for genes", "file", matrix)
		}
	}
	sparse, ok := rows.(file.Sparse)
	kind.Need(ok, data.ErrUnsupported, "%s: got points, want counts in the Matrix Market format", matrix)
	m := kind.Got(sparse.ReadSparse())
	if o.Log != nil && slices.ContainsFunc(m.CSR.Value, func(v float32) bool { return v != float32(math.Trunc(float64(v))) }) {
		o.Log.Warn("fractions are taken for counts of genes in cells; save other points as rows with scipy.sparse.save_npz(\"points.npz\", m.tocsr())", "file", matrix)
	}
	if turned {
		if o.Log != nil {
			o.Log.Info("the rows of the matrix are cells, by the lists next to it", "file", matrix, "cells", d, "genes", n)
		}
		m.N, m.D, m.CSR = d, n, m.CSR.Transpose(m.D)
	}
	c := &Matrix{Cells: m.N, Genes: m.D, CSR: *m.CSR, CellNames: fields(cells, 0), GeneNames: fields(genes, 0), OtherNames: fields(genes, 1)}
	c.keepGenes(fields(genes, 2), genesPath, o.Log)
	return c
}

// keepGenes removes the features that are not genes, by the kind of each. If none is known to
// be a gene, it keeps all, and says so if kinds are known.
func (c *Matrix) keepGenes(kinds []string, path string, log *slog.Logger) {
	var keep []int
	kind := ""
	for i, is := range kinds {
		switch is = strings.TrimSpace(is); {
		case is == "Gene Expression":
			keep = append(keep, i)
		case kind == "":
			kind = is
		}
	}
	switch len(keep) {
	case 0:
		if kind != "" && log != nil {
			log.Warn("no feature is of the kind \"Gene Expression\"; all are taken for genes", "file", path, "kind", text.Printable(kind))
		}
	case c.Genes:
	default:
		c.CSR = *c.SelectColumns(keep, c.Genes)
		c.Genes, c.GeneNames, c.OtherNames = len(keep), selection.Pick(c.GeneNames, keep), selection.Pick(c.OtherNames, keep)
	}
}

// readLines reads a file with an item on each line. It returns nil for an empty path.
func readLines(ctx context.Context, path string) []string {
	if path == "" {
		return nil
	}
	lines, _, err := file.ReadLines(ctx, path)
	kind.Check(err)
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	empty := slices.Index(lines, "")
	kind.Need(empty < 0, data.ErrFormat, "%s:%d: got an empty line, want a name", path, empty+1)
	return lines
}

// fields returns field k of each line as a name, or nil if some line has none.
func fields(lines []string, k int) (names []string) {
	for _, line := range lines {
		all := strings.SplitN(line, "\t", k+2)
		if len(all) <= k {
			return nil
		}
		names = append(names, text.ValidName(all[k]))
	}
	return names
}

// Requirements of Fit for a gene, as in the paper's programs.
const (
	minDetected = 10   // cells where a gene must be detected
	minZeros    = 0.02 // share of cells where it is 0 must exceed this
	zeroDecay   = 1.5  // of the curve over the mean logarithm
)

// A Scaling turns counts into points, as the paper does with single-cell data (after
// Kobak and Berens, The art of using t-SNE for single-cell transcriptomics, 2019). For
// each cell it takes the counts of the most variable genes, multiplies them by the median
// library size divided by the cell's own, and applies log2(x+1).
//
// The library size of a cell is the sum of the counts of all genes. A cell without counts
// becomes a point of zeros.
type Scaling struct {
	// Total is the number of genes of the matrix that the scaling was fitted to.
	Total int `json:"total"`
	// Genes are the kept genes, counted from 0, in ascending order. Names are their names, or
	// nil if they have none.
	Genes []int32  `json:"genes,omitempty"`
	Names []string `json:"names,omitempty"`
	// Others are their second names, or nil if they have none.
	Others []string `json:"others,omitempty"`
	// LibrarySize is the median library size of the cells.
	LibrarySize float64 `json:"library_size"`
}

// Fit finds the most variable genes, and the median library size.
//
// Genes are ranked by how much more often they are zero than their mean count predicts:
// by m + ln(z − 0.02)/1.5. Here z is the share of cells without the gene, and m the mean
// of log2 of its counts above 0. The first genes lie above the curve z = exp(−1.5(m − x))
// + 0.02, with the offset x chosen for the wanted number of genes, as in the paper's
// programs. Genes detected in fewer than 10 cells, or zero in at most 2 % of the cells,
// are never chosen; ties are broken by order.
//
// If fewer genes qualify than wanted, Fit chooses all of them. If no gene qualifies, or
// the median library size is 0, the error wraps data.ErrEmpty. For genes < 1 it wraps
// data.ErrOption. Other errors are as for Check.
func Fit(c *Matrix, genes int) (_ *Scaling, err error) {
	defer kind.Catch(&err)
	kind.Check(c.Check())
	kind.Need(genes >= 1, data.ErrOption, "genes to choose: got %d, want at least 1", genes)
	sizes := selection.Map(selection.UpTo[int](c.Cells), c.librarySize)
	s := &Scaling{Total: c.Genes, Genes: c.mostVariable(genes), LibrarySize: selection.Median(sizes)}
	kind.Need(len(s.Genes) > 0, data.ErrEmpty, "variable genes: got none, want genes in at least %d of the %d cells "+
		"and zero in more than %.0f %% of them; are the rows genes?", minDetected, c.Cells, 100*minZeros)
	kind.Need(s.LibrarySize > 0, data.ErrEmpty, "counts: got none for most of the %d cells, want the filtered matrix", c.Cells)
	if c.GeneNames != nil {
		s.Names, s.Others = selection.Pick(c.GeneNames, s.Genes), selection.Pick(c.OtherNames, s.Genes)
	}
	return s, nil
}

// mostVariable returns up to n genes, in ascending order.
func (c *Matrix) mostVariable(n int) []int32 {
	var logs [1 << 12]float64 // of small counts: most counts are small
	for i := range logs {
		logs[i] = elementary.Log2(float64(i))
	}
	detected, sum := make([]int, c.Genes), make([]float64, c.Genes)
	for k, g := range c.Column {
		v := c.Value[k]
		detected[g]++
		if i := int(min(v, float32(len(logs)-1))); float32(i) == v {
			sum[g] += logs[i]
		} else {
			sum[g] += elementary.Log2(float64(v))
		}
	}
	var chosen []int32
	score := make([]float64, c.Genes)
	for g, cells := range detected {
		zeros := 1 - float64(cells)/float64(c.Cells)
		if cells >= minDetected && zeros > minZeros {
			score[g] = sum[g]/float64(cells) + elementary.Log(zeros-minZeros)/zeroDecay
			chosen = append(chosen, int32(g))
		}
	}
	slices.SortStableFunc(chosen, func(a, b int32) int { return cmp.Compare(score[b], score[a]) })
	chosen = chosen[:min(n, len(chosen))]
	slices.Sort(chosen)
	return chosen
}

// librarySize returns the sum of the counts of a cell.
func (c *Matrix) librarySize(i int) float64 {
	_, value := c.Row(i)
	sum := 0.0
	for _, v := range value {
		sum += float64(v)
	}
	return sum
}

// Apply turns the counts of cells into points, with the cells' names and labels;
// Points.Columns are the names of the genes. Genes are matched by name or second name if
// both sides have names, and genes with equal names by position. Missing genes are zeros.
// The error wraps data.ErrShape if more than half are missing, if one is ambiguous or,
// without names, if the number of genes differs.
func (s *Scaling) Apply(c *Matrix) (*data.Dataset, error) {
	ds := &data.Dataset{Name: c.Name, Points: data.NewMatrix(c.Cells, len(s.Genes)), Labels: c.Labels, Names: c.CellNames}
	ds.Points.Columns = s.Names
	if err := s.ApplyTo(ds.Points, c, 0); err != nil {
		return nil, err
	}
	return ds, ds.Check()
}

// ApplyTo fills dst with the points of cells, starting with number first. The width of dst
// must be the number of kept genes. For another width, or more rows than there are cells,
// the error wraps data.ErrShape. Other errors are as for Apply.
func (s *Scaling) ApplyTo(dst *data.Matrix, c *Matrix, first int) (err error) {
	defer kind.Catch(&err)
	kind.Check(cmp.Or(s.Check(), data.CheckDense(dst)))
	kind.Need(dst.D == len(s.Genes) && first >= 0 && dst.N <= c.Cells-first, data.ErrShape,
		"block for cells from %d on (counted from 0): got %d×%d, want at most %d rows of %d genes",
		first, dst.N, dst.D, c.Cells-first, len(s.Genes))
	column := kind.Got(s.columns(c))
	parallel.For(dst.N, cellGrain, func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			row := dst.Row(i)
			clear(row)
			size := c.librarySize(first + i)
			gene, value := c.Row(first + i)
			for k, g := range gene {
				if j := column[g]; j >= 0 {
					row[j] = float32(elementary.Log2(float64(float64(value[k])/size*s.LibrarySize) + 1))
				}
			}
		}
	})
	return nil
}

// columns returns the column of each gene of c, −1 for genes that are not kept.
func (s *Scaling) columns(c *Matrix) (column []int32, err error) {
	defer kind.Catch(&err)
	column = slices.Repeat([]int32{-1}, c.Genes)
	if s.Names == nil || c.GeneNames == nil {
		kind.Need(c.Genes == s.Total, data.ErrShape, "genes: got %d, want %d as in training", c.Genes, s.Total)
		for j, g := range s.Genes {
			column[g] = int32(j)
		}
		return column, nil
	}
	firsts := func(names []string) map[string]int {
		index := make(map[string]int, len(names))
		for g, name := range slices.Backward(names) {
			index[name] = g // the first of several
		}
		return index
	}
	index, others := firsts(c.GeneNames), firsts(c.OtherNames)
	take := func(j, g int) bool {
		if column[g] >= 0 {
			kind.Need(s.Names[column[g]] != s.Names[j], data.ErrShape,
				"genes: got several called %.60q in another order than in training, want that order, or names that differ", s.Names[j])
			return false
		}
		column[g] = int32(j)
		return true
	}
	var rest []int // their names come before second names, which several may share
	for j, name := range s.Names {
		// Genes with the same name are matched by position.
		g, ok := index[name]
		if own := int(s.Genes[j]); own < c.Genes && c.GeneNames[own] == name {
			g = own
		}
		if !ok {
			rest = append(rest, j)
			continue
		}
		take(j, g)
	}
	missing, example := 0, ""
	for _, j := range rest {
		g, ok := others[s.Names[j]]
		if !ok && s.Others != nil {
			if g, ok = index[s.Others[j]]; !ok {
				g, ok = others[s.Others[j]]
			}
		}
		if !ok || !take(j, g) {
			missing, example = missing+1, cmp.Or(example, s.Names[j])
		}
	}
	kind.Need(2*missing <= len(s.Names), data.ErrShape,
		"genes: got counts without %d of the model's %d genes, such as %.60q, want at least half of them", missing, len(s.Names), example)
	return column, nil
}

// Missing returns how many of the genes are not among those of c, by name or second name.
// They are taken for zeros.
func (s *Scaling) Missing(c *Matrix) int {
	column, err := s.columns(c)
	if err != nil {
		return 0 // Apply returns the error
	}
	return len(s.Genes) - selection.Count(column, func(j int32) bool { return j >= 0 })
}

// Check returns an error wrapping data.ErrShape or data.ErrOption for inconsistent values,
// which a file may have.
func (s *Scaling) Check() error {
	if len(s.Genes) == 0 || !data.Ascending(s.Genes) || s.Genes[0] < 0 || int(s.Genes[len(s.Genes)-1]) >= s.Total ||
		s.Names != nil && len(s.Names) != len(s.Genes) || s.Others != nil && len(s.Others) != len(s.Names) {
		return kind.Errorf(data.ErrShape,
			"scaling of counts: got %d of %d genes with %d names, want ascending genes in range, and a name for each or none", len(s.Genes), s.Total, len(s.Names))
	}
	if !(s.LibrarySize > 0) || math.IsInf(s.LibrarySize, 0) {
		return kind.Errorf(data.ErrOption, "scaling of counts: got a library size of %v, want a finite number above 0", s.LibrarySize)
	}
	return nil
}

// scaled are the points of Apply as a data.Source, computed a block at a time.
type scaled struct {
	*Scaling
	counts *Matrix
}

// Dims implements data.Source.
func (s scaled) Dims() (n, d int) { return s.counts.Cells, len(s.Genes) }

// Block implements data.Source.
func (s scaled) Block(n int) *data.Matrix {
	m := data.NewMatrix(n, len(s.Genes))
	m.Columns = s.Names
	return m
}

// Each implements data.Source.
func (s scaled) Each(ctx context.Context, rows int, f func(lo int, block *data.Matrix) error) (err error) {
	defer kind.Catch(&err)
	n, d := s.Dims()
	rows = min(cmp.Or(rows, data.BlockRows(d)), n)
	block := s.Block(rows)
	for lo := 0; lo < n; lo += rows {
		some := block.Rows(0, min(rows, n-lo))
		kind.Check(kind.Named(s.counts.Name, cmp.Or(ctx.Err(), s.ApplyTo(some, s.counts, lo))))
		kind.Check(f(lo, some))
	}
	return nil
}

// Rows returns the points of Apply, computed a block at a time.
func (s *Scaling) Rows(c *Matrix) file.Rows {
	return file.Of(&data.Dataset{Name: c.Name, Stored: scaled{s, c}, Labels: c.Labels})
}
