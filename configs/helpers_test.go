package configs

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)  // small heaps are collected less often
	os.Setenv("GOGC", "400") // which a large run would lower for its process
	m.Run()
}

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

// loaded returns a configuration, which must be right: loaded(s.Load(x))(t).
func loaded[C any](c *C, _ Origins, err error) func(testing.TB) *C { return need(c, err) }
