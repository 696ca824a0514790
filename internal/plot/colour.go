package plot

import (
	"image/color"
	"math"
	"slices"
)

// classColours holds the colours of the classes as 0xRRGGBB. The first ten were
// found by a random search for colours that lie as far apart as possible in
// the OKLab space (Ottosson, 2020), both to normal eyes and to those without
// long-, middle- or short-wave cones as Machado et al. (2009) simulate them,
// of limited chroma and dark enough for a white ground. The nearest two have a
// distance of 0.11 or more for every kind of eye, nearly twice that of the
// common palettes of ten. Each of the others is the one farthest from all
// before it; they are told apart by normal eyes, and by others with effort.
var classColours = [...]uint32{
	0x1c5f83, 0xfbb422, 0x890a32, 0x1ba2ad, 0xdf745f,
	0x470d98, 0x05e3a3, 0xa96cfb, 0x7f640b, 0xbbb5f1,
	0xaf2db4, 0xe21b4c, 0x1459e2, 0x561656, 0xa6697c, 0x8fb395,
	0xbea20a, 0xb21666, 0x174517, 0x7b84d0, 0x51abfc, 0xfe9667,
	0xc17d09, 0x2126bf, 0x613898, 0x95e76b, 0x627e9d, 0xb692cf,
	0x864135, 0xec7af6, 0x18407b, 0xd7a9bd, 0x1d8343, 0x75036e,
	0x2f7ad5, 0x5b57a1, 0x693352, 0xeb358d, 0xd27aa0, 0x03ca6a,
}

// neutral stands for the colours of all classes.
var neutral = color.NRGBA{0x80, 0x80, 0x80, 0xff}

// tint returns a colour half as far from white, in which points make a ground
// for others of the full colour. That of points without a label is light
// enough as it is.
func tint(c color.NRGBA) color.NRGBA {
	if c == unlabeled {
		return c
	}
	half := func(v uint8) uint8 { return uint8((int(v) + 0xff) / 2) }
	return color.NRGBA{half(c.R), half(c.G), half(c.B), c.A}
}

// shade returns a dark colour of the same hue for the rim of a point. Black
// would make mud of the colours where many points with rims lie together.
func shade(c color.NRGBA) color.NRGBA {
	dark := func(v uint8) uint8 { return uint8(int(v) * 2 / 5) }
	return color.NRGBA{dark(c.R), dark(c.G), dark(c.B), c.A}
}

// single is the colour of points without labels.
var single = ClassColour(0)

// SingleColour returns the colour of points of which neither class nor value is
// known of any.
func SingleColour() color.NRGBA { return single }

// UnlabeledColour returns the colour of points without class or value among
// others that have one.
func UnlabeledColour() color.NRGBA { return unlabeled }

// Present returns the classes that occur, but for negative ones, which mean none, in order.
func Present(classes []int32) []int32 {
	present := slices.Compact(slices.Sorted(slices.Values(classes)))
	return slices.DeleteFunc(present, func(c int32) bool { return c < 0 })
}

// ClassColour returns the colour of class c ≥ 0 on a light ground. It does not
// depend on what other classes there are, and repeats after the 40 for which
// there is a legend.
func ClassColour(c int) color.NRGBA {
	v := classColours[c%len(classColours)]
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

// viridis holds ten equidistant colours of the colour map of that name by
// van der Walt and Smith, in which equal steps of the value look equally
// large, to colour-blind eyes and in greyscale, too.
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
	part := at - float64(i)
	return mix(viridis[i], viridis[i+1], part)
}

// mix returns the opaque colour that lies that share of the way from a to b.
func mix(a, b color.NRGBA, share float64) color.NRGBA {
	channel := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	return color.NRGBA{channel(a.R, b.R), channel(a.G, b.G), channel(a.B, b.B), 0xff}
}
