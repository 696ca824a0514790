package explorer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cne/internal/selection"
)

// Automatic labels name the regions of a view by the words that distinguish the texts of
// their points. The regions are basins of the density of the points, found by ToMATo
// (Chazal et al. 2013) on a grid; the words are ranked by class-based TF-IDF
// (Grootendorst 2022). Densities are integers, and there is no randomness, so the
// same page gets the same labels.

// An aboutLabel is an automatic label.
type aboutLabel struct {
	X     float64 `json:"x"` // in positions
	Y     float64 `json:"y"`
	Text  string  `json:"text"`
	Level int     `json:"level"` // how many coarser regions around it have a label
}

// detail has the levels of regions: the bandwidth of the density in cells, and the least
// share of the points that a region has.
var detail = []struct {
	radius int
	least  float64
}{{5, 0.01}, {3, 0.004}, {2, 0.0015}}

const (
	gridSide   = 256  // cells along both axes
	leastSize  = 10   // points of a region
	commonFrom = 0.15 // share of a region's texts that have its first word
	mostWords  = 3    // of a label
	mostBytes  = 30   // of a label with more than a word
	againFrom  = 0.4  // between labels of the same words, in positions
)

// labels returns the labels of a view with the points xy, alternating x and y. Coarse
// labels come first, and among equals mostly labels of many points.
func (t *texts) labels(view aboutView, xy []float64) []aboutLabel {
	cells := slices.Repeat([]int32{-1}, len(xy)/2) // of each point; -1 outside the frame
	counts := make([]int64, gridSide*gridSide)
	column := func(v float64, k int) int32 {
		v = (v - view.Centre[k]) / view.Unit
		if !(v >= -1 && v <= 1) {
			return -1
		}
		return min(int32((v+1)/2*gridSide), gridSide-1)
	}
	for i := range cells {
		if x, y := column(xy[2*i], 0), column(xy[2*i+1], 1); x >= 0 && y >= 0 {
			cells[i] = y*gridSide + x
			counts[cells[i]]++
		}
	}
	var out []aboutLabel
	at := func(c int) float64 { return math.Round((2*float64(c)+1-gridSide)/gridSide*1e4) / 1e4 }
	around := make([][]string, len(counts)) // the sets of words that name the regions around a cell
	said := make(map[string][]aboutLabel)   // by set of words
	for _, d := range detail {
		of, peaks := regions(counts, d.radius, max(leastSize, int64(d.least*float64(len(cells)))))
		sets := t.name(cells, of, len(peaks))
		for r, text := range sets {
			sets[r] = strings.Join(slices.Sorted(strings.SplitSeq(text, ", ")), ", ")
			above := around[peaks[r]]
			l := aboutLabel{at(peaks[r] % gridSide), at(peaks[r] / gridSide), text, len(above)}
			near := func(o aboutLabel) bool { return math.Hypot(o.X-l.X, o.Y-l.Y) < againFrom }
			if text != "" && !slices.Contains(above, sets[r]) && !slices.ContainsFunc(said[sets[r]], near) {
				said[sets[r]], out = append(said[sets[r]], l), append(out, l)
			}
		}
		for c, r := range of {
			if r >= 0 && sets[r] != "" {
				around[c] = append(around[c], sets[r])
			}
		}
	}
	slices.SortStableFunc(out, func(a, b aboutLabel) int { return cmp.Compare(a.Level, b.Level) })
	return out
}

// regions divides the cells of a grid into basins of the density, the largest first.
// counts has the number of points in each cell. Each basin has at least the given number
// of points. It returns the region of each cell, -1 for none, and the cell of each
// region's peak.
func regions(counts []int64, radius int, fewest int64) (of []int32, peaks []int) {
	density := blur(counts, radius)
	order := selection.Where(len(density), func(c int) bool { return density[c] > 0 })
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(density[b], density[a]) })
	of = slices.Repeat([]int32{-1}, len(counts)) // the peak above a cell, or a cell on the way to it
	find := func(c int32) int32 {
		for of[c] != c {
			of[c] = of[of[c]]
			c = of[c]
		}
		return c
	}
	points := make([]int64, len(counts)) // of a basin, at its peak
	// The square root of a density has a deviation of noise/2 whatever the density is, as the
	// root of a Poisson variable has nearly 1/2 (Anscombe 1948).
	noise := math.Pow(float64(2*radius+1), 3) / (2 * math.SqrtPi * float64(radius))
	for _, c := range order {
		highest := -1
		var beside []int32
		for k := range 9 {
			x, y := c%gridSide+k%3-1, c/gridSide+k/3-1
			b := y*gridSide + x
			if min(x, y) < 0 || max(x, y) >= gridSide || of[b] < 0 {
				continue
			}
			beside = append(beside, find(int32(b)))
			if highest < 0 || density[b] > density[highest] {
				highest = b
			}
		}
		of[c] = int32(c)
		if highest >= 0 {
			of[c] = find(int32(highest))
		}
		points[of[c]] += counts[c]
		// Where two basins meet, the one with the lower peak ends if the peak does not stand
		// out, by a tenth and by 2.5 deviations of the roots.
		for _, b := range beside {
			low, high := find(b), find(int32(c))
			if density[low] > density[high] || density[low] == density[high] && low < high {
				low, high = high, low
			}
			peak, pass := float64(density[low]), float64(density[c])
			if low != high && (pass > 0.9*peak || math.Sqrt(peak)-math.Sqrt(pass) < 1.25*noise || points[low] < fewest) {
				of[low] = high
				points[high] += points[low]
			}
		}
	}
	for _, c := range order {
		if int(find(int32(c))) == c && points[c] >= fewest {
			peaks = append(peaks, c)
		}
	}
	slices.SortStableFunc(peaks, func(a, b int) int { return cmp.Compare(points[b], points[a]) })
	number := make([]int32, len(of)) // of the region with a peak, from 1
	for r, c := range peaks {
		number[c] = int32(r + 1)
	}
	out := slices.Repeat([]int32{-1}, len(of))
	for _, c := range order {
		out[c] = number[find(int32(c))] - 1
	}
	return out, peaks
}

// blur returns the counts of a grid averaged three times over 2·radius+1 cells along both
// axes, up to a factor: nearly a Gaussian with a deviation of radius cells.
func blur(counts []int64, radius int) []int64 {
	out := slices.Clone(counts)
	line := make([]int64, gridSide+1) // sums of the cells before
	for range 3 {
		for _, step := range [][2]int{{1, gridSide}, {gridSide, 1}} {
			for l := range gridSide {
				start := l * step[1]
				for k := range gridSide {
					line[k+1] = line[k] + out[start+k*step[0]]
				}
				for k := range gridSide {
					out[start+k*step[0]] = line[min(gridSide, k+radius+1)] - line[max(0, k-radius)]
				}
			}
		}
	}
	return out
}

// texts are the words of texts, without stop words.
type texts struct {
	words  []string // in lower case
	shown  []string // as the first text writes them
	count  []int32  // how many texts have a word
	of     []int32  // the words of all texts, each once per text
	starts []int    // where the words of a text begin, and the end of the last
}

// newTexts reads the words of texts.
func newTexts(all []string) *texts {
	t := &texts{starts: make([]int, 1, len(all)+1)}
	known := make(map[string]int32)
	for _, w := range strings.Fields(stopWords) {
		known[w] = -1
	}
	var last []int32 // the text that had a word last
	for i, text := range all {
		for _, form := range words(text) {
			lower := strings.ToLower(form)
			w, ok := known[lower]
			if !ok {
				w = int32(len(t.words))
				known[lower] = w
				t.words, t.shown, t.count, last = append(t.words, lower), append(t.shown, form), append(t.count, 0), append(last, -1)
			}
			if w >= 0 && last[w] != int32(i) {
				last[w] = int32(i)
				t.count[w]++
				t.of = append(t.of, w)
			}
		}
		t.starts = append(t.starts, len(t.of))
	}
	return t
}

// name returns the words that distinguish each of the regions, or "" if none do. cells
// are the cells of the points, and of has the region of each cell.
func (t *texts) name(cells, of []int32, regions int) []string {
	rows := make([][]int32, regions)
	for i, c := range cells {
		if c >= 0 && of[c] >= 0 {
			rows[of[c]] = append(rows[of[c]], int32(i))
		}
	}
	type candidate struct {
		word, count int32
		score       float64
	}
	candidates := make([][]candidate, regions)
	shares := make([]float64, len(t.words)) // of the regions' texts that have a word, summed
	count := make([]int32, len(t.words))
	average := 0.0 // words of a text
	for r, rows := range rows {
		var found []int32
		for _, i := range rows {
			for _, w := range t.of[t.starts[i]:t.starts[i+1]] {
				if count[w] == 0 {
					found = append(found, w)
				}
				count[w]++
			}
		}
		slices.Sort(found)
		most := 4*len(rows) > 3*len(cells) // most points are here: their words distinguish nothing
		for _, w := range found {
			share := float64(count[w]) / float64(len(rows))
			shares[w] += share
			average += share / float64(regions)
			outside := float64(t.count[w]-count[w]+1) / float64(len(cells)-len(rows)+1)
			if !most && count[w] >= 3 && share >= commonFrom/2 && share >= 2*outside && 2*int(t.count[w]) <= len(cells) {
				candidates[r] = append(candidates[r], candidate{word: w, count: count[w]})
			}
			count[w] = 0
		}
	}
	out := make([]string, regions)
	for r, list := range candidates {
		n := float64(len(rows[r]))
		for k, c := range list {
			// The share is reduced by its standard error, so a rare word does not win by chance.
			share := (float64(c.count) - math.Sqrt(float64(c.count))) / n
			list[k].score = share * math.Log(1+average/shares[c.word])
		}
		slices.SortFunc(list, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(t.words[a.word], t.words[b.word]))
		})
		var chosen []string
		for _, c := range list {
			word := t.words[c.word]
			switch {
			case len(chosen) == mostWords || c.score < list[0].score/2 || len(chosen) == 0 && float64(c.count) < commonFrom*n:
			case len(chosen) == 0:
				chosen, out[r] = []string{word}, t.shown[c.word]
			case len(out[r])+len(word) <= mostBytes && !slices.ContainsFunc(chosen, func(other string) bool { return alike(word, other) }):
				chosen, out[r] = append(chosen, word), out[r]+", "+t.shown[c.word]
			}
		}
	}
	return out
}

// alike reports whether two words are forms of one, as their common beginning suggests.
func alike(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return 4*n >= 3*min(len(a), len(b))
}

// words returns the words of a text: runs of letters and digits, two to forty with at
// least one letter.
func words(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	return slices.DeleteFunc(all, func(w string) bool {
		n := utf8.RuneCountInString(w)
		return n < 2 || n > 40 || !strings.ContainsFunc(w, unicode.IsLetter)
	})
}

// stopWords say little about an English text. In other languages such words are left out
// because they are everywhere.
const stopWords = `about above after again all also am an and any are as at be because been before being
	below between both but by can could did do does doing don down during each few for from further get had
	has have having he her here hers him his how if in into is it its itself just like ll made make many may
	me more most much must my new no nor not now of off on once one only or other our out over own re same
	she should so some such than that the their them then there these they this those through to too two
	under until up us use used using uses ve very was we were what when where which while who whom why will
	with within without would you your`
