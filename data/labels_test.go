package data_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cne/data"
)

// Missing labels, however programs write them, are of no class.
func TestKnown(t *testing.T) {
	l := data.NewLabels([]string{"2", "NA", "10", "", "<NA>", "None", "2.0", "NaT"})
	points, known := l.Known()
	if !slices.Equal(points, []int{0, 2, 6}) || !slices.Equal(known.Names, []string{"2", "10"}) || !slices.Equal(known.Value, []float64{2, 10, 2}) {
		t.Errorf("got points %v of %+v", points, known)
	}
}

// Infinity is missing among numbers, and a name among words.
func TestKnownInfinity(t *testing.T) {
	points, known := data.NewLabels([]string{"2", "inf", "NA", "-Inf", "3.5"}).Known()
	if !slices.Equal(points, []int{0, 4}) || !slices.Equal(known.Value, []float64{2, 3.5}) {
		t.Errorf("among numbers: got points %v of %+v", points, known)
	}
	if points, _ := data.NewLabels([]string{"2", "Inf", "NA", "x"}).Known(); !slices.Equal(points, []int{0, 1, 3}) {
		t.Errorf("among words: got points %v", points)
	}
}

func TestNewLabels(t *testing.T) {
	for _, tc := range []struct {
		name   string
		labels []string
		class  []int32
		names  []string
		value  []float64
	}{
		{"text", []string{"b", "a", "b", "B"}, []int32{2, 1, 2, 0}, []string{"B", "a", "b"}, nil},
		{"numbers are sorted as such", []string{"10", "9", "-1", "10"}, []int32{2, 1, 0, 2}, []string{"-1", "9", "10"}, []float64{10, 9, -1, 10}},
		{"equal numbers are one class", []string{"5.0", "5", "05", "7"}, []int32{0, 0, 0, 1}, []string{"5", "7"}, []float64{5, 5, 5, 7}},
		{"codes of one length are text", []string{"010", "007", "010", "123", "007", "010"}, []int32{1, 0, 1, 2, 0, 1}, []string{"007", "010", "123"}, nil},
		{"padded numbers", []string{"010", "007", "123", "010"}, []int32{1, 0, 2, 1}, []string{"007", "010", "123"}, []float64{10, 7, 123, 10}},
		{"one that is no number makes all text", []string{"10", "9", "x"}, []int32{0, 1, 2}, []string{"10", "9", "x"}, nil},
		{"NaN is no number", []string{"2", "nan"}, []int32{0, 1}, []string{"2", "nan"}, nil},
		{"names of digits and underscores stay apart", []string{"12", "1_2", "12"}, []int32{0, 1, 0}, []string{"12", "1_2"}, nil},
		{"hexadecimal numbers are names", []string{"16", "0x10"}, []int32{1, 0}, []string{"0x10", "16"}, nil},
		{"integers beyond 2^53 stay apart", []string{"9007199254740993", "9007199254740992"}, []int32{0, 0}, nil, nil},
		{"none", nil, []int32{}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := data.NewLabels(tc.labels)
			if strings.HasPrefix(tc.name, "integers beyond") {
				// 2⁵³+1 rounds to 2⁵³: both must be taken as text.
				l = data.NewLabels([]string{"90071992547409930", "90071992547409931"})
				if len(l.Names) != 2 || l.Value != nil {
					t.Errorf("the labels are %+v", l)
				}
				return
			}
			if !slices.Equal(l.Class, tc.class) || !slices.Equal(l.Names, tc.names) || !slices.Equal(l.Value, tc.value) || (l.Value == nil) != (tc.value == nil) {
				t.Errorf("the labels are %+v", l)
			}
		})
	}
}

func TestDates(t *testing.T) {
	for label, want := range map[string]bool{"2020-02-29": true, "1 Mar 1999": true, "2020": false, "1.5": false, "ant": false} {
		if got := data.NewLabels([]string{"NA", label}).Dates(); got != want {
			t.Errorf("%s is a date: %v", label, got)
		}
	}
	if (*data.Labels)(nil).Dates() {
		t.Error("no labels are dates")
	}
}

func TestCategorical(t *testing.T) {
	// numbers returns label(0), …, label(n−1), each as often as repeat says.
	numbers := func(n, repeat int, label func(i int) float64) []string {
		var labels []string
		for range repeat {
			for i := range n {
				labels = append(labels, fmt.Sprint(label(i)))
			}
		}
		return labels
	}
	from := func(first float64) func(int) float64 { return func(i int) float64 { return first + float64(i) } }
	times := func(step float64) func(int) float64 { return func(i int) float64 { return step * float64(i) } }
	for _, tc := range []struct {
		name   string
		labels []string
		want   bool
	}{
		{"words", []string{"cat", "dog", "cat"}, true},
		{"words that all differ", []string{"Ann", "Bob", "Cid"}, true},
		{"words among numbers", []string{"1.5", "2.5", "many"}, true},
		{"none", nil, true},
		{"digits", numbers(10, 7, from(0)), true},
		{"two classes", numbers(2, 5, from(0)), true},
		{"plus and minus one", numbers(2, 5, func(i int) float64 { return float64(2*i - 1) }), true},
		{"a single class", []string{"3", "3"}, true},
		{"clusters with noise", numbers(31, 4, from(-1)), true},
		{"clusters numbered from 1", numbers(50, 2, from(1)), true},
		{"some clusters are missing", numbers(20, 3, func(i int) float64 { return float64(i + i/2) }), true},
		{"most clusters are missing", numbers(20, 3, times(3)), false},
		{"too many clusters", numbers(51, 4, from(0)), false},
		{"few codes", numbers(12, 3, times(100)), true},
		{"more codes", numbers(13, 3, times(100)), false},
		{"negative numbers", numbers(13, 3, from(-6)), false},
		{"whole numbers with decimals", []string{"1.0", "2.0", "1.0", "2.0"}, true},
		{"ages", numbers(45, 20, from(18)), false},
		{"years", numbers(30, 20, from(1990)), false},
		{"halves", numbers(4, 20, times(0.5)), false},
		{"numbers of the points", numbers(20, 1, from(0)), false},
		{"numbers of few points", numbers(5, 1, from(0)), false},
	} {
		if got := data.NewLabels(tc.labels).Categorical(); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

// No labels are no quantities, and no data are an error.
func TestNoLabels(t *testing.T) {
	if !(*data.Labels)(nil).Categorical() {
		t.Error("no labels are quantities")
	}
	if err := (*data.Dataset)(nil).Check(); !errors.Is(err, data.ErrEmpty) {
		t.Errorf("the error about no data is %v", err)
	}
}

// A model keeps the names of classes but not the names of points.
func TestModelKeepsClassNames(t *testing.T) {
	for kind, want := range map[string][]string{"class": {"ant", "bee"}, "name": nil, "quantity": nil} {
		names := make([]string, 40)
		for i := range names {
			names[i] = map[string]string{"class": []string{"ant", "bee"}[i%2], "name": fmt.Sprintf("patient %d", i), "quantity": fmt.Sprintf("%d.25", i)}[kind]
		}
		if got := data.NewLabels(names).ClassNames(); !slices.Equal(got, want) {
			t.Errorf("%s: names %q, want %q", kind, got, want)
		}
	}
	l := data.NewLabels([]string{"a", "a", "b", "b", "c", "c"})
	l.Class = l.Class[:4] // c is held out
	if got := l.ClassNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names %q", got)
	}
}

// Arranged labels stay so when points are taken, and labels joined.
func TestArrange(t *testing.T) {
	l := data.NewLabels([]string{"b", "a", "c", "a"})
	l.Arrange([]string{"c", "a"}, []int32{7, 8})
	if !slices.Equal(l.Names, []string{"c", "a", "b"}) || !slices.Equal(l.Colors, []int32{7, 8, -1}) || !slices.Equal(l.All(), []string{"b", "a", "c", "a"}) {
		t.Fatalf("got %q, colours %d, labels %q", l.Names, l.Colors, l.All())
	}
	joined := data.JoinLabels(data.NewLabels([]string{"d"}), l.Take([]int{0, 2}))
	if !slices.Equal(joined.Names, []string{"c", "b", "d"}) || !slices.Equal(joined.Colors, []int32{7, -1, -1}) || !slices.Equal(joined.All(), []string{"d", "b", "c"}) {
		t.Errorf("joined: got %q, colours %d, labels %q", joined.Names, joined.Colors, joined.All())
	}
	numbers := data.NewLabels([]string{"0", "2", "1"})
	numbers.Arrange([]string{"0", "1", "2"}, []int32{1, 2, 3})
	if !slices.Equal(numbers.Value, []float64{0, 2, 1}) || !slices.Equal(numbers.Class, []int32{0, 2, 1}) {
		t.Errorf("numbers: got %v of classes %v", numbers.Value, numbers.Class)
	}
}
