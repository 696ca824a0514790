package plot

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
)

const (
	sans font.Typeface = "Liberation"
	// box stands for a character that no font has.
	box = "□"
)

// joined are scripts whose letters change with their neighbours, or go from right to left.
// Pictures are drawn letter by letter and cannot show them.
var joined = []*unicode.RangeTable{unicode.Arabic, unicode.Hebrew, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Tibetan,
	unicode.Myanmar, unicode.Khmer, unicode.Mongolian}

// systemFonts are the fonts of the system that have characters which Liberation Sans lacks.
var systemFonts = struct {
	sync.Mutex
	folders []string
	of      map[rune]font.Typeface // "" for none
}{folders: fontFolders(), of: make(map[rune]font.Typeface)}

// fontFolders returns the folders where systems keep fonts.
func fontFolders() []string {
	home, _ := os.UserHomeDir() // there may be none
	return []string{"/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts", filepath.Join(os.Getenv("WINDIR"), "Fonts"),
		filepath.Join(home, ".fonts"), filepath.Join(home, ".local/share/fonts"), filepath.Join(home, "Library/Fonts")}
}

// typefaceOf returns the typeface of a font that draws a character; ok is false if none does.
func typefaceOf(r rune) (name font.Typeface, ok bool) {
	if string(r) == macron || strings.ContainsRune(raised, r) || draws(fonts.Fonts.Lookup(nameStyle.Font, nameSize).Face, r) {
		return sans, true
	}
	s := &systemFonts
	s.Lock()
	defer s.Unlock()
	name, known := s.of[r]
	if !known && !unicode.In(r, joined...) {
		name = findFont(r)
	}
	s.of[r] = name
	return name, name != ""
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

// findFont looks for a character in the fonts of the system, upright ones without serifs
// first, and adds the font to fonts. It returns "" if none has it.
func findFont(r rune) font.Typeface {
	s, files := &systemFonts, []string(nil)
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
	for _, path := range files {
		if name := loadFont(path, r); name != "" {
			return name
		}
	}
	return ""
}

// loadFont adds the first font of a file that has a character to fonts, and returns its
// name, or "".
func loadFont(path string, r rune) font.Typeface {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	faces, err := sfnt.ParseCollectionReaderAt(f) // reads only what is asked for
	for i := 0; err == nil && i < faces.NumFonts(); i++ {
		name := font.Typeface(fmt.Sprint(path, i))
		if face, err := faces.Font(i); err == nil && draws(face, r) {
			fonts.Fonts.Add(font.Collection{{Font: font.Font{Typeface: name, Variant: "Sans"}, Face: face}})
			return name // its file stays open
		}
	}
	f.Close()
	return ""
}

// Undrawn returns the distinct characters of texts that no font here draws. Pictures have
// boxes instead; SVG files have the characters.
func Undrawn(texts []string) (undrawn []rune) {
	for _, text := range texts {
		for _, r := range Printable(text) {
			if _, ok := typefaceOf(r); !ok && !unicode.Is(unicode.Cf, r) && !slices.Contains(undrawn, r) {
				undrawn = append(undrawn, r)
			}
		}
	}
	return undrawn
}
