package blas

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Row numbers are checked before the kernels get them; kernels check nothing.
func TestRowNumbersOutOfRange(t *testing.T) {
	const n, k, m, out = 50, 20, 67, 33
	x, w := make([]float32, n*k), make([]float32, out*k)
	y, dw := make([]float32, m*out), make([]float32, out*k)
	sparse := NewSparse(x, n, k)
	for _, form := range sets() {
		for name, run := range map[string]func(rows []int32){
			"layer":           func(rows []int32) { Linear(m, out, k, x, k, rows, w, k, nil, true, y, out) },
			"gradient":        func(rows []int32) { LinearGrad(m, out, k, y, out, x, k, rows, dw, k) },
			"sparse layer":    func(rows []int32) { sparse.Linear(rows, out, w, k, nil, true, y, out) },
			"sparse gradient": func(rows []int32) { sparse.LinearGrad(rows, out, y, out, dw, k) },
		} {
			for _, bad := range []int32{-1, n, math.MaxInt32, math.MinInt32} {
				for _, at := range []int{0, 40, 66} {
					rows := make([]int32, m)
					for i := range rows {
						rows[i] = int32(i % n)
					}
					rows[at] = bad
					func() {
						defer use(form)()
						defer func() {
							if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "blas: ") {
								t.Errorf("%s, %s, %d at %d: %v", form, name, bad, at, r)
							}
						}()
						run(rows)
					}()
				}
			}
		}
	}
}
