package data_test

import (
	"slices"
	"strings"
	"testing"

	"cne/data"
)

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
		{"one that is no number makes all text", []string{"10", "9", "x"}, []int32{0, 1, 2}, []string{"10", "9", "x"}, nil},
		{"NaN is no number", []string{"2", "nan"}, []int32{0, 1}, []string{"2", "nan"}, nil},
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
