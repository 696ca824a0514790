//go:build amd64 && !noasm

package simd

// A tileFunc is a transform of tiles in assembly, with distances in bytes.
type tileFunc func(dst *float32, dstAt, dstRow, dstPixel int, src *float32, srcAt, srcRow, srcPixel, channels int, inside *uint32)

func (f tileFunc) run(dst []float32, to Grid, src []float32, from Grid, channels int, inside *uint32) {
	f(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &src[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, inside)
}

func winogradImageVector(dst []float32, to Grid, src []float32, from Grid, channels int, inside *Inside) {
	tileFunc(winogradImageTile).run(dst, to, src, from, channels, &inside[0])
}

func winogradGradientVector(dst []float32, to Grid, src []float32, from Grid, channels int, inside *Inside) {
	tileFunc(winogradGradientTile).run(dst, to, src, from, channels, &inside[0])
}

func winogradResultVector(dst []float32, to Grid, src []float32, from Grid, channels int, inside *Inside) {
	tileFunc(winogradResultTile).run(dst, to, src, from, channels, &inside[0])
}

func winogradWeightsVector(dst []float32, to Grid, src []float32, from Grid, channels int) {
	tileFunc(winogradWeightsTile).run(dst, to, src, from, channels, nil)
}

func winogradWeightsGradientVector(dst []float32, to Grid, src []float32, from Grid, channels int) {
	tileFunc(winogradWeightsGradientTile).run(dst, to, src, from, channels, nil)
}
