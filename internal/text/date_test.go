package text

import (
	"math"
	"testing"
)

// Dates and times are days since 1970, as Python's datetime says.
func TestParseDays(t *testing.T) {
	for _, tc := range []struct {
		text  string
		order DateOrder
		want  float64 // NaN: no date
	}{
		{"1970-01-01", DateClear, 0},
		{"2020-01-01", DateClear, 18262},
		{"2020-1-1", DateClear, 18262},
		{"2020/01/01", DateClear, 18262},
		{"01.02.2020", DateClear, 18293},
		{"31 Dec 1969", DateClear, -1},
		{"31-Dec-1969", DateClear, -1},
		{"December 31, 1969", DateClear, -1},
		{"2020-01-01 06:00", DateClear, 18262.25},
		{"2020-01-01T06:00:00", DateClear, 18262.25},
		{"2020-01-01T06:00:00Z", DateClear, 18262.25},
		{"2020-01-01 06:00:00.000000", DateClear, 18262.25},
		{"2020-01-01 06:00:00+00", DateClear, 18262.25},
		{"2020-01-01T07:00:00+01:00", DateClear, 18262.25},
		{"2020-01-01 07:00:00 +0100", DateClear, math.NaN()},
		{"2020-01-01 06:00:00 UTC", DateClear, 18262.25},
		{"2020-01-01 06:00:00 EST", DateClear, math.NaN()},
		{"2020-01-01 00:00:43.2", DateClear, 18262.0005},
		{"2020-01-01 6:00 PM", DateClear, 18262.75},
		{"12:00", DateClear, .5},
		{"06:00:00", DateClear, .25},
		{"12/31/1969", DateMonthDay, -1},
		{"12/31/1969 12:00:00", DateMonthDay, -.5},
		{"31/12/1969", DateDayMonth, -1},
		{"31/12/1969", DateMonthDay, math.NaN()},
		{"12/31/1969", DateClear, math.NaN()},
		{"2020-02-30", DateClear, math.NaN()},
		{"2020", DateClear, math.NaN()},
		{"1.5", DateClear, math.NaN()},
		{"1,234.5", DateClear, math.NaN()},
		{"v1.2.2020", DateClear, math.NaN()},
		{"one day", DateClear, math.NaN()},
		{"", DateClear, math.NaN()},
	} {
		got, ok := ParseDays(tc.text, tc.order)
		if ok == math.IsNaN(tc.want) || ok && math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s, order %d: %v, %v, want %v", tc.text, tc.order, got, ok, tc.want)
		}
	}
	if !IsDate("31/12/1969") || IsDate("a/b/c") {
		t.Error("other texts are dates")
	}
}

// Any text is a date, with days that are finite, or none.
func FuzzParseDays(f *testing.F) {
	for _, s := range []string{"2020-01-01", "1/2/2020 3:04:05 PM", "12:00", "2020-01-01T00:00:00.5+01:00", "T:", "- :"} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, s string, order int) {
		days, ok := ParseDays(s, DateOrder(order&1+order>>1&1))
		if math.IsNaN(days) || math.Abs(days) > 4e6 || !ok && days != 0 {
			t.Errorf("%q: %v, %v", s, days, ok)
		}
	})
}
