package plot

import (
	"image/color"
	"math"
	"slices"
	"testing"

	"cne/data"
)

// Simulated absence of one kind of cone, in linear sRGB (Machado, Oliveira and
// Fernandes, 2009, severity 1).
var eyes = map[string][3][3]float64{
	"normal":       {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
	"protanopic":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
	"deuteranopic": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
	"tritanopic":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
}

// oklab returns the colour as an eye sees it, in OKLab.
func oklab(c color.NRGBA, eye [3][3]float64) [3]float64 {
	var linear [3]float64
	for k, v := range []uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if x <= 0.04045 {
			linear[k] = x / 12.92
		} else {
			linear[k] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	var seen [3]float64
	for k, row := range eye {
		seen[k] = min(1, max(0, row[0]*linear[0]+row[1]*linear[1]+row[2]*linear[2]))
	}
	r, g, b := seen[0], seen[1], seen[2]
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func apart(a, b color.NRGBA, eye [3][3]float64) float64 {
	x, y := oklab(a, eye), oklab(b, eye)
	return math.Sqrt((x[0]-y[0])*(x[0]-y[0]) + (x[1]-y[1])*(x[1]-y[1]) + (x[2]-y[2])*(x[2]-y[2]))
}

// leastApart returns how far class c has to be from those before it: of the first ten, to
// every eye; of the first twenty, to a normal eye and to others; and of all, to both.
func leastApart(c int, normal bool, ten, twenty, twentyOthers, all, allOthers float64) float64 {
	switch {
	case c < 10:
		return ten
	case c < 20 && normal:
		return twenty
	case c < 20:
		return twentyOthers
	case normal:
		return all
	}
	return allOthers
}

// The nearest two of the first twenty are 0.127 apart, and 0.111 on a dark ground.
func TestClassesCanBeToldApart(t *testing.T) {
	for name, eye := range eyes {
		for c := range maxLegend {
			for other := range c {
				least := leastApart(c, name == "normal", 0.11, 0.126, 0.066, 0.076, 0.045)
				if d := apart(ClassColour(c), ClassColour(other), eye); d < least {
					t.Errorf("%s: classes %d and %d are %.3f apart, want at least %.3f", name, c, other, d, least)
				}
			}
			if d := apart(ClassColour(c), color.NRGBA{255, 255, 255, 255}, eye); d < 0.15 {
				t.Errorf("%s: class %d is %.3f from white", name, c, d)
			}
			if d := apart(ClassColour(c), unlabeled, eye); d < 0.045 {
				t.Errorf("%s: class %d is %.3f from grey", name, c, d)
			}
		}
	}
	if ClassColour(maxLegend+3) != ClassColour(3) {
		t.Error("colours do not repeat after those of a legend")
	}
}

// To every kind of eye, held-out points stand off from the others of their
// class: a little by their colour where that is light, and a lot by their rims.
func TestHeldOutCanBeToldApart(t *testing.T) {
	colours := []color.NRGBA{neutral}
	for c := range maxLegend {
		colours = append(colours, ClassColour(c))
	}
	for i := range 64 {
		colours = append(colours, ValueColour(float64(i)/63))
	}
	for name, eye := range eyes {
		for _, c := range colours {
			if d := apart(c, tint(c), eye); d < 0.04 {
				t.Errorf("%s: the tint of %v is %.3f from it", name, c, d)
			}
			if d := apart(tint(c), shade(c), eye); d < 0.4 {
				t.Errorf("%s: rims of %v are %.3f from the tint", name, c, d)
			}
			if d := apart(tint(c), color.NRGBA{255, 255, 255, 255}, eye); d < 0.06 {
				t.Errorf("%s: the tint of %v is %.3f from white", name, c, d)
			}
		}
	}
}

// Equal steps of the value are steps of about equal size to the eye, and
// always to a lighter colour.
func TestValueColours(t *testing.T) {
	var steps []float64
	const n = 32
	for name, eye := range eyes {
		steps = steps[:0]
		for i := range n {
			a, b := ValueColour(float64(i)/n), ValueColour(float64(i+1)/n)
			steps = append(steps, apart(a, b, eye))
			if oklab(b, eye)[0] <= oklab(a, eye)[0] {
				t.Errorf("%s: step %d does not get lighter", name, i)
			}
		}
		var mean float64
		for _, s := range steps {
			mean += s / n
		}
		for i, s := range steps {
			if name == "normal" && (s < mean/2 || s > 2*mean) {
				t.Errorf("step %d is %.4f, the mean %.4f", i, s, mean)
			}
		}
	}
	if ValueColour(0) != viridis[0] || ValueColour(1) != viridis[len(viridis)-1] {
		t.Error("the ends are not those of the map")
	}
}

// On a dark ground, colours keep their hue and can still be told apart.
func TestOnDark(t *testing.T) {
	ground := color.NRGBA{0x12, 0x14, 0x18, 0xff}
	for name, eye := range eyes {
		for c := range maxLegend {
			colour := OnDark(ClassColour(c))
			for other := range c {
				least := leastApart(c, name == "normal", 0.08, 0.111, 0.051, 0.068, 0.035)
				if d := apart(colour, OnDark(ClassColour(other)), eye); d < least {
					t.Errorf("%s: classes %d and %d are %.3f apart, want at least %.3f", name, c, other, d, least)
				}
			}
			if d := apart(colour, ground, eye); d < 0.28 {
				t.Errorf("%s: class %d is %.3f from the ground", name, c, d)
			}
		}
	}
	for c := range maxLegend {
		light, dark := oklab(ClassColour(c), eyes["normal"]), oklab(OnDark(ClassColour(c)), eyes["normal"])
		turn := math.Atan2(light[2], light[1]) - math.Atan2(dark[2], dark[1])
		if turn = math.Abs(math.Remainder(turn, 2*math.Pi)); turn > 0.12 {
			t.Errorf("class %d turns by %.2f rad in hue", c, turn)
		}
	}
	if c := (color.NRGBA{0x12, 0x34, 0x56, 0x78}); OnDark(c).A != c.A {
		t.Errorf("the opacity of %v becomes %v", c, OnDark(c).A)
	}
}

func TestOfLabels(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name    string
		labels  []string
		classes []int32
		names   []string
		values  []float64
	}{
		{"none", nil, nil, nil, nil},
		{"words", []string{"b", "a", "b", "c"}, []int32{1, 0, 1, 2}, []string{"a", "b", "c"}, nil},
		{"digits", []string{"7", "3", "7", "3"}, []int32{1, 0, 1, 0}, []string{"3", "7"}, nil},
		{"numbers", []string{"1.5", "3", "3", "2"}, nil, nil, []float64{1.5, 3, 3, 2}},
		{"some words are missing", []string{"b", "", "a", "NaN"}, []int32{1, -1, 0, -1}, []string{"a", "b"}, nil},
		{"a digit is missing", []string{"7", "", "7", "7"}, []int32{0, -1, 0, 0}, []string{"7"}, nil},
		{"some numbers are missing", []string{"0.5", "", "1.5", "nan"}, nil, nil, []float64{0.5, nan, 1.5, nan}},
		{"all are missing", []string{"", "", "nan", ""}, nil, nil, nil},
	} {
		var labels *data.Labels
		if tc.labels != nil {
			labels = data.NewLabels(tc.labels)
		}
		got := OfLabels(labels)
		same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
		if !slices.Equal(got.Classes, tc.classes) || !slices.Equal(got.ClassNames, tc.names) || !slices.EqualFunc(got.Values, tc.values, same) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}

// Classes that are arranged keep their order and their colours, also next to missing ones.
func TestColoursOfArrangedLabels(t *testing.T) {
	labels := data.NewLabels([]string{"b", "", "a", "c"})
	labels.Arrange([]string{"c", "gone", "b"}, []int32{0xff0000, 1, 0x00ff00})
	got := OfLabels(labels)
	if !slices.Equal(got.Classes, []int32{1, -1, 2, 0}) || !slices.Equal(got.ClassNames, []string{"c", "b", "a"}) || !slices.Equal(got.ClassColours, []int32{0xff0000, 0x00ff00, -1}) {
		t.Errorf("%+v", got)
	}
	colours := got.ClassColours
	if got, want := ColourOf(colours, 1), (color.NRGBA{0, 0xff, 0, 0xff}); got != want {
		t.Errorf("class 1 is %v, want %v", got, want)
	}
	for c := 2; c < 4; c++ {
		if got := ColourOf(colours, c); got != ClassColour(c) {
			t.Errorf("class %d is %v, want the default", c, got)
		}
	}
}
