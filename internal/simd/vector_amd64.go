//go:build amd64 && !noasm

package simd

// The assembly contains the number of AVX512: another number does not compile.
var _ = [1]struct{}{}[AVX512-2]

// A pairsFunc is a transform of tiles to bfloat16 in assembly, with distances in bytes.
type pairsFunc func(dst *uint32, dstAt, dstRow, dstPixel int, src *float32, srcAt, srcRow, srcPixel, channels int, inside *uint32)

func (f pairsFunc) run(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *uint32) {
	f(&dst[0], 4*to.At, 4*to.Row, 4*to.Pixel, &src[0], 4*from.At, 4*from.Row, 4*from.Pixel, channels, inside)
}

func winogradImagePairsVector(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside) {
	pairsFunc(winogradImagePairsTile).run(dst, to, src, from, channels, &inside[0])
}

func winogradImageHalfVector(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside, h Half) {
	[...]pairsFunc{winogradImageFirstTile, winogradImageSecondTile}[h].run(dst, to, src, from, channels, &inside[0])
}

func winogradGradientHalfVector(dst []uint32, to Grid, src []float32, from Grid, channels int, inside *Inside, h Half) {
	[...]pairsFunc{winogradGradientFirstTile, winogradGradientSecondTile}[h].run(dst, to, src, from, channels, &inside[0])
}

func winogradWeightsHalfVector(dst []uint32, to Grid, src []float32, from Grid, channels int, h Half) {
	[...]pairsFunc{winogradWeightsFirstTile, winogradWeightsSecondTile}[h].run(dst, to, src, from, channels, nil)
}
