package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The terms are those of Sec. 5 and 6 of the paper, for q = 1/(1+d²) and c = 1.
func TestTerms(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "terms.svg")
	var stdout bytes.Buffer
	if err := run(t.Context(), []string{"-o", picture}, &stdout); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(stdout.String()) {
		var d float64
		var got [4]float64
		if n, _ := fmt.Sscanf(line, "| %f | %f | %f | %f | %f |", &d, &got[0], &got[1], &got[2], &got[3]); n != 5 {
			continue
		}
		rows++
		s := d * d
		for i, want := range [4]float64{math.Log(1 + s), math.Log(2 + s), math.Log((1 + s) / s), math.Log((2 + s) / (1 + s))} {
			if math.Abs(got[i]-want) > 6e-5 {
				t.Errorf("at distance %g term %d is %g, want %g", d, i, got[i], want)
			}
		}
	}
	if rows != 12 {
		t.Errorf("the table has %d rows, want 12:\n%s", rows, stdout.String())
	}
	if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
		t.Errorf("there is no picture: %v", err)
	}
	for _, args := range [][]string{{"more"}, {"-o", "terms.gif"}} {
		if err := run(t.Context(), args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
