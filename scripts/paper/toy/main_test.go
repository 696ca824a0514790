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

// Corollary 2 of the paper, read off the program's own table.
func TestTable(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "toy.svg")
	var stdout bytes.Buffer
	if err := run([]string{"-o", picture}, &stdout); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(stdout.String()) {
		var z, partition float64
		if n, _ := fmt.Sscanf(line, "| %f | %f |", &z, &partition); n != 2 {
			continue
		}
		rows++
		if want := min(z, 6); math.Abs(partition/want-1) > 0.01 {
			t.Errorf("at Z̄ = %v the partition function is %v, want %v", z, partition, want)
		}
	}
	if rows != 20 {
		t.Errorf("the table has %d rows, want 20:\n%s", rows, stdout.String())
	}
	if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
		t.Errorf("there is no picture: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"more"}, {"-epochs", "0"}, {"-lr", "-1"}, {"-o", "toy.gif", "-epochs", "1"}} {
		if err := run(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
