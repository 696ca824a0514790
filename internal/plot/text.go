package plot

import (
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// macron is the combining mark of Z̄, which the canvases would set beside its
// letter.
const macron = "\u0304"

// writeText draws text as the canvas does, with lines for macrons.
func writeText(c draw.Canvas, sty text.Style, at vg.Point, txt string) {
	if !strings.Contains(txt, macron) {
		c.FillText(sty, at, txt)
		return
	}
	if sty.Rotation != 0 {
		c.Push()
		defer c.Pop()
		c.Translate(at)
		c.Rotate(sty.Rotation)
		at, sty.Rotation = vg.Point{}, 0
	}
	pieces := strings.Split(txt, macron)
	plain := strings.Join(pieces, "")
	c.FillText(sty, at, plain)

	size := sty.Font.Size
	left := at.X + vg.Length(sty.XAlign)*sty.Width(plain)
	line := draw.LineStyle{Color: sty.Color, Width: size / 14}
	y := at.Y + 0.48*size // of a line whose middle is at at.Y
	end := 0
	for _, piece := range pieces[:len(pieces)-1] {
		if piece == "" {
			continue
		}
		end += len(piece)
		before := plain[:end-len(lastLetter(piece))]
		x0, x1 := left+sty.Width(before), left+sty.Width(plain[:end])
		c.StrokeLine2(line, x0+size/14, y, x1-size/14, y)
	}
}

// lastLetter returns the last character of a text, which is not empty.
func lastLetter(txt string) string {
	letters := []rune(txt)
	return string(letters[len(letters)-1:])
}
