//go:build !(amd64 || arm64) || noasm

package simd

// The vector forms are never called where vectors is false.
const noForm = "simd: no vector form"

func pairs2Vector([]float32, []float32, []float32, []float32, int, []int32) { panic(noForm) }
func scatterGradient2Vector([]float32, []float32, []float32, []float32, []float32, []float32, []int32) {
	panic(noForm)
}
func negPositiveVector([]float32, float32, float32, float32) (float32, float32) { panic(noForm) }
func negNegativeVector([]float32, float32, float32) (float32, float32)          { panic(noForm) }
func umapPositiveVector([]float32, float32, float32) float32                    { panic(noForm) }
func umapNegativeVector([]float32, float32, float32) float32                    { panic(noForm) }
func similaritiesVector([]float32, []float32, float32)                          { panic(noForm) }
func logTotalsVector([]float32, float32) float32                                { panic(noForm) }
func infoncPositiveVector([]float32, []float32, float32, float32) float32       { panic(noForm) }
func infoncNegativeVector([]float32, []float32, float32)                        { panic(noForm) }
func addVector([]float32, []float32)                                            { panic(noForm) }
func maxUint32Vector([]int32) uint32                                            { panic(noForm) }
func maxMagnitudeVector([]float32) uint32                                       { panic(noForm) }
func fieldVector(_, _, _ []float32)                                             { panic(noForm) }
func attractVector(_, _, _ []float32, _ []uint64, _ []float32) float32          { panic(noForm) }
func inverseSum2Vector([]float32, []float32, float32, float32) float32          { panic(noForm) }
func inverseSum2NearVector([]float32, []float32, float32, float32) float32      { panic(noForm) }
func addSquaresVector([]float32, []float32, float32)                            { panic(noForm) }
func addDistancesVector([]float32, []float32, float32, float32, float32)        { panic(noForm) }
func inverseSumVector([]float32) float32                                        { panic(noForm) }
func inverseLogSumVector([]float32, float32, float32, float32, float32) float32 { panic(noForm) }
func countBelowVector([]int32, []float32, []float32)                            { panic(noForm) }
func scaleVector([]float32, float32)                                            { panic(noForm) }
func divideVector([]float32, float32)                                           { panic(noForm) }
func addPlaneVector([]float32, []float32, []float32)                            { panic(noForm) }
func gatherRows2Vector([]float32, []float32, []int32)                           { panic(noForm) }
func scatterRows2Vector([]float32, []float32, []int32)                          { panic(noForm) }
func descendRows2Vector([]float32, []float32, []int32, float32, float32)        { panic(noForm) }
func drawOthersVector([]int32, uint64, uint32)                                  { panic(noForm) }
func descendVector([]float32, []float32, float32, float32)                      { panic(noForm) }
func momentumStepVector([]float32, []float32, []float32, float32, float32, float32, float32) {
	panic(noForm)
}
func adamStepVector([]float32, []float32, []float32, []float32, float32, float32, float32, float32, float32, float32, float32, float32) {
	panic(noForm)
}
func maskPositiveVector([]float32, []float32, []float32)                           { panic(noForm) }
func columnSumsVector([]float32, []float32, int, int)                              { panic(noForm) }
func denseNegVector(*HeadBlock[float32], bool)                                     { panic(noForm) }
func denseUMAPVector(*HeadBlock[float32], float32, bool)                           { panic(noForm) }
func denseTotalsVector(*HeadBlock[float32], []float32, int, float32, bool)         { panic(noForm) }
func denseScatterVector([]float32, int, int, int, []float32, int, []float32)       { panic(noForm) }
func foldSlotsVector([]float32, []float32)                                         { panic(noForm) }
func planesVector([]float32, int, []float32, int, int)                             { panic(noForm) }
func extentsVector([]float32, []float32, []float32, []float32, int)                { panic(noForm) }
func lessProductVector([]float32, []float32, []float32, float32)                   { panic(noForm) }
func pullVector([]float32, []float32, []float32, []float32, float32)               { panic(noForm) }
func rowDistancesVector([]float32, []float32, float32, float32, float32, []uint64) { panic(noForm) }
func rowSimilaritiesVector([]float32, float32) float32                             { panic(noForm) }
func rowInfoNCVector([]float32, float32, float32)                                  { panic(noForm) }
func rowNegVector([]float32, float32, float32, float32) (float32, float32)         { panic(noForm) }
func rowUMAPVector([]float32, float32) float32                                     { panic(noForm) }
func rowMaxVector([]float32, float32) float32                                      { panic(noForm) }
func rowExpVector([]float32, float32) float32                                      { panic(noForm) }
func rowLogisticVector([]float32, float32) (float32, float32)                      { panic(noForm) }
func nearRowsVector([]float32, []uint64, []float32, []float32, []int32, float32, []float32) {
	panic(noForm)
}
func projectRowsVector([]float32, []float32, []float32, []float32, []int32) { panic(noForm) }
func nearTilesVector([]float32, []uint16, []float32, int, *[4]int32, []int32, *[4]float32, []float32, []int32) {
	panic(noForm)
}
func columnMomentsVector([]float32, int, int, []float32, []float64, []float64) { panic(noForm) }
func columnApplyVector([]float32, []float32, int, int, []float32, []float32, []float32, float32) {
	panic(noForm)
}
func columnProductsVector([]float32, []float32, int, int, []float32, []float32, []float32, float32, []float64, []float64) {
	panic(noForm)
}
func columnGradientVector([]float32, []float32, []float32, int, int, []float32, []float32, []float32, float32, []float32, []float32, []float32) {
	panic(noForm)
}
func addReLUVector([]float32, []float32, []float32)                                  { panic(noForm) }
func winogradImageVector([]float32, Grid, []float32, Grid, int, *Inside)             { panic(noForm) }
func winogradGradientVector([]float32, Grid, []float32, Grid, int, *Inside)          { panic(noForm) }
func winogradResultVector([]float32, Grid, []float32, Grid, int, *Inside)            { panic(noForm) }
func winogradWeightsVector([]float32, Grid, []float32, Grid, int)                    { panic(noForm) }
func winogradWeightsGradientVector([]float32, Grid, []float32, Grid, int)            { panic(noForm) }
func pairUpVector([]uint32, []float32)                                               { panic(noForm) }
func pairRowsVector([]uint32, []float32, []float32)                                  { panic(noForm) }
func winogradImagePairsVector([]uint32, Grid, []float32, Grid, int, *Inside)         { panic(noForm) }
func winogradImageHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half)    { panic(noForm) }
func winogradGradientHalfVector([]uint32, Grid, []float32, Grid, int, *Inside, Half) { panic(noForm) }
func winogradWeightsHalfVector([]uint32, Grid, []float32, Grid, int, Half)           { panic(noForm) }

// Go cannot prefetch memory.
func fetchRows(x *byte, stride, lines int, rows []int32) {}

func holdsWord([]uint64, uint64, uint64) bool { panic(noForm) }
func scatterWords(order, words []uint64, choice []uint8, next []int) {
	for i, c := range choice {
		order[next[c]] = words[i]
		next[c]++
	}
}

const assembly = false
