// Command gpucheck is the part of scripts/gpu-check that runs on the machine with
// the GPU, and the part that writes down what came of it.
//
//	gpucheck [-in FOLDER] [STEP...] [FLAG...]
//	gpucheck -report FOLDER -into docs/gpu.md
//
// The first carries steps out in the folder that scripts/gpu-check has filled, writes
// report-STEP.json for each, and packs all that is to come back; steps.txt says which there are, and usage.txt which
// flags. The second puts the figures of all report-*.json in a folder between two
// marks of a Markdown file. It starts cne and the tests as anyone would: what they
// measure, and whether it is right, is theirs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	err := run(context.Background(), os.Args[1:], os.Stdout)
	var wrong usageError
	switch {
	case err == nil:
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "gpucheck:", err)
		os.Exit(1)
	}
}

// A usageError says what is wrong with the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// errFailed says that the reports are written, and that not all is well.
var errFailed = errors.New("not all is well; the reports say what is not")

// run is the program without its process.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("gpucheck", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	v := &visit{stdout: stdout}
	in := flags.String("in", ".", "")
	flags.StringVar(&v.out, "o", "out", "")
	flags.StringVar(&v.resume, "resume", "", "")
	minutes := flags.Float64("minutes", 8, "")
	flags.IntVar(&v.epochs, "epochs", 0, "")
	packages := flags.String("packages", "", "")
	flags.BoolVar(&v.short, "short", false, "")
	flags.Func("set", "", func(s string) error {
		v.set = append(v.set, "--set", s)
		return nil
	})
	flags.IntVar(&v.width, "width", narrow, "")
	carry := flags.Float64("carry-mib", 20, "")
	part := flags.Float64("part-mib", 16, "")
	reports := flags.String("report", "", "")
	into := flags.String("into", "", "")

	// Steps may stand before the flags, and between them.
	var names []string
	for rest := args; ; {
		if err := flags.Parse(rest); errors.Is(err, flag.ErrHelp) {
			return usageError("README, beside run, says which steps and flags there are")
		} else if err != nil {
			return usageError(err.Error() + "; README, beside run, says which flags there are")
		}
		if rest = flags.Args(); len(rest) == 0 {
			break
		}
		names, rest = append(names, rest[0]), rest[1:]
	}
	if *reports != "" {
		return writeDown(*reports, *into)
	}
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			var all []string
			for _, s := range steps {
				all = append(all, s.name)
			}
			return usageError(fmt.Sprintf("there is no step %q; take one of %s", name, strings.Join(all, ", ")))
		}
	}
	v.carry, v.part = int64(*carry*mib), int64(*part*mib)
	v.limit, v.packages = time.Duration(*minutes*float64(time.Minute)), strings.FieldsFunc(*packages, func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case v.limit <= 0:
		return usageError("-minutes must be more than 0")
	case v.part <= 0:
		return usageError("-part-mib must be more than 0")
	case v.width < 1 || v.epochs < 0:
		return usageError("-width and -epochs must be 1 or more")
	}

	// What a user names counts from where the command was called.
	var err error
	if v.resume == "" {
		v.resume = filepath.Join(*in, "resume")
	}
	for _, folder := range []*string{&v.out, &v.resume} {
		if *folder, err = filepath.Abs(*folder); err != nil {
			return err
		}
	}
	if err := writable(v.out); err != nil {
		return fmt.Errorf("nothing can be written into %s, where the reports go (%w); let -o name another folder", v.out, err)
	}
	if err := os.Chdir(*in); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return v.carryOut(ctx, names)
}

// writable tells whether files can be made in a folder, which it makes.
func writable(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, ".gpucheck")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

const mib = 1 << 20

// A visit is one command on the machine with the GPU: some steps, for some minutes.
type visit struct {
	out, resume string // folders
	limit       time.Duration
	epochs      int      // 0: as the step has it
	packages    []string // none: all
	short       bool
	set         []string // flags for cne
	width       int      // of the network of simclr-run
	carry, part int64    // bytes that the pieces of a run may have together, and each
	stdout      io.Writer
}

// carryOut does the named steps, or all that are not yet done.
func (v *visit) carryOut(ctx context.Context, names []string) error {
	// What is interrupted takes a while to end, within the limit.
	start := time.Now()
	over := start.Add(v.limit - min(v.limit/10, 20*time.Second))
	ctx, cancel := context.WithDeadline(ctx, over)
	defer cancel()
	version, err := os.ReadFile("programs/version")
	words := strings.Fields(string(version))
	if err != nil || len(words) != 2 {
		return errors.New("there is no programs/version beside run, or not all of it; make the programs again with scripts/gpu-check --parts programs, and copy them here")
	}
	failed := false
	var left []string
	for _, s := range steps {
		named := slices.Contains(names, s.name)
		if len(names) == 0 && s.ask || len(names) > 0 && !named {
			continue
		}
		c := &check{visit: v, ctx: ctx, earlier: v.earlier(s.name)}
		c.report = &report{Step: s.name, Started: time.Now().UTC().Truncate(time.Second), Check: words[0], Sources: words[1]}
		if c.earlier != nil && c.earlier.Sources != c.report.Sources {
			c.earlier = nil // of other programs
		}
		c.report.Allotted = time.Until(over).Seconds()
		if !named && c.earlier != nil && c.earlier.ended() {
			how := ""
			switch {
			case c.earlier.well():
			case c.earlier.Left == "":
				how = ", not well; name it to repeat it"
			default:
				how = ", not well and not to its end; name it to try again"
			}
			failed = failed || how != ""
			fmt.Fprintf(v.stdout, "%s: done on %s%s\n", s.name, c.earlier.Started.Format("2006-01-02 15:04"), how)
			continue
		}
		tooShort := s.run != "" && !begun(s.run) && c.earlier != nil && c.earlier.Left != "" && c.report.Allotted < c.earlier.Allotted+30
		if ctx.Err() != nil || !named && tooShort {
			left = append(left, s.name)
			continue
		}
		if s.part != nil {
			if err := s.part(ctx); errors.Is(err, errOver) {
				left = append(left, s.name)
				continue
			} else if err != nil {
				fmt.Fprintf(v.stdout, "%s: %v\n", s.name, err)
				failed = failed || named
				continue
			}
		}
		c.report.Machine = thisMachine(ctx)
		c.begun = time.Now()
		if err := s.do(c); err != nil {
			c.report.Error = err.Error()
		}
		if err := errors.Join(c.save(), v.pack()); err != nil {
			return err
		}
		fmt.Fprintf(v.stdout, "%s is written, after %.0f s\n", c.path(), c.report.Seconds)
		for _, text := range []string{c.report.Error, c.report.Note} {
			if text != "" {
				fmt.Fprintf(v.stdout, "%s: %s\n", s.name, text)
			}
		}
		if c.report.Left != "" {
			left = append(left, s.name+" ("+c.report.Left+")")
		}
		failed = failed || !c.report.well()
	}
	if err := v.pack(); err != nil {
		return err
	}
	v.sayPacked()
	if len(left) > 0 {
		fmt.Fprintf(v.stdout, "left for the next visit, after %.0f s: %s\n", time.Since(start).Seconds(), strings.Join(left, ", "))
	}
	if failed {
		return errFailed
	}
	return nil
}

// earlier returns the report of a step from an earlier visit, nil if there is none that
// can be read.
func (v *visit) earlier(step string) *report {
	for _, folder := range []string{v.out, v.resume} {
		r := new(report)
		if readJSON(filepath.Join(folder, reportName(step)), r) == nil {
			return r
		}
	}
	return nil
}
