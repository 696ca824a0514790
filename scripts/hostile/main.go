// Command hostile treats the program cne badly, in every way that a hostile or careless
// user may think of, and says where it panics, hangs, is silently wrong, loses a file or
// speaks badly.
//
//	go run ./scripts/hostile [-cne PATH] [-run REGEXP] [-seed N] [-jobs N] [-limit TIME] [-v] [-keep]
//
// A trial has a folder of its own, makes files there, runs command lines in it, and says
// how each has to end and what is then there. What no command may do, whatever it is
// given, is checked of all of them: see world.check. The trials are the same each time;
// only where a signal hits depends on the seed and on the speed of the machine. A trial
// that the machine cannot make, such as that of a full disk without the right to mount
// one, is skipped, and the report says so. The exit code is 1 if any trial failed.
//
// The program is built unless -cne names it. On Linux as root, the trials run as another
// user, who may not read and write everywhere.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	program := flag.String("cne", "", "`path` of the program; it is built if none is given")
	pattern := flag.String("run", "", "only trials whose names match this regular `expression`")
	seed := flag.Uint64("seed", 1, "of the moments at which signals come, and of damaged bytes")
	jobs := flag.Int("jobs", runtime.GOMAXPROCS(0), "trials at the same time")
	limit := flag.Duration("limit", time.Minute, "time after which a command counts as stuck")
	verbose := flag.Bool("v", false, "print each trial with its last messages")
	keep := flag.Bool("keep", false, "leave the folders of failed trials, and say where they are")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "hostile: %q is no flag\n", flag.Arg(0))
		os.Exit(2)
	}
	chosen, err := choose(trials(), *pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program
	r := &runner{seed: *seed, limit: *limit, keep: *keep}
	failed, err := r.all(ctx, *program, chosen, *jobs, *verbose, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// A trial is one way to treat the program badly.
type trial struct {
	name string // group/what
	do   func(w *world)
}

// trials returns all of them.
func trials() []trial {
	return slices.Concat(
		arrayTrials(), archiveTrials(), tableTrials(), parquetTrials(), sparseTrials(), givenTrials(), countTrials(), imageTrials(), labelTrials(), modelTrials(), graphTrials(),
		yamlTrials(), settingTrials(), rangeTrials(), usageTrials(),
		fileTrials(), runTrials(), plotTrials(), signalTrials(), limitTrials(), propertyTrials(), noiseTrials(),
	)
}

// choose returns the trials whose names match a pattern. It is an error if none does,
// or if two trials have one name.
func choose(all []trial, pattern string) ([]trial, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var chosen []trial
	seen := make(map[string]bool)
	for _, t := range all {
		if seen[t.name] {
			return nil, fmt.Errorf("two trials are called %s", t.name)
		}
		seen[t.name] = true
		if re.MatchString(t.name) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no trial matches %s", pattern)
	}
	return chosen, nil
}

// A runner runs trials.
type runner struct {
	root  string // holds everything; the trials' folders are inside
	bin   string // a folder with the program, alone
	seed  uint64
	limit time.Duration
	keep  bool
	user  *account // the user for the commands; nil: this one

	mu    sync.Mutex
	bases map[string]*base
}

// A verdict is what became of a trial.
type verdict struct {
	name    string
	fault   string // "" if none was found
	skipped string // why it was not made
	dir     string
	log     []string
	took    time.Duration
}

// all runs trials, prints a report, and returns how many failed.
func (r *runner) all(ctx context.Context, program string, chosen []trial, jobs int, verbose bool, out io.Writer) (failed int, err error) {
	begun := time.Now()
	if err := r.prepare(ctx, program); err != nil {
		return 0, err
	}
	defer func() {
		if r.keep && failed > 0 {
			fmt.Fprintf(out, "the folders of failed trials are in %s\n", r.root)
			return
		}
		os.RemoveAll(r.root)
	}()

	verdicts := make([]verdict, len(chosen))
	next := make(chan int)
	var wg sync.WaitGroup
	var printing sync.Mutex
	for range max(jobs, 1) {
		wg.Go(func() {
			for i := range next {
				v := r.one(ctx, chosen[i])
				verdicts[i] = v
				if verbose {
					printing.Lock()
					fmt.Fprintf(out, "%s (%.1f s)\n%s", v.name, v.took.Seconds(), indent(v.log))
					printing.Unlock()
				}
			}
		})
	}
	for i := range chosen {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("interrupted")
	}
	return report(out, verdicts, time.Since(begun)), nil
}

// report prints what failed and what was skipped, and returns how many failed.
func report(out io.Writer, verdicts []verdict, took time.Duration) (failed int) {
	skipped := 0
	for _, v := range verdicts {
		switch {
		case v.fault != "":
			failed++
			fmt.Fprintf(out, "FAILED %s: %s\n%s", v.name, v.fault, indent(v.log))
		case v.skipped != "":
			skipped++
			fmt.Fprintf(out, "skipped %s: %s\n", v.name, v.skipped)
		}
	}
	fmt.Fprintf(out, "%d hostile trials, %d failed, %d skipped, %.0f s\n", len(verdicts), failed, skipped, took.Seconds())
	return failed
}

// indent puts lines under a heading.
func indent(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(strings.TrimRight(l, "\n"), "\n", "\n    "))
	}
	return b.String()
}

// prepare makes the folders and puts the program into one that every user may read.
func (r *runner) prepare(ctx context.Context, program string) (err error) {
	if r.root, err = os.MkdirTemp("", "hostile"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(r.root)
		}
	}()
	r.bases = make(map[string]*base)
	r.user = otherUser()
	r.bin = filepath.Join(r.root, "bin")
	// The mask of this process may be narrower than what another user needs.
	if err := os.Mkdir(r.bin, 0o755); err != nil {
		return err
	}
	for _, dir := range []string{r.root, r.bin} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	target := filepath.Join(r.bin, "cne")
	if program == "" {
		root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
		if err != nil {
			return fmt.Errorf("there is no module here (%w); run this within that of cne, or give -cne", err)
		}
		build := exec.CommandContext(ctx, "go", "build", "-o", target, "./cmd/cne")
		build.Dir = strings.TrimSpace(string(root))
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("cne cannot be built: %w", err)
		}
	} else {
		content, err := os.ReadFile(program)
		if err != nil {
			return fmt.Errorf("the program cannot be read: %w", err)
		}
		if err := os.WriteFile(target, content, 0o755); err != nil {
			return err
		}
	}
	return os.Chmod(target, 0o755)
}

// one makes a trial.
func (r *runner) one(ctx context.Context, t trial) verdict {
	w, err := r.newWorld(ctx, t.name)
	if err != nil {
		return verdict{name: t.name, fault: err.Error()}
	}
	begun := time.Now()
	w.protect(func() { t.do(w) })
	v := verdict{name: t.name, fault: w.fault, skipped: w.skipped, dir: w.dir, log: w.log, took: time.Since(begun)}
	if v.fault == "" && v.skipped == "" && w.commands == 0 {
		v.fault = "the trial has run no command"
	}
	if v.fault == "" || !r.keep {
		w.remove()
	}
	return v
}
