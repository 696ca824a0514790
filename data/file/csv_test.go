package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/data/file"
)

func TestReadCSV(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		opt        file.Options
		want       *data.Matrix
		labels     []string // of each point
	}{
		{"commas", "1,2\n3,4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"semicolons", "1;2\n3;4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"tabs", "1\t2\n3\t4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"a tab goes before the others", "a,b;c\td\n1\t2\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"a line about the separator", "sep=;\r\na,b;c\r\n1;2\r\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"a line about the separator, with | and returns", "sep=|\ra|b\r1|2\r", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"|", "a|b\n1|2\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"comments before names", "# exported\n#\n\n# by me, today: a, b\na,b\n1,2\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"comments before names that begin with #", "# exported\n# a,b\n1,2\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"typographic minus", "a;b\n−0,5;−1.234\n1,5e−1;950\n", file.Options{}, matrix(2, 2, -0.5, -1234, 0.15, 950), nil},
		{"typographic minus in lists", "[−1 2]\n[0 2e−1]\n", file.Options{}, matrix(2, 2, -1, 2, 0, 0.2), nil},
		{"points after decimal commas are between thousands", "a;b\n0,5;1.234\n1,5;950\n", file.Options{}, matrix(2, 2, 0.5, 1234, 1.5, 950), nil},
		{"points beside whole numbers are between thousands", "b;c\n1.234;1\n950;2\n" + strings.Repeat("2.345;3\n", 4), file.Options{},
			matrix(6, 2, 1234, 1, 950, 2, 2345, 3, 2345, 3, 2345, 3, 2345, 3), nil},
		{"unless others are decimal", "b;c\n1.234;1\n950;2.5\n" + strings.Repeat("2.345;3\n", 4), file.Options{},
			matrix(6, 2, 1.234, 1, 950, 2.5, 2.345, 3, 2.345, 3, 2.345, 3, 2.345, 3), nil},
		{"points without decimal commas are decimal", "a;b\n5;1.234\n15;950\n", file.Options{}, matrix(2, 2, 5, 1.234, 15, 950), nil},
		{"0 before a separator is no thousands", "a,b\n\"0,346\",1\n\"1,250\",2\n", file.Options{}, matrix(2, 2, 0.346, 1, 1.25, 2), nil},
		{"quoted separators are not counted", "\"a;b;c\",d\n1,2\n", file.Options{}, matrix(1, 2, 1, 2), nil},
		{"blanks, as of savetxt", "1.0e+00 2.5\n3 4e-1\n", file.Options{}, matrix(2, 2, 1, 2.5, 3, .4), nil},
		{"blanks, aligned", "   1   2.5\n  13    4 \r\n", file.Options{}, matrix(2, 2, 1, 2.5, 13, 4), nil},
		{"blanks, with comments", "# by savetxt\n# rows: 2\n# x y\n1 2\n3 4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"blanks, with names", "x y kind\n1 2 a\n3 4 b\n", file.Options{LabelColumn: "kind"}, matrix(2, 2, 1, 2, 3, 4), []string{"a", "b"}},
		{"R's write.table", "\"a\" \"b\" \"kind\"\n\"1\" 0.5 2 \"T cell\"\n\"2\" 1.5 NA \"the \\\"rest\\\"\"\n", file.Options{LabelColumn: "kind", AllowMissing: true}, matrix(2, 2, .5, 2, 1.5, float32(math.NaN())), []string{"T cell", "the \"rest\""}},
		{"R's write.table with text in the last row", "\"n\" \"v\" \"w\"\n\"r 1\" \"a\" 1.5 3\n\"r, 2\" \"b\" 2.5 NA\n\"r 3\" \"a\" NA NA\n", file.Options{DropText: true, AllowMissing: true}, matrix(3, 2, 1.5, 3, 2.5, float32(math.NaN()), float32(math.NaN()), float32(math.NaN())), nil},
		{"R's write.table with one column of numbers", "\"n, m\" \"v\"\n\"r 1\" \"a\" 1.5\n\"r 2\" \"b\" 2.5\n", file.Options{LabelColumn: "n, m"}, matrix(2, 1, 1.5, 2.5), []string{"a", "b"}},
		{"one column of numbers below row names", "x\nr1 1.5\nr_2 NA\nr3 2\n", file.Options{AllowMissing: true}, matrix(3, 1, 1.5, float32(math.NaN()), 2), nil},
		{"and with tabs", "x\nr 1\t1.5\nr 2\t2\n", file.Options{}, matrix(2, 1, 1.5, 2), nil},
		{"and with semicolons", "\"x\"\n\"r 1\";1,5\n\"r, 2\";2\n", file.Options{}, matrix(2, 1, 1.5, 2), nil},
		{"decimal commas in the first line", "\"7,5\",\"3,25\"\n\"1,5\",\"3,75\"\n", file.Options{}, matrix(2, 2, 7.5, 3.25, 1.5, 3.75), nil},
		{"truth in the first line", "true,false\ntrue,true\n", file.Options{}, matrix(2, 2, 1, 0, 1, 1), nil},
		{"lists in the first line", "[1 2]\n[0 4]\n", file.Options{}, matrix(2, 2, 1, 2, 0, 4), nil},
		{"names like numbers with commas", "id,\"2,5\",\"5,0\"\na,3,4\n", file.Options{LabelColumn: "id"}, matrix(1, 2, 3, 4), []string{"a"}},
		{"blanks, with numbers and tabs in comments", "# Written 12 May 2024\n# x\ty, z\n1 2 3\n# half\n4 5 6\n# end \"it\n", file.Options{}, matrix(2, 3, 1, 2, 3, 4, 5, 6), nil},
		{"blanks, words and comments", "% 2 3 4 5\nthe 1 2 3\n# 4 5 6\n% of all\na 7 8 9\n", file.Options{}, matrix(3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9), nil},
		{"comments between rows", "# by me, today\n# and, you\na,b\n# units: m, \"s\n1,2\n#\n3,4\n# end\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"comments between names", "kind,a,b\n# half\nx,1,2\n#1,3,4\n# end\n", file.Options{LabelColumn: "kind"}, matrix(2, 2, 1, 2, 3, 4), []string{"x", "#1"}},
		{"comments below names that begin with #", "# by me, today\n# a,b\n# half\n1,2\n3,4\n# end\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"GloVe", "the 1 2 3\n\" 4 5 6\n7 7 8 9\n'' 1 2 3\n# 4 5 6\n\"s 1 1 1\n", file.Options{}, matrix(6, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 1, 1, 1), nil},
		{"GloVe, with a comma first", ", 1 2 3\nthe 4 5 6\na,b 7 8 9\n", file.Options{}, matrix(3, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9), nil},
		{"an empty first field", ", 2, 3\n1, 4, 5\n, 6, 7\n", file.Options{Only: []string{"2", "3"}}, matrix(3, 2, 2, 3, 4, 5, 6, 7), nil},
		{"word2vec", "2 3\n</s> 1 2 3 \nthe 4 5 6 \n", file.Options{}, matrix(2, 3, 1, 2, 3, 4, 5, 6), nil},
		{"one column, no end of the last line", "1\n2", file.Options{}, matrix(2, 1, 1, 2), nil},
		{"Windows lines, mark and empty lines", "\ufeffx,y\r\n\r\n1,2\r\n\r\n3,4\r\n\r\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"numbers", "-1,+2.5,1e3, 7 ,0.1,1234567,0012\n", file.Options{}, matrix(1, 7, -1, 2.5, 1000, 7, 0.1, 1234567, 12), nil},
		{"quoted numbers", "\"1\",2\n3,\"4\"\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"header with an unnamed column", ",b\n1.5,2\n", file.Options{}, matrix(1, 2, 1.5, 2), nil},
		{"row numbers of pandas", ",a,b\n0,1,2\n1,3,4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"row numbers with gaps, of columns that count", ",0,1\n7,1,2\n3,3,4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"row names of R", "\"\",\"a\",\"b\"\n\"Mazda RX4\",1,2\n\"Fiat\",3,4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"row names of R without a heading", "a\tb\n1\t1\t2\n2\t3\t4\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"whole numbers that repeat", ",b\n1,2\n1,4\n", file.Options{}, matrix(2, 2, 1, 2, 1, 4), nil},
		{"row numbers that are wanted", ",b\n0,2\n1,4\n", file.Options{Only: []string{"1", "2"}}, matrix(2, 2, 0, 2, 1, 4), nil},
		{"row numbers as labels", ",b\n0,2\n1,4\n", file.Options{LabelColumn: "1"}, matrix(2, 1, 2, 4), []string{"0", "1"}},
		{"text left out", "a,kind,b,day\n1,x,2,2020-01-05\n3,NA,4,\n", file.Options{DropText: true}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"text left out but for the label", "kind,b,c\nx,2,y\ny,4,z\n", file.Options{DropText: true, LabelColumn: "kind"}, matrix(2, 1, 2, 4), []string{"x", "y"}},
		{"header that only Go takes for numbers", "1_1,0x10\n5,6\n", file.Options{}, matrix(1, 2, 5, 6), nil},
		{"header of numbers, said to be one", "0,1\n5,6\n", file.Options{Header: file.HeaderPresent}, matrix(1, 2, 5, 6), nil},
		{"header of numbers with a wanted name", "0,1,label\n5,6,7\n", file.Options{LabelColumn: "label"}, matrix(1, 2, 5, 6), []string{"7"}},
		{"label by name", "x,kind,y\n1,a,2\n3,b,4\n", file.Options{LabelColumn: "kind"}, matrix(2, 2, 1, 2, 3, 4), []string{"a", "b"}},
		{"label by number, no header", "a,1,2\nb,3,4\n", file.Options{LabelColumn: "1"}, matrix(2, 2, 1, 2, 3, 4), []string{"a", "b"}},
		{"label by number from the end", "1,2,b\n3,4,a\n", file.Options{LabelColumn: "-1"}, matrix(2, 2, 1, 2, 3, 4), []string{"b", "a"}},
		{"a name goes before a number", "2,label\n5,6\n", file.Options{LabelColumn: "2", Header: file.HeaderPresent}, matrix(1, 1, 6), []string{"5"}},
		{"the label dropped, too", "x,y\n1,2\n3,4\n", file.Options{Drop: []string{"x"}, LabelColumn: "1"}, matrix(2, 1, 2, 4), []string{"1", "3"}},
		{"drop by name and number", "id,x,note,y\nq,1,a,2\nr,3,b,4\n", file.Options{Drop: []string{"note", "1"}}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"labels with everything in them", "x,l\n1,\"a,\"\"b\"\"\nc\"\n2,\"\"\n", file.Options{LabelColumn: "l"}, matrix(2, 1, 1, 2), []string{"a,\"b\"\nc", ""}},
		{"thousands", "a,b\n\"2,905.56\",1\n7,2\n\"-1,234,567\",3\n", file.Options{}, matrix(3, 2, 2905.56, 1, 7, 2, -1234567, 3), nil},
		{"thousands that may be decimals", "a,b\n\"12,345\",1\n", file.Options{}, matrix(1, 2, 12345, 1), nil},
		{"decimal commas that may be thousands", "a;b\n12,345;1\n", file.Options{}, matrix(1, 2, 12.345, 1), nil},
		{"what another column says", "a;b\n12,345;1,234.5\n", file.Options{}, matrix(1, 2, 12345, 1234.5), nil},
		{"what decimal points say", "a;b\n12,345;1.5\n", file.Options{}, matrix(1, 2, 12345, 1.5), nil},
		{"what an earlier file says", "a;b\n12,345;1\n", file.Options{Codings: []data.Coding{{Column: "a", Kind: data.CodingPoint}}}, matrix(1, 2, 12345, 1), nil},
		{"decimal commas", "a;b\n1,5;-1.234,5e3\n-2;7\n", file.Options{}, matrix(2, 2, 1.5, -1234500, -2, 7), nil},
		{"decimal comma in quotes", "a,b\n1,\"2,5\"\n", file.Options{}, matrix(1, 2, 1, 2.5), nil},
		{"other thousands", "a;b;c\n1 234,5;1'234.5;1\u202f234\n", file.Options{}, matrix(1, 3, 1234.5, 1234.5, 1234), nil},
		{"columns in another order", "a,b,c\n1,2,3\n", file.Options{Only: []string{"c", "1"}}, matrix(1, 2, 3, 1), nil},
		{"truth values", "a,b\ntrue,TRUE\nFALSE,False\n,true\n", file.Options{Only: []string{"b"}}, matrix(3, 1, 1, 0, 1), nil},
		{"truth values as labels", "a,b\ntrue,1\nFALSE,2\n", file.Options{LabelColumn: "a"}, matrix(2, 1, 1, 2), []string{"true", "FALSE"}},
		{"lists", "emb,label\n\"[0.5, 1]\",u\n\"[2,-3e1]\",v\n", file.Options{LabelColumn: "label"}, matrix(2, 2, .5, 1, 2, -30), []string{"u", "v"}},
		{"lists of NumPy", "emb\n\"[ 1.  2.\n  -3e-1]\"\n\"[4. 5. 6.]\"\n", file.Options{}, matrix(2, 3, 1, 2, -.3, 4, 5, 6), nil},
		{"lists of PostgreSQL", "id\temb\n1\t{1,2}\n2\t{3,4}\n", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"dates", "a,b\n1970-01-02,1\n1970-01-01 12:00,2\n", file.Options{Dates: []string{"a"}}, matrix(2, 2, 1, 1, .5, 2), nil},
		{"dates with the month first", "a\n1/2/1970\n1/31/1970\n", file.Options{Dates: []string{"a"}}, matrix(2, 1, 1, 30), nil},
		{"dates with the day first", "a\n1/2/1970\n31/1/1970\n", file.Options{Dates: []string{"a"}}, matrix(2, 1, 31, 30), nil},
		{"words for missing values", "a,b\n1,x\n2,-\n3,-999\n", file.Options{NA: []string{"-", "-999", "x"}, Only: []string{"a"}}, matrix(3, 1, 1, 2, 3), nil},
		{"known categories", "a,b\n1,u\n2,w\n3,v\n", file.Options{Codings: []data.Coding{{Column: "b", Kind: data.CodingCategory, Values: []string{"u", "v"}}}}, matrix(3, 3, 1, 1, 0, 2, 0, 0, 3, 0, 1), nil},
		{"lines of old systems", "a,b\r1,2\r3,4\r", file.Options{}, matrix(2, 2, 1, 2, 3, 4), nil},
		{"no header although the label is a name", "1,a\n2,b\n", file.Options{LabelColumn: "2", Header: file.HeaderNone}, matrix(2, 1, 1, 2), []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.text), io.MultiReader(strings.NewReader(tc.text)), bytes.NewReader(gz([]byte(tc.text)))} {
				ds := need(file.Decode(r, tc.opt))(t)
				sameMatrix(t, ds.Points, tc.want)
				if (ds.Labels != nil) != (tc.labels != nil) {
					t.Fatalf("the labels are %+v, want %q", ds.Labels, tc.labels)
				}
				for i, want := range tc.labels {
					if got := ds.Labels.Names[ds.Labels.Class[i]]; got != want {
						t.Errorf("label %d is %q, want %q", i, got, want)
					}
				}
			}
		})
	}
}

func TestReadCSVErrors(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		opt        file.Options
		kind       error
		want       string
	}{
		{"nothing", "", file.Options{}, data.ErrEmpty, "the file is empty"},
		{"empty lines only", "\n\n", file.Options{}, data.ErrEmpty, "table: got no lines"},
		{"only a header", "x,y\n", file.Options{}, data.ErrEmpty, "points: got only a header"},
		{"no column left", "l\na\n", file.Options{LabelColumn: "1"}, data.ErrEmpty, "columns: got none left"},
		{"ragged", "x,y\n1,2\n\n3\n", file.Options{}, data.ErrFormat, "line 4: fields: got 1, want 2 as in line 1"},
		{"ragged, too many", "1,2\n1,2,3\n", file.Options{}, data.ErrFormat, "line 2: fields: got 3, want 2 as in line 1"},
		{"text among numbers", "x,kind\n1,2\n3,red\n", file.Options{}, data.ErrFormat, `line 3: column "kind": got "red", want a number`},
		{"a sign for a missing value", "x,y\n1,2\n3,?\n", file.Options{}, data.ErrFormat, `line 3: column "y": got "?", want a number`},
		{"text in the first line", "1,red\n2,3\n", file.Options{}, data.ErrFormat, `line 1: column 2: got "red", want a number; if the line holds names, set the header to yes (data.header, or --header of cne project)`},
		{"header although there is none", "x,y\n1,2\n", file.Options{Header: file.HeaderNone}, data.ErrFormat, `line 1: column 1: got "x", want a number`},
		{"words with a comma", "a;b\n1;2\n1;2,x\n", file.Options{}, data.ErrFormat, `"2,x", want a number`},
		{"decimal commas between commas", "a,b\n1,5,-0,25\n", file.Options{}, data.ErrFormat, "line 2: fields: got 4, want 2 as in line 1; do its numbers have decimal commas"},
		{"underscores", "a\n1\n1_000\n", file.Options{}, data.ErrFormat, `line 3: column "a": got "1_000", want a number`},
		{"hexadecimal", "1\n0x1p4\n", file.Options{}, data.ErrFormat, `line 2: column 1: got "0x1p4", want a number`},
		{"commas that are both", "a;b\n1;1,5\n1;1,234.5\n", file.Options{}, data.ErrFormat, `line 3: column "b": got "1,234.5", want a number`},
		{"a word among truth values", "a\ntrue\nFalse\nperhaps\n", file.Options{}, data.ErrFormat, `line 4: column "a": got "perhaps", want true or false, as in the rows before`},
		{"a word among dates", "a\n2020-01-01\nsoon\n", file.Options{Dates: []string{"a"}}, data.ErrFormat, `line 3: column "a": got "soon", want a date, as in the rows before`},
		{"no dates", "a,b\nOct 28 2023,1\n", file.Options{Dates: []string{"a"}}, data.ErrFormat, `columns that are not numbers: a (line 2: "Oct 28 2023", not a date such as 2024-12-31, 31.12.2024 or 12/31/2024)`},
		{"dates that are not asked for", "a,b\n2020-01-01,1\n", file.Options{}, data.ErrFormat, `columns that are not numbers: a (line 2: "2020-01-01", a date)`},
		{"lists of two lengths", "a\n\"[1,2]\"\n\"[1,2,3]\"\n", file.Options{}, data.ErrFormat, `line 3: column "a": got "[1,2,3]" with 3 numbers, want a list of 2`},
		{"two columns of lists", "a,b\n\"[1,2]\",\"[3,4]\"\n", file.Options{}, data.ErrOption, `columns of lists: got "a", "b", want one; name it as the column to take (data.columns)`},
		{"no column of dates", "a\n1\n", file.Options{Dates: []string{"day"}}, data.ErrOption, `column: got "day", want one of ["a"]`},
		{"a label that is not UTF-8", "x,l\n1,caf\xe9\n", file.Options{LabelColumn: "l"}, data.ErrFormat, `line 2: column 2: got "caf\xe9", want text in UTF-8; convert the file, for instance with iconv -f LATIN1 -t UTF-8`},
		{"UTF-16", "\xff\xfea\x00,\x00b\x00\n\x00", file.Options{}, data.ErrFormat, "the file is text in UTF-16, want UTF-8"},
		{"UTF-16 without a mark", "a\x00,\x00b\x00\n\x00", file.Options{}, data.ErrUnsupported, "nor text in UTF-8; save the points with numpy.save, or as CSV; if it is text in UTF-16, want UTF-8; save it"},
		{"big-endian UTF-16", "\xfe\xff\x00a\x00,\x00b\x00\n", file.Options{}, data.ErrFormat, "the file is text in UTF-16, want UTF-8"},
		{"a column without values", "a,b\n1,\n2,NA\n", file.Options{AllowMissing: true}, data.ErrFormat, "columns that are not numbers: b (no values)"},
		{"empty field", "1,2\n3,\n", file.Options{}, data.ErrNotFinite, "row 2: column 2: got NaN, want a finite number"},
		{"columns of text", "a,b,c,\n1,x,,2020-01-05\n2,y,3,\n", file.Options{}, data.ErrFormat, `columns that are not numbers: b (line 2: "x"), 4 (line 2: "2020-01-05", a date)`},
		{"columns of text without a header", "1,x,y\n2,y,z\n", file.Options{}, data.ErrFormat, `columns that are not numbers: 2 (line 1: "x"), 3 (line 1: "y")`},
		{"missing values", "a,b\n1,\nNA,2\n1,null\n1,2\n", file.Options{}, data.ErrNotFinite, `row 1: column "b": got NaN, want a finite number (float32); 3 of 4 rows have missing or infinite values`},
		{"mustard", "dish,sauce\n" + strings.Repeat("pie,none\n", 27) + "a,mustard\n", file.Options{}, data.ErrFormat, "columns that are not numbers"},
		{"a tar archive", "x.csv" + strings.Repeat("\x00", 252) + "ustar\x00", file.Options{}, data.ErrUnsupported, "the file is a tar archive; unpack it"},
		{"an image", "\x89PNG\r\n\x1a\n\x00", file.Options{}, data.ErrUnsupported, "the file is an image; name a folder of images"},
		{"a database", "SQLite format 3\x00", file.Options{}, data.ErrUnsupported, "the file is an SQLite database; save a table"},
		{"an old pickle", "\x80\x02}q\x00", file.Options{}, data.ErrUnsupported, "the file is a pickle; save the array"},
		{"a pickle", "\x80\x04\x95\x00", file.Options{}, data.ErrUnsupported, "the file is a pickle; save the array in it with numpy.save"},
		{"MATLAB", "MATLAB 5.0 MAT-file, \x00\x01", file.Options{}, data.ErrUnsupported, "the file is a MATLAB file; in Python, numpy.save("},
		{"lines of JSON", "{\"a\": 1}\n{\"a\": 2}\n", file.Options{}, data.ErrUnsupported, "pandas.DataFrame(map(json.loads, open("},
		{"JSON", " [\n  {\"a\": 1}]\n", file.Options{}, data.ErrUnsupported, "the file is JSON; convert it with python3"},
		{"an old Excel file", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00", file.Options{}, data.ErrUnsupported, "the file is an old Excel file; convert it with python3 -c \"import gzip, json, pandas; pandas.read_excel('FILE')"},
		{"ARFF", "\ufeff% a comment\n\n@RELATION x\n", file.Options{}, data.ErrUnsupported, `convert it with python3 -c "import csv, re; `},
		{"FITS", "SIMPLE  =                    T / conforms to FITS\x00", file.Options{}, data.ErrUnsupported, "the file is a FITS file or VOTable; convert it with python3 -c \"from astropy.table import Table; Table.read("},
		{"VOTable", "<?xml version='1.0'?>\n<!-- from\nTOPCAT -->\n<VOTABLE version='1.3'>", file.Options{}, data.ErrUnsupported, "the file is a FITS file or VOTable; "},
		{"bytes", "a,b\n1," + strings.Repeat("\x01", 60) + "\n", file.Options{}, data.ErrFormat, "b (line 2: " + strconv.Quote(strings.Repeat("\x01", 10)) + ")"},
		{"binary numbers", "\x054\x116<\xbd\xc2?9\xd6\xc5m4\x80\xf0?", file.Options{}, data.ErrUnsupported, "the file is neither IDX nor npy"},
		{"binary numbers that begin without control characters", strings.Repeat("\xb0\xfa*\xbf", 200) + strings.Repeat("\xb0\x11*\x01", 200), file.Options{}, data.ErrUnsupported, "the file is neither IDX nor npy"},
		{"text in Latin-1 before a control character", "a,b\n" + strings.Repeat("1,\xe9t\xe9\n", 200) + "\x1a", file.Options{}, data.ErrFormat, "not UTF-8; iconv"},
		{"text in CP1251", "\xe8\xec\xff,b\n\xe8\xec\xff,1\n", file.Options{}, data.ErrFormat, "not UTF-8; iconv"},
		{"text in Latin-1", "a,b\n1,\xe9t\xe9\n", file.Options{}, data.ErrFormat, "not UTF-8; iconv"},
		{"svmlight", "-1 1:0.5 7:-1e-3\n+1 2:1\n", file.Options{}, data.ErrUnsupported, "the file is in the format of svmlight; convert it with python3"},
		{"svmlight with several labels", "1,3 1:0.5\n2 2:1\n", file.Options{}, data.ErrUnsupported, "x, y = sklearn.datasets.load_svmlight_file('FILE', multilabel=True)"},
		{"svmlight without a label", " 1:0.5 3:2\n2,4 2:1\n", file.Options{}, data.ErrUnsupported, "the file is in the format of svmlight"},
		{"svmlight with queries", "2 qid:1 1:3 2:10 # a note\n0 qid:1 1:4\n", file.Options{}, data.ErrUnsupported, "the file is in the format of svmlight"},
		{"svmlight with a long first line", "0" + strings.Repeat(" 5:1.25", 20000) + "\n", file.Options{}, data.ErrUnsupported, "the file is in the format of svmlight"},
		{"an R object", "X\n\x00\x00\x00\x03", file.Options{}, data.ErrUnsupported, "in R, write.csv(readRDS('FILE')"},
		{"decimal commas below one name", "x\n11,5\n2,7\n3,9\n", file.Options{}, data.ErrFormat, "line 2: fields: got 2, want 1 as in line 1; do its numbers have decimal commas"},
		{"a title above semicolons", "Title\nx;y\n1;2\n", file.Options{}, data.ErrFormat, "line 2: fields: got 2, want 1 as in line 1; remove lines before the table"},
		{"names with blanks", "mass\nMazda RX4 2.5\nValiant 3\n", file.Options{}, data.ErrFormat, `line 2: fields: got "Mazda RX4 2.5", want names with blanks in quotation marks, or fields separated by`},
		{"too large", "1,2\n3,1e39\n", file.Options{}, data.ErrFormat, `line 2: column 2: got "1e39", want a number that float32 can hold; if it stands for a missing value, name it in data.na`},
		{"NaN", "1,2\n3,nan\n", file.Options{}, data.ErrNotFinite, "row 2: column 2: got NaN"},
		{"quotation mark within a field", "x,l\n1,a\"b\n2,c\"\n", file.Options{LabelColumn: "l"}, data.ErrFormat, "line 2: quotation marks: "},
		{"something after a quotation mark", "x,l\n1,\"a\"b\n", file.Options{LabelColumn: "l"}, data.ErrFormat, "line 2: quotation marks: "},
		{"open quotation mark", "x,l\n1,\"a\n2,b\n", file.Options{LabelColumn: "l"}, data.ErrFormat, "line 2: quotation marks: "},
		{"unknown column", "x,y\n1,2\n", file.Options{LabelColumn: "label"}, data.ErrOption, `column: got "label", want one of ["x" "y"]`},
		{"unknown column of many", "a,b,c,d,e,f,g,h,i,j,k,l\n1,2,3,4,5,6,7,8,9,10,11,12\n", file.Options{Drop: []string{"z"}}, data.ErrOption, `"i" "j"] and 2 more`},
		{"name without a header", "1,2\n", file.Options{LabelColumn: "label"}, data.ErrOption, `column "label": got a table without header`},
		{"column 0", "1,2\n", file.Options{LabelColumn: "0"}, data.ErrOption, "column: got 0, want 1 to 2, or -1 to -2"},
		{"column 3", "1,2\n", file.Options{Drop: []string{"3"}}, data.ErrOption, "column: got 3"},
		{"column -3", "1,2\n", file.Options{Drop: []string{"-3"}}, data.ErrOption, "column: got -3"},
		{"name that occurs twice", "x,x\n1,2\n", file.Options{Drop: []string{"x"}}, data.ErrOption, `column "x": got columns 1 and 2 (counted from 1), want one`},
		{"label and value", "x,y\n1,2\n", file.Options{Only: []string{"x"}, LabelColumn: "1"}, data.ErrOption, `column "x": got two uses`},
		{"a fault after comments", "# by me\r\n# today\r\na,b\r\n1,2\r\n1,x\r\n", file.Options{}, data.ErrFormat, "line 5: column \"b\": got \"x\""},
		{"colours", "#ff0000,1\n#00ff00,2\n", file.Options{}, data.ErrFormat, "columns that are not numbers: 1 (line 1: \"#ff0000\")"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantError(t, errorOf(file.Decode(strings.NewReader(tc.text), tc.opt)), tc.kind, tc.want)
		})
	}
}

// endless gives the same bytes again and again.
type endless []byte

func (e endless) Read(p []byte) (int, error) { return copy(p, e), nil }

func TestReadCSVEndless(t *testing.T) {
	for name, r := range map[string]io.Reader{
		"no line end":         endless(bytes.Repeat([]byte("1"), 1<<12)),
		"open quotation mark": io.MultiReader(strings.NewReader("\""), endless(bytes.Repeat([]byte("1,2,3,4,5,6,7,8,9\n"), 1<<8))),
		"blanks":              endless(bytes.Repeat([]byte("1 2 3 "), 1<<10)),
	} {
		_, err := file.Decode(r, file.Options{})
		if !errors.Is(err, data.ErrFormat) || !strings.Contains(err.Error(), "got more than 64 MiB") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// failing gives some bytes and then an error.
type failing struct{ r io.Reader }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err = io.ErrClosedPipe
	}
	return n, err
}

func TestReadersPassErrorsOn(t *testing.T) {
	readers := map[string]func(io.Reader) error{
		"idx": func(r io.Reader) error { _, err := decode(r); return err },
		"npy": func(r io.Reader) error { _, err := decode(r); return err },
		"csv": func(r io.Reader) error { _, err := file.Decode(r, file.Options{}); return err },
	}
	npyFile := npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }", 3, 4)
	for _, tc := range []struct {
		name    string
		content []byte
	}{{"idx", idx(8, []uint32{1, 2}, 1, 2)}, {"npy", npyFile}, {"csv", []byte("1,2\n3,4\n")}} {
		for n := range len(tc.content) + 1 {
			if err := readers[tc.name](failing{bytes.NewReader(tc.content[:n])}); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s fails after %d bytes with %v", tc.name, n, err)
			}
		}
	}
}

func TestCSVRoundTrip(t *testing.T) {
	labels := []string{"plain", "with, comma", `with "marks"`, "two\nlines", "", "tab\there", "semi;colon"}
	for _, d := range []int{1, 2, 3, 5} {
		m := normal(3, len(labels), d)
		m.X[0], m.X[d] = math.MaxFloat32, math.SmallestNonzeroFloat32
		for _, withLabels := range []bool{false, true} {
			var l *data.Labels
			var opt file.Options
			if withLabels {
				l = data.NewLabels(labels)
				opt.LabelColumn = "label"
			}
			var b bytes.Buffer
			must(t, file.WriteCSV(&b, m, l, nil))
			want := map[int]string{1: "x", 2: "x,y", 3: "x,y,z", 5: "x1,x2,x3,x4,x5"}[d]
			if withLabels {
				want += ",label"
			}
			if head, _, _ := strings.Cut(b.String(), "\n"); head != want {
				t.Errorf("the header is %q, want %q", head, want)
			}
			ds := need(file.Decode(&b, opt))(t)
			sameMatrix(t, ds.Points, m)
			if withLabels && (!slices.Equal(ds.Labels.Class, l.Class) || !slices.Equal(ds.Labels.Names, l.Names)) {
				t.Errorf("the labels are %+v, want %+v", ds.Labels, l)
			}
		}
	}
}

func TestWriteCSVErrors(t *testing.T) {
	two := matrix(2, 1, 1, 2)
	for _, tc := range []struct {
		name   string
		m      *data.Matrix
		labels *data.Labels
		kind   error
		want   string
	}{
		{"inconsistent matrix", &data.Matrix{N: 2, D: 1}, nil, data.ErrShape, "matrix of 2×1: got 0 values"},
		{"too few labels", two, data.NewLabels([]string{"a"}), data.ErrLabels, "labels: got 1, want 2, one for each point"},
		{"class without a name", two, &data.Labels{Class: []int32{0, 3}, Names: []string{"a"}}, data.ErrLabels, "class of point 2 (counted from 1): got 3, want 0 to 0"},
	} {
		wantError(t, file.WriteCSV(io.Discard, tc.m, tc.labels, nil), tc.kind, tc.want)
	}
	if err := file.WriteCSV(brokenWriter{}, two, nil, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a writer that fails gives %v", err)
	}
}

// TestCSVMemory checks that reading a long table allocates little more than the points and
// the text of its rows.
func TestCSVMemory(t *testing.T) {
	m := normal(5, 8000, 100)
	var b bytes.Buffer
	must(t, file.WriteCSV(&b, m, nil, nil))
	packed, rows := gz(b.Bytes()), b.Len()
	for name, content := range map[string][]byte{"plain": b.Bytes(), "gzip": packed} {
		var ds *data.Dataset
		var err error
		used := allocated(func() { ds, err = file.Decode(bytes.NewReader(content), file.Options{}) })
		must(t, err)
		sameMatrix(t, ds.Points, m)
		if limit := uint64(2*4*len(m.X) + 3*rows/2 + raceBytes); used > limit {
			t.Errorf("%s: %d bytes were allocated for %d of points, want at most %d", name, used, 4*len(m.X), limit)
		}
	}
}

// The header 0,1,2,… is what pandas writes for columns without names; others have years.
func TestCountingHeader(t *testing.T) {
	for text, want := range map[string]int{
		"0,1,2\n5,6,7\n":        1,
		"0,1,2\r\n5,6,7\n":      1,
		"0,1\n5,6\n":            2, // as likely two points
		"1,2,3\n5,6,7\n":        2,
		"0,1,2.5\n5,6,7\n":      2,
		"0,1,2,kind\n5,6,7,a\n": 1,
		"0,1,2\n1,2,3\n2,3,4\n3,4,5\n4,5,6\n5,6,7\n":                        6, // the rows of a window
		"kind,0,1,2\na,5,6,7\n":                                             1,
		"0,1,2,NA\n5,6,7,8\n":                                               2,
		"0,1,kind\n5,6,a\n":                                                 2,
		"0,1,2,yes\n5,1,2,no\n7,2,1,yes\n":                                  3, // a word of the rows
		"2020-01-01,0,1,2\n2020-01-02,5,1,2\n":                              2, // a date
		"true,4,5,6\n" + strings.Repeat("false,71,92,80\n", 5):              6,
		"0,1\n.5,6.25\n":                                                    1, // no number below is whole
		"1,2\n.5,6.25\n":                                                    2,
		",2001,2002\n0,.5,6.25\n":                                           1,
		"1960,1970,1980\n.5,6.25,1e-3\n":                                    1,
		"who,1960,1961,1962\na,.5,6.25,-2.5\n":                              1,
		"who,1960,1961,1963\na,.5,6.25,1\n":                                 2, // not evenly spaced
		"who,1960,1961,1962\n" + strings.Repeat("a,7,5,8\n", 5):             5, // nor like the numbers below
		"who,1960,1961,1962\n" + strings.Repeat("a,7,9,8\n", 4):             5, // which are few
		"1,2,3\n4,5,6\n7,8,9\n10,11,12\n13,14,15\n16,17,18\n":               6, // as all rows
		"1,2,3\n2,4,7\n3,6,9\n4,8,13\n5,10,16\n6,12,18\n":                   6, // growing, and without words
		"who,4,5,6,7,8\n" + strings.Repeat("a,1,2,9,1,7\nb,9,9,1,9,9\n", 5): 10,
		"who,2000,2001\n" + strings.Repeat("a,7,9\n", 5):                    6,
		"who,2000,2005,2010\n" + strings.Repeat("a,7,9,2\n", 5):             5,
		"4,5,6\n" + strings.Repeat("1,2,3\n7,8,9\n", 5) + "NA,3,4\n":        12,
	} {
		set, err := file.Decode(strings.NewReader(text), file.Options{DropText: true, AllowMissing: true})
		if err != nil || set.Points.N != want {
			t.Errorf("%q: %v points, %v; want %d", text, set, err, want)
		}
	}
}

// A first line of numbers, and first columns without names, are read as the programs that write
// them mean them.
func TestUnnamedAndNumberedColumns(t *testing.T) {
	// rows returns lines with a name, by its number, and values.
	rows := func(n int, format string) (text string) {
		for i := range n {
			text += strings.ReplaceAll(format, "#", strconv.Itoa(i+1)) + fmt.Sprintf(",%d,%v,%v\n", i*7%5, .25+float64(i*5%7), i*3%8)
		}
		return text
	}
	long := make([]string, 12000)
	for i := range long {
		long[i] = fmt.Sprintf("%q", fmt.Sprint(400.5+float64(i)*1.25))
	}
	for _, tc := range []struct {
		name, text string
		n, d       int
		log        string
	}{
		{"a quoted header", "\"7\",\"3\",\"5\",\"1e2\"\n" + rows(9, "#"), 9, 4, "the first line is in quotation marks, unlike numbers below, and is taken for column names"},
		{"over a column of text", "\"7\",\"3\",\"5\",\"9\"\n" + rows(9, "\"#\""), 9, 4, "in quotation marks"},
		{"all is quoted", "\"7\",\"3\"\n\"8\",\"3\"\n", 2, 2, ""},
		{"long lines", strings.Join(long, ",") + "\n" + strings.Repeat("1.5"+strings.Repeat(",2.5", len(long)-1)+"\n", 2), 2, len(long), "in quotation marks"},
		{"an empty first field", ",7,3,5\n" + rows(9, "c#"), 9, 3, "the first line begins with an empty field, unlike the others, and is taken for column names"},
		{"which may be missing", ",0,0,5\n" + rows(9, "#"), 10, 4, "--set data.header=yes"},
		{"which is elsewhere, too", ",1,2.5,5\n" + rows(4, "#") + rows(4, ""), 9, 4, ""},
		{"one field fewer", "7,3,5\n" + rows(9, "c#"), 9, 3, "the first line is one field shorter than the others, and is taken for column names"},
		{"one field fewer, of words", "a,b,c\n" + rows(9, "\"1.#\""), 9, 3, "the first column has no name"},
		{"years above fractions", "1990,1991,1992,1993,1994\n.5,2.5,14,.25,.5\n1.5,3.5,1.5,2.25,.5\n", 2, 5, "follow each other"},
		{"wavelengths", "400.5,402,403.25,405\n" + rows(9, "#"), 10, 4, "--set data.header=yes"},
		{"falling ones beside a word", "id,405,403,400\n" + rows(9, "c#"), 10, 3, "--set data.header=yes"},
		{"a row like the others", "1,2,3.25,5\n" + rows(9, "#"), 10, 4, ""},
		{"rising rows", "1,2,3.5\n5,6,8\n6,7,9\n7,8,9.5\n8,9,12\n9,10,12.5\n", 6, 3, ""},
		{"names on two lines", "a,a,b,b\n0,1,0,1\n" + rows(9, "1.5"), 10, 4, "several columns have the same name; if the line below theirs belongs to the header, too, remove it"},
		{"the last of two lines of names", "a,a,b,b\n" + rows(9, "1.5"), 9, 4, "have the same name"},
		{"quoted row names", ",a,b,c\n" + rows(9, "\"1.1\""), 9, 3, "the first column has no name"},
		{"rising row names", ",a,b,c\n" + rows(12, "#.5"), 12, 3, "the first column has no name"},
		{"row names with some numbers", ",a,b,c\n" + rows(9, "c#") + rows(3, "#"), 12, 3, "the first column has no name"},
		{"numbers", ",a,b,c\n" + rows(9, "1.#") + rows(9, "1.#"), 18, 4, "are part of all distances: 1; if they are row names or classes, --set data.drop=1 leaves"},
		{"two indices", ",,b,c\n" + rows(9, "c"), 9, 3, "are part of all distances: 2;"},
		{"two indices, of which one repeats", "\"\",\"\",\"b\",\"c\",\"d\"\n" + rows(9, "1,#"), 9, 4, "are part of all distances: 1;"},
	} {
		var log strings.Builder
		set, err := file.Decode(strings.NewReader(tc.text), file.Options{DropText: true, AllowMissing: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil || set.Points.N != tc.n || set.Points.D != tc.d || !strings.Contains(log.String(), tc.log) || tc.log == "" && strings.Contains(log.String(), "first line") {
			t.Errorf("%s: %v, %v; want %d points of %d values, and %q in the log %s", tc.name, set, err, tc.n, tc.d, tc.log, log.String())
		}
	}
}
