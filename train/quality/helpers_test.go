package quality

import (
	"context"
	"math"
	"testing"

	"cne/data"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need returns the value of a call that must not fail: need(f())(t).
func need[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

func mean(e Estimate, err error) (float64, error) { return e.Mean, err }

// knnRecall, trustworthinessOf and knnAccuracy are of all points.
func knnRecall(inData, inEmbedding []int32, k, points int) (float64, error) {
	return mean(fairRecall(inData, inEmbedding, k, points, len(inData)/max(1, k), nil, 0))
}

func trustworthinessOf(ranks []int32, k int) float64 {
	return trustworthiness(ranks, k, len(ranks)/k).Mean
}

func knnAccuracy(ctx context.Context, embedding *data.Matrix, classes []int32, k int, share float64, seed uint64, on *Device) (float64, error) {
	return mean(splitAccuracy(ctx, embedding, classes, k, int(math.Round(share*float64(len(classes)))), seed, 0, on))
}
