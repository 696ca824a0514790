package plot

import (
	"image/color"
	"math"
)

// darkFloor is the lightness, in OKLab, that black would get on a dark ground.
const darkFloor = 0.4

// OnDark returns a colour for a dark ground that has the hue of c, which is
// meant for a light one: dark colours are raised in lightness (of OKLab;
// Ottosson, 2020), those that are light already hardly differ.
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
