package plot

import (
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cne/data"
	"cne/internal/selection"
)

// classColours holds the colours of the classes as 0xRRGGBB. They were found by random
// searches for colours as far apart as possible in the OKLab space (Ottosson, 2020), both
// for normal eyes and for eyes without long-, middle- or short-wave cones as Machado et
// al. (2009) simulate them, of limited chroma and dark enough for a white ground. The
// nearest two of the first ten have a distance of 0.11 or more for every kind of eye,
// nearly twice the distance in common palettes of ten. For normal eyes, the nearest two
// of the first twenty have a distance of 0.127, and of 0.111 on a dark ground, twice the
// distance in Tableau's twenty; for other eyes it is 0.066 and 0.051. The other twenty
// are harder to distinguish.
var classColours = [...]uint32{
	0x1c5f83, 0xfbb422, 0x890a32, 0x1ba2ad, 0xdf745f,
	0x470d98, 0x05e3a3, 0xa96cfb, 0x7f640b, 0xbbb5f1,

	0xb623a8, 0x1c5be0, 0x1c3f00, 0xd9154d, 0x001562,
	0x699a00, 0x54315b, 0xa16277, 0xe777d2, 0x93b68c,

	0x3123cb, 0x7ea1f5, 0xa8a80e, 0x85ee77, 0x9acbd2,
	0x313f7e, 0xcba162, 0x7e3f5b, 0x9a937e, 0xd94dd2,
	0xcbc47e, 0x2a2338, 0xa169b6, 0x5b5ba1, 0x8546c4,
	0x5bd93f, 0xc4a8b6, 0x626954, 0x777793, 0xc47ea8,
}

// neutral stands for the colours of all classes.
var neutral = color.NRGBA{0x80, 0x80, 0x80, 0xff}

// tint returns a colour half as far from white. Points in this colour are a background
// for points in the full colour. The colour of points without a label is light enough and
// stays.
func tint(c color.NRGBA) color.NRGBA {
	if c == unlabeled {
		return c
	}
	half := func(v uint8) uint8 { return uint8((int(v) + 0xff) / 2) }
	return color.NRGBA{half(c.R), half(c.G), half(c.B), c.A}
}

// shade returns a dark colour of the same hue for the rim of a point. Black would hide
// the colours where many points with rims lie together.
func shade(c color.NRGBA) color.NRGBA {
	dark := func(v uint8) uint8 { return uint8(int(v) * 2 / 5) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), c.A}
}

// single is the colour of points if none has a class or value.
var single = ClassColour(0)

// UnlabeledColour returns the colour of points without class or value among
// others that have one.
func UnlabeledColour() color.NRGBA { return unlabeled }

// ClassName returns the printable name of class c ≥ 0, or its number where names has none.
func ClassName(names []string, c int32) string {
	if int(c) < len(names) {
		if name := Printable(names[c]); name != "" {
			return name
		}
	}
	return strconv.Itoa(int(c))
}

// OfLabels returns the colouring of points with labels. Points without a label have the
// class −1, or the value NaN; if none has a label, there are neither classes nor values.
func OfLabels(labels *data.Labels) Colouring {
	c := Colouring{Dates: labels.Dates()}
	rows, known := labels.Known()
	switch {
	case len(rows) == 0:
	case known.Categorical():
		c.Classes, c.ClassNames, c.ClassColours = slices.Repeat([]int32{-1}, len(labels.Class)), known.Names, known.Colors
		for k, i := range rows {
			c.Classes[i] = known.Class[k]
		}
	default:
		c.Values = slices.Repeat([]float64{math.NaN()}, len(labels.Class))
		for k, i := range rows {
			c.Values[i] = known.Value[k]
		}
	}
	return c
}

// markNames returns the names of marks on the scale of the values, which span that much.
func (s *Scatter) markNames(marks []float64, span float64) []string {
	layout := selection.If(span < 0.05, "2006-01-02 15:04", time.DateOnly) // 18 days
	years := !slices.ContainsFunc(marks, func(v float64) bool { return v != math.Trunc(v) })
	if !s.Dates || years {
		return selection.Map(marks, Number)
	}
	return selection.Map(marks, func(v float64) string {
		return time.Unix(int64(math.Round((v-1970)*365.2425*24*60))*60, 0).UTC().Format(layout)
	})
}

// Present returns the classes that occur, in order, and the index among them of each point's
// class. Negative classes mean none: they are left out, and have the index −1.
func Present(classes []int32) (present, index []int32) {
	present = slices.Compact(slices.Sorted(slices.Values(classes)))
	present = slices.DeleteFunc(present, func(c int32) bool { return c < 0 })
	index = selection.Map(classes, func(c int32) int32 {
		k, found := slices.BinarySearch(present, c)
		return selection.If(found, int32(k), -1)
	})
	return present, index
}

// ClassColour returns the colour of class c ≥ 0 on a light ground. It does not depend on
// the other classes. Colours repeat after 40 classes, the most in a legend.
func ClassColour(c int) color.NRGBA { return ColourOf(nil, c) }

// ColourOf returns the colour of class c ≥ 0 on a light ground if classes have colours of
// their own, 0xRRGGBB: ClassColour for a negative one, and beyond them.
func ColourOf(colours []int32, c int) color.NRGBA {
	v := classColours[c%len(classColours)]
	if c < len(colours) && colours[c] >= 0 {
		v = uint32(colours[c])
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

// viridis holds ten equidistant colours of the colour map viridis by van der Walt and
// Smith. Equal steps of the value look equally large in it, also for colour-blind eyes
// and in greyscale.
var viridis = [...]color.NRGBA{
	{0x44, 0x01, 0x54, 0xff}, {0x48, 0x28, 0x78, 0xff}, {0x3e, 0x49, 0x89, 0xff},
	{0x31, 0x68, 0x8e, 0xff}, {0x26, 0x82, 0x8e, 0xff}, {0x1f, 0x9e, 0x89, 0xff},
	{0x35, 0xb7, 0x79, 0xff}, {0x6e, 0xce, 0x58, 0xff}, {0xb5, 0xde, 0x2b, 0xff},
	{0xfd, 0xe7, 0x25, 0xff},
}

// ValueColour returns the colour at position t of the continuous scale, from
// 0 to 1.
func ValueColour(t float64) color.NRGBA {
	at := t * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	a, b, share := viridis[i], viridis[i+1], at-float64(i)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	return color.NRGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xff}
}

// darkFloor is the lightness, in OKLab, that black would get on a dark ground.
const darkFloor = 0.4

// OnDark returns a colour for a dark background with the hue of c, a colour for a light
// background. It raises the lightness (of OKLab; Ottosson, 2020) of dark colours; light
// colours hardly change.
func OnDark(c color.NRGBA) color.NRGBA {
	l, a, b := toOKLab(c)
	l = darkFloor + (1-darkFloor)*math.Pow(l, 1.5)
	// A raised lightness may leave the colours of a screen; less chroma does not.
	for share := 1.0; ; share -= 0.02 {
		if out, ok := fromOKLab(l, share*a, share*b); ok || share <= 0 {
			out.A = c.A
			return out
		}
	}
}

func toOKLab(c color.NRGBA) (l, a, b float64) {
	linear := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	r, g, bl := linear(c.R), linear(c.G), linear(c.B)
	x := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*bl)
	y := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*bl)
	z := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*bl)
	return 0.2104542553*x + 0.7936177850*y - 0.0040720468*z,
		1.9779984951*x - 2.4285922050*y + 0.4505937099*z,
		0.0259040371*x + 0.7827717662*y - 0.8086757660*z
}

// fromOKLab returns the nearest colour of a screen, and whether it is the one
// that was meant.
func fromOKLab(l, a, b float64) (color.NRGBA, bool) {
	x := l + 0.3963377774*a + 0.2158037573*b
	y := l - 0.1055613458*a - 0.0638541728*b
	z := l - 0.0894841775*a - 1.2914855480*b
	x, y, z = x*x*x, y*y*y, z*z*z
	ok := true
	encode := func(v float64) uint8 {
		if v < -1e-4 || v > 1+1e-4 {
			ok = false
		}
		v = min(1, max(0, v))
		if v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		return uint8(math.Round(255 * v))
	}
	c := color.NRGBA{
		R: encode(4.0767416621*x - 3.3077115913*y + 0.2309699292*z),
		G: encode(-1.2684380046*x + 2.6097574011*y - 0.3413193965*z),
		B: encode(-0.0041960863*x - 0.7034186147*y + 1.7076147010*z),
		A: 0xff,
	}
	return c, ok
}

// roundLength returns the longest length of 1, 2 or 5 times a power of ten
// that is not above limit, as mantissa and exponent; limit is positive and
// finite.
func roundLength(limit float64) (mantissa, exponent int) {
	// One above, because the logarithm may be off by its last place.
	for exponent = int(math.Floor(math.Log10(limit))) + 1; ; exponent-- {
		for _, mantissa := range []int{5, 2, 1} {
			if decimal(mantissa, exponent) <= limit {
				return mantissa, exponent
			}
		}
	}
}

// decimal returns the floating-point number nearest to mantissa·10^exponent;
// a product would give 0.30000000000000004 for 3·10⁻¹.
func decimal(mantissa, exponent int) float64 {
	v, _ := strconv.ParseFloat(strconv.Itoa(mantissa)+"e"+strconv.Itoa(exponent), 64)
	return v // infinite when out of range
}

// Number writes v with as few characters as it takes: 0.05, 20, 5e6.
func Number(v float64) string {
	if a := math.Abs(v); a >= 1e-4 && a < 1e6 || v == 0 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	s := strconv.FormatFloat(v, 'e', -1, 64)
	return strings.NewReplacer("e+0", "e", "e-0", "e-", "e+", "e").Replace(s)
}

// Rounded is Number of v with three digits.
func Rounded(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // it was just written
	return Number(v)
}

// Marks returns the Ticks of a scale of colours, or its ends where there are fewer than two.
func Marks(low, high float64) []float64 {
	if marks := Ticks(low, high); len(marks) >= 2 {
		return marks
	}
	return slices.Compact([]float64{low, high})
}

// Ticks returns two to six round numbers within [low, high], in increasing
// order. There are none if the range is empty, or so small or large that
// floating-point numbers cannot divide it.
func Ticks(low, high float64) []float64 {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	mantissa, exponent := roundLength(span / 2)
	step := decimal(mantissa, exponent)
	first := math.Ceil(low / step)
	if step == 0 || math.Abs(first) > 1e12 {
		return nil
	}
	var out []float64
	for k := int(first); ; k++ {
		v := decimal(k*mantissa, exponent)
		if v > high {
			return out
		}
		if v >= low { // the quotient above was rounded
			out = append(out, v)
		}
	}
}
