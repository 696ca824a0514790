// Command gpucheck is the part of scripts/gpu-check that runs on the machine with
// the GPU, and the part that writes down what came of it.
//
//	gpucheck STEP [-o FOLDER] [-minutes M] [-epochs N] [PACKAGE...]
//	gpucheck -report FOLDER -in docs/gpu.md
//
// The first carries a step out in the folder that scripts/gpu-check has filled,
// which is the current one, and writes report-STEP.json; steps.txt says which there
// are. The second puts the figures of all report-*.json in a folder between two
// marks of a Markdown file. It starts cne and the tests as anyone would: what they
// measure, and whether it is right, is theirs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

// errFailed says that the report is written, and that not all is well.
var errFailed = errors.New("not all is well; the report says what is not")

// run is the program without its process.
func run(args []string, stdout io.Writer) error {
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("gpucheck", flag.ContinueOnError)
	out := flags.String("o", ".", "folder for the report")
	minutes := flags.Float64("minutes", 9, "how long the step may take")
	epochs := flags.Int("epochs", 0, "passes over the data, in place of the step's own")
	reports := flags.String("report", "", "folder with reports to write down")
	in := flags.String("in", "", "Markdown file to write them into")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *reports != "" {
		return writeDown(*reports, *in)
	}
	i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
	if i < 0 {
		var names []string
		for _, s := range steps {
			names = append(names, s.name)
		}
		return fmt.Errorf("there is no step %q; take one of %s", name, strings.Join(names, ", "))
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		return err
	}

	limit := time.Duration(*minutes * float64(time.Minute))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r := &report{Step: name, Started: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(ctx)}
	c := &check{ctx: ctx, report: r, epochs: *epochs, packages: flags.Args(), stdout: stdout}
	begun := time.Now()
	if err := steps[i].do(c); err != nil {
		r.Error = err.Error()
	}
	r.Seconds = time.Since(begun).Seconds()
	path := filepath.Join(*out, "report-"+name+".json")
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o666); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s is written, after %.0f s\n", path, r.Seconds)
	if r.Error != "" {
		fmt.Fprintln(stdout, r.Error)
	}
	if !r.well() {
		return errFailed
	}
	return nil
}
