package option

import (
	"errors"
	"math"
	"reflect"
	"testing"
)

type entry struct {
	Width int `key:"width" in:"[1,9]"`
}

type options struct {
	Rate   float64    `key:"rate,null" in:"(0,inf)"`
	Bound  *float64   `key:"bound" in:"[0,1)"`
	Count  int        `key:"count" in:"[1,inf)" words:"all=-1"`
	Few    int        `key:"few" in:"0 or [3,5]"`
	Any    float64    `key:"any"`
	Widths []int      `key:"widths" in:"[1,9]"`
	Colour [3]float32 `key:"colour" in:"[0,1]"`
	Inner  entry      `key:"inner"`
	Parts  []entry    `key:"parts" item:"part"`
	Other  int
}

func TestCheck(t *testing.T) {
	for want, o := range map[string]options{
		"":                                      {},
		"rate: got -1, want a number above 0":   {Rate: -1},
		"rate: got +Inf, want a number above 0": {Rate: math.Inf(1)},
		"any: got NaN, want a number":           {Any: math.NaN()},
		"bound: got 1, want a number of at least 0 and below 1":           {Bound: new(1.)},
		"count: got -2, want a whole number of at least 1 or -1 (all)":    {Count: -2},
		"few: got 2, want 0 or a whole number from 3 to 5":                {Few: 2},
		"widths: got 0, want a whole number from 1 to 9":                  {Widths: []int{2, 0}},
		"colour: got 2, want a number from 0 to 1":                        {Colour: [3]float32{0, 2}},
		"inner.width: got 10, want a whole number from 1 to 9":            {Inner: entry{10}},
		"parts: width of part 2: got 11, want a whole number from 1 to 9": {Parts: []entry{{1}, {11}}},
	} {
		err := Check(&o)
		if got := new(Error); (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.As(err, &got)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := Check(options{Rate: 1, Bound: new(0.), Count: -1, Few: 4, Widths: []int{9}, Other: -5}); err != nil {
		t.Error(err)
	}
	keys := []string{}
	for _, f := range Fields(reflect.TypeFor[options]()) {
		keys = append(keys, f.Key)
	}
	if want := []string{"rate", "bound", "count", "few", "any", "widths", "colour", "inner.width", "parts"}; !reflect.DeepEqual(keys, want) {
		t.Errorf("keys %q", keys)
	}
}

func TestError(t *testing.T) {
	cause := errors.New("bad")
	e := &Error{Key: "a.b", Item: "part 2", List: "parts", Got: "1", Want: "2", Other: "c.d", OtherGot: "3", Err: cause}
	if got := e.Error(); got != "parts: b of part 2: got 1 with c.d 3, want 2" || !errors.Is(e, cause) {
		t.Error(got)
	}
}

func TestInBoth(t *testing.T) {
	at := map[int]error{1: &Error{Key: "a", Want: "x"}, 2: &Error{Key: "a", Want: "y"}, 3: &Error{Key: "a", Want: "x"}, 4: nil}
	for _, tc := range []struct {
		low, high int
		want      bool
	}{{1, 1, true}, {1, 3, true}, {1, 2, false}, {4, 1, false}, {1, 4, false}} {
		if err := InBoth(func(n int) error { return at[n] }, tc.low, tc.high); (err != nil) != tc.want {
			t.Errorf("from %d to %d: %v", tc.low, tc.high, err)
		}
	}
}

func TestRanges(t *testing.T) {
	for in, tc := range map[string]struct {
		text    string
		inside  []float64
		outside []float64
	}{
		"":           {"a number", []float64{-1e300, 0, 1e300}, nil},
		"(0,inf)":    {"a number above 0", []float64{1e-300}, []float64{0, -1}},
		"[0,inf)":    {"a number of at least 0", []float64{0, 1}, []float64{-1e-300}},
		"(0,1]":      {"a number above 0 and at most 1", []float64{0.5, 1}, []float64{0, 1.5}},
		"[0,1)":      {"a number of at least 0 and below 1", []float64{0, 0.5}, []float64{-0.5, 1}},
		"[-1e6,1e6]": {"a number from -1e6 to 1e6", []float64{-1e6, 1e6}, []float64{-1e7, 1e7}},
		"[1e-6,0.5]": {"a number from 1e-6 to 0.5", []float64{1e-6, 0.5}, []float64{0, 1}},
	} {
		i := ParseRange(in)
		if i.Text(false) != tc.text {
			t.Errorf("%s: %q, want %q", in, i.Text(false), tc.text)
		}
		for _, x := range tc.inside {
			if !i.Contains(x) {
				t.Errorf("%s lacks %g", in, x)
			}
		}
		for _, x := range tc.outside {
			if i.Contains(x) {
				t.Errorf("%s contains %g", in, x)
			}
		}
	}
}
