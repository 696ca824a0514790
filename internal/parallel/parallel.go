// Package parallel spreads loops over the processor's cores in pieces whose
// bounds depend only on the size of the work, never on the number of cores.
// A computation that keeps one partial result per piece and adds them up in
// the order of the pieces therefore gives the same bits whatever GOMAXPROCS is.
package parallel

import "context"

// Pieces returns how many pieces of at most grain items n items make.
func Pieces(n, grain int) int {
	if n <= 0 {
		return 0
	}
	return (n + grain - 1) / grain
}

// For calls body(piece, lo, hi) once for each piece [lo, hi) of at most grain
// items out of n, on up to GOMAXPROCS goroutines, and returns when all calls
// have. Pieces are numbered from 0 in the order of their items. With a single
// piece, or a single processor, body runs on the calling goroutine. A panic in
// body is raised again on the calling goroutine.
func For(n, grain int, body func(piece, lo, hi int)) {
	l := Loop{Body: body}
	l.Run(n, grain)
}

// ForContext is For, but skips pieces that have not begun when ctx ends. It returns
// ctx's error, which may come although all pieces were handled.
func ForContext(ctx context.Context, n, grain int, body func(piece, lo, hi int)) error {
	For(n, grain, func(piece, lo, hi int) {
		if ctx.Err() == nil {
			body(piece, lo, hi)
		}
	})
	return ctx.Err()
}
