package plot

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	// macron is the combining mark of Z̄. The canvases would draw it next to its letter.
	macron = "\u0304"

	// exponents are the characters of numbers in exponents, and raised these and others. The
	// font lacks some of them. ordinary are the characters that are drawn instead, smaller and higher.
	exponents = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"
	raised    = exponents + "⁺⁼⁽⁾"
	ordinary  = "0123456789−+=()"
)

// lower makes ordinary characters of raised ones; raise does the opposite.
var lower, raise = replacer(raised, ordinary), replacer("0123456789-", raised)

func replacer(from, to string) *strings.Replacer {
	var pairs []string
	for i, letter := range []rune(from) {
		pairs = append(pairs, string(letter), string([]rune(to)[i]))
	}
	return strings.NewReplacer(pairs...)
}

// A writer writes plain text, with macrons and exponents.
type writer struct{ text.Plain }

// next cuts the next piece off a line: an exponent, or text of one font before the next
// exponent. Characters that no font has become boxes, unless SVG's reader chooses the font.
// lift is its height above the line.
func next(txt string, fnt font.Font, svg bool) (piece, rest string, as font.Font, lift vg.Length) {
	lifted := raised
	if svg {
		lifted = exponents
	}
	if end := len(txt) - len(strings.TrimLeft(txt, lifted)); end > 0 {
		lift = 0.35 * fnt.Size
		fnt.Size *= 0.75
		return lower.Replace(txt[:end]), txt[end:], fnt, lift
	}
	var b strings.Builder
	for i, r := range txt {
		name, ok := sans, true
		if !svg {
			name, ok = typefaceOf(r)
		}
		if i == 0 {
			fnt.Typeface = name
		} else if name != fnt.Typeface || strings.ContainsRune(lifted, r) {
			return b.String(), txt[i:], fnt, 0
		}
		switch {
		case ok:
			b.WriteRune(r)
		case !unicode.Is(unicode.Cf, r):
			b.WriteString(box)
		}
	}
	return b.String(), "", fnt, 0
}

// Box returns the size of a line.
func (w writer) Box(txt string, fnt font.Font) (width, height, depth vg.Length) {
	_, height, depth = w.Plain.Box("", fnt)
	for txt != "" {
		piece, rest, as, _ := next(txt, fnt, false)
		wide, _, _ := w.Plain.Box(strings.ReplaceAll(piece, macron, ""), as)
		width, txt = width+wide, rest
	}
	return width, height, depth
}

// Draw writes a line.
func (w writer) Draw(c vg.Canvas, txt string, sty text.Style, at vg.Point) {
	canvas := c
	if d, ok := c.(*draw.Canvas); ok {
		canvas = d.Canvas
	}
	_, svg := canvas.(*vgsvg.Canvas)
	if piece, rest, as, _ := next(txt, sty.Font, svg); rest == "" && piece == txt && as == sty.Font && !strings.ContainsAny(txt, raised+macron) {
		w.Plain.Draw(c, txt, sty, at)
		return
	}
	c.Push()
	defer c.Pop()
	c.Translate(at)
	c.Rotate(sty.Rotation)
	c.SetColor(sty.Color)
	pen := vg.Point{
		X: vg.Length(sty.XAlign) * sty.Width(txt),
		Y: vg.Length(sty.YAlign)*sty.Height(txt) - sty.FontExtents().Ascent + sty.Font.Size, // of the letters' feet
	}
	for txt != "" {
		piece, rest, as, lift := next(txt, sty.Font, svg)
		face := w.Fonts.Lookup(as, as.Size)
		var plain string
		for i, part := range strings.Split(piece, macron) {
			if i > 0 && plain != "" { // a macron above the last letter
				_, last := utf8.DecodeLastRuneInString(plain)
				width, y := as.Size/14, pen.Y+0.94*as.Size
				line := draw.Canvas{Canvas: c}
				line.StrokeLine2(draw.LineStyle{Color: sty.Color, Width: width}, pen.X+face.Width(plain[:len(plain)-last])+width, y,
					pen.X+face.Width(plain)-width, y)
			}
			plain += part
		}
		c.FillString(face, pen.Add(vg.Point{Y: lift}), plain)
		pen.X, txt = pen.X+face.Width(plain), rest
	}
}
