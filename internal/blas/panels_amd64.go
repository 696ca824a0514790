//go:build amd64 && !noasm

package blas

import "math"

func panelWidth() int { return kernelsInUse().panel }

func multiplyPanels(p Panels, m int, a []float32, rowStride, stepStride int, b []float32, beta float32, c []float32, ldc int) {
	kernels := kernelsInUse()
	floor := float32(math.Inf(-1))
	for j := 0; j < p.n; j += p.width {
		width := min(p.width, p.n-j)
		class, columns := classOf(width), mask(width)
		for i := 0; i < m; i += kernels.height {
			rows := min(kernels.height, m-i)
			kernels.tiles[rows-1][class](p.k, &a[i*rowStride], 4*rowStride, 4*stepStride, &b[j*p.k], &c[i*ldc+j], 4*ldc, 1, beta, nil, floor, columns)
		}
	}
}
