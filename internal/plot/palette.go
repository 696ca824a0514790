package plot

import (
	"cmp"
	"image"
	"image/color"
	"slices"
)

// sampledFrames is the number of frames whose colours a palette takes.
const sampledFrames = 5

// A palette for points drawn by density has to hold mixtures of their colours:
// the nearest pure colour may belong to another class.

// A colourBin counts the pixels whose colours have the same 5 upper bits.
type colourBin struct {
	colour [3]int // 0 to 31
	count  int
}

// addMixtures fills the palette with colours of the images by median cut (Heckbert,
// 1982): the colours are parted until there are as many parts as there is
// room, and each part gives its mean. The images are opaque.
func (q *quantiser) addMixtures(images []*image.RGBA) {
	const side = 32
	counts := make([]int, side*side*side)
	for _, img := range images {
		for i := 0; i < len(img.Pix); i += 4 {
			p := img.Pix[i:][:3:3]
			counts[int(p[0]>>3)*side*side+int(p[1]>>3)*side+int(p[2]>>3)]++
		}
	}
	var bins []colourBin
	for k, n := range counts {
		if n > 0 {
			bins = append(bins, colourBin{[3]int{k / side / side, k / side % side, k % side}, n})
		}
	}
	parts := [][]colourBin{bins}
	for room := 256 - len(q.palette); len(parts) < room; {
		best, along, widest := -1, 0, 0
		for k, part := range parts {
			if channel, width := widestChannel(part); width > widest {
				best, along, widest = k, channel, width
			}
		}
		if best < 0 { // as many parts as colours
			break
		}
		low, high := halves(parts[best], along)
		parts[best] = low
		parts = append(parts, high)
	}
	for _, part := range parts {
		if len(q.palette) < 256 {
			q.palette = append(q.palette, meanColour(part))
		}
	}
	clear(q.known)
}

// widestChannel returns the channel where colours differ most, and by how much.
func widestChannel(bins []colourBin) (channel, width int) {
	for k := range 3 {
		by := func(a, b colourBin) int { return cmp.Compare(a.colour[k], b.colour[k]) }
		if d := slices.MaxFunc(bins, by).colour[k] - slices.MinFunc(bins, by).colour[k]; d > width {
			channel, width = k, d
		}
	}
	return channel, width
}

// halves parts colours at the median of their pixels along a channel. Neither
// half is empty.
func halves(bins []colourBin, channel int) (low, high []colourBin) {
	slices.SortStableFunc(bins, func(a, b colourBin) int { return cmp.Compare(a.colour[channel], b.colour[channel]) })
	total := 0
	for _, b := range bins {
		total += b.count
	}
	at, sum := 0, 0
	for at < len(bins)-1 && (at == 0 || 2*(sum+bins[at].count) <= total) {
		sum += bins[at].count
		at++
	}
	return bins[:at:at], bins[at:]
}

// meanColour returns the mean of the colours of the pixels.
func meanColour(bins []colourBin) color.NRGBA {
	var sum [3]int
	total := 0
	for _, b := range bins {
		total += b.count
		for k, v := range b.colour {
			sum[k] += b.count * v
		}
	}
	channel := func(k int) uint8 { return uint8((8*sum[k] + 4*total) / total) } // middles of the bins
	return color.NRGBA{channel(0), channel(1), channel(2), 0xff}
}

// newPalette returns a quantiser for an animation of these pictures, drawn with that
// many pixels per inch; first is the layout of the first of them.
func newPalette(scatters []Scatter, first *layout, dpi int) (*quantiser, error) {
	q := newQuantiser(first.layers)
	if !slices.ContainsFunc(first.layers, func(l layer) bool { return l.dense }) {
		return q, nil
	}
	var images []*image.RGBA
	n := min(sampledFrames, len(scatters))
	for k := range n {
		l, err := scatters[(len(scatters)-1)*(k+1)/n].layout()
		if err != nil {
			return nil, err
		}
		c, err := l.draw(dpi)
		if err != nil {
			return nil, err
		}
		images = append(images, opaque(c.Image()))
	}
	q.addMixtures(images)
	return q, nil
}
