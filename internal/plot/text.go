package plot

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"cne/internal/selection"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
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
	lifted := selection.If(svg, exponents, raised)
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
	if piece, rest, as, _ := next(txt, sty.Font, svg); rest == "" && piece == txt && as == sty.Font &&
		!strings.ContainsAny(txt, raised+macron) {
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

const (
	sans font.Typeface = "Liberation"
	// box stands for a character that no font has.
	box = "□"
)

// joined are scripts whose letters change with their neighbours, or go from right to left.
// Pictures are drawn letter by letter and cannot show them.
var joined = []*unicode.RangeTable{
	unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Devanagari,
	unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu,
	unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Tibetan, unicode.Myanmar, unicode.Khmer,
	unicode.Mongolian,
}

// A fontIndex finds the fonts of the system that have characters which Liberation Sans
// lacks.
type fontIndex struct {
	sync.Mutex
	folders []string
	of      map[rune]font.Typeface // "" for none
	added   map[font.Typeface]bool // to fonts
}

var systemFonts = fontIndex{folders: fontFolders(), of: make(map[rune]font.Typeface), added: make(map[font.Typeface]bool)}

// fontFolders returns the folders where systems keep fonts.
func fontFolders() []string {
	home, _ := os.UserHomeDir() // there may be none
	folders := []string{"/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts",
		filepath.Join(os.Getenv("WINDIR"), "Fonts"),
		filepath.Join(home, ".fonts"), filepath.Join(home, ".local/share/fonts"), filepath.Join(home, "Library/Fonts")}
	return slices.DeleteFunc(folders, func(folder string) bool { return !filepath.IsAbs(folder) })
}

// isOwn reports whether the program's font draws a character.
func isOwn(r rune) bool {
	return string(r) == macron || strings.ContainsRune(raised, r) || draws(fonts.Fonts.Lookup(nameStyle.Font, nameSize).Face, r)
}

// typefaceOf returns the typeface of a font that draws a character; ok is false if none does,
// not even sans.
func typefaceOf(r rune) (name font.Typeface, ok bool) {
	if isOwn(r) {
		return sans, true
	}
	name = findFonts(r)[0]
	return cmp.Or(name, sans), name != ""
}

// draws reports whether a font has the outline of a character.
func draws(f *sfnt.Font, r rune) bool {
	var b sfnt.Buffer
	i, err := f.GlyphIndex(&b, r)
	if err != nil || i == 0 {
		return false
	}
	outline, err := f.LoadGlyph(&b, i, fixed.I(16), nil)
	return err == nil && (len(outline) > 0 || unicode.IsSpace(r))
}

// findFonts returns the typefaces of fonts of the system for characters, "" where none has
// one. It looks for all new ones at once, in upright fonts without serifs first, and adds
// the fonts to fonts.
func findFonts(runes ...rune) (names []font.Typeface) {
	s := &systemFonts
	s.Lock()
	defer s.Unlock()
	var left []rune
	for _, r := range runes {
		if _, known := s.of[r]; !known {
			s.of[r] = ""
			if !unicode.In(r, joined...) {
				left = append(left, r)
			}
		}
	}
	if len(left) > 0 {
		for _, path := range s.files() {
			left = s.findIn(path, left)
		}
	}
	return selection.Map(runes, func(r rune) font.Typeface { return s.of[r] })
}

// files returns the files of fonts, the preferred ones first.
func (s *fontIndex) files() (files []string) {
	for _, folder := range s.folders {
		_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error { // what cannot be read has no fonts
			if err == nil && slices.Contains([]string{".ttf", ".otf", ".ttc", ".otc"}, strings.ToLower(filepath.Ext(path))) {
				files = append(files, path)
			}
			return nil
		})
	}
	rank := func(path string) (n int) {
		for _, word := range []string{"bold", "italic", "oblique", "mono", "condensed", "serif", "light", "black"} {
			n += strings.Count(strings.ToLower(filepath.Base(path)), word)
		}
		return n
	}
	slices.SortStableFunc(files, func(a, b string) int { return rank(a) - rank(b) })
	return files
}

// findIn looks for characters in the fonts of a file, adds those that have some to fonts,
// and returns the characters that none has. The file of an added font stays open.
func (s *fontIndex) findIn(path string, runes []rune) []rune {
	if len(runes) == 0 {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return runes
	}
	added := false
	faces, err := sfnt.ParseCollectionReaderAt(f) // reads only what is asked for
	for i := 0; err == nil && i < faces.NumFonts(); i++ {
		face, err := faces.Font(i)
		if err != nil {
			continue
		}
		name, left := font.Typeface(fmt.Sprint(path, i)), len(runes)
		runes = slices.DeleteFunc(runes, func(r rune) bool {
			drawn := draws(face, r)
			if drawn {
				s.of[r] = name
			}
			return drawn
		})
		if len(runes) < left && !s.added[name] {
			s.added[name], added = true, true
			fonts.Fonts.Add(font.Collection{{Font: font.Font{Typeface: name, Variant: "Sans"}, Face: face}})
		}
	}
	if !added {
		f.Close()
	}
	return runes
}

// Undrawn returns the distinct characters of texts that no font here draws. Pictures have
// boxes instead; SVG files have the characters. Pictures are drawn faster after it.
func Undrawn(texts []string) (undrawn []rune) {
	var others []rune
	for _, text := range texts {
		for _, r := range Printable(text) {
			if !isOwn(r) && !unicode.Is(unicode.Cf, r) && !slices.Contains(others, r) {
				others = append(others, r)
			}
		}
	}
	for i, name := range findFonts(others...) {
		if name == "" {
			undrawn = append(undrawn, others[i])
		}
	}
	return undrawn
}
