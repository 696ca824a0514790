package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
)

// runCne runs the program with the commands it has and some that only fail.
func runCne(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	failing := func(name string, f func(*cobra.Command) error) func() *cobra.Command {
		return func() *cobra.Command {
			return &cobra.Command{Use: name, Args: cli.NoArguments, RunE: func(cmd *cobra.Command, _ []string) error { return f(cmd) }}
		}
	}
	all := append([]func() *cobra.Command{
		failing("fail", func(*cobra.Command) error { return errors.New("it failed") }),
		failing("crash", func(*cobra.Command) error { panic("index out of range") }),
		failing("wait", func(cmd *cobra.Command) error { return fmt.Errorf("training: %w", cmd.Context().Err()) }),
		failing("quiet", func(cmd *cobra.Command) error { return fmt.Errorf("quiet is %v", cli.Quiet(cmd)) }),
	}, commands...)
	var out, errs bytes.Buffer
	code = run(ctx, all, args, &out, &errs)
	debug.SetGCPercent(garbage) // which a large run lowers for its process
	return code, out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "bad.yaml", "sed: 1")
	writeTestFile(t, "good.yaml", "seed: 1")
	for _, tc := range []struct {
		args   string
		code   int
		stdout string // part of it; "" for nothing at all
		stderr string // all of it
	}{
		{"", 0, "Available Commands", ""},
		{"--help", 0, "Available Commands", ""},
		{"help config", 0, "--check", ""},
		{"--version", 0, "cne " + configs.Version() + "\n", ""},
		{"version", 0, "cne " + configs.Version() + " (go", ""},
		{"completion", 0, "bash", ""},
		{"completion bash", 0, "__cne", ""},
		{"config", 0, "seed: 0", ""},
		{"config -c good.yaml", 0, "seed: 1", ""},
		{"config -c good.yaml --seed 2", 0, "seed: 2", ""},
		{"config --set seed=3 --seed 2", 0, "seed: 2", ""},
		{"config --seed 2 --set seed=3", 0, "seed: 3", ""},
		{"config --set seed=3 --set seed=4", 0, "seed: 4", ""},
		{"config -o elsewhere --epochs 12", 0, "epochs: 12", ""},
		{"config --log-format json", 0, "format: json", ""},
		{"config --check -c good.yaml", 0, "memory: about ", ""},
		{"config --check -c bad.yaml", 1, "", "cne: bad.yaml:1: sed: unknown key; did you mean seed?\n"},
		{"config -c bad.yaml", 1, "", "cne: bad.yaml:1: sed: unknown key; did you mean seed?\n"},
		{"config -c none.yaml", 1, "", "cne: cannot read the configuration: open none.yaml: no such file or directory\n"},
		{"config --epochs x", 2, "", "cne: --epochs: train.epochs: got \"x\", want a whole number of at least 1, or null; see \"cne config --help\"\n"},
		{"config --log-format xml", 2, "", "cne: --log-format: got \"xml\", want text or json; see \"cne config --help\"\n"},
		{"fail", 1, "", "cne: it failed\n"},
		{"quiet", 1, "", "cne: quiet is false\n"},
		{"quiet -q", 1, "", "cne: quiet is true\n"},
		{"confg", 2, "", "cne: there is no command \"confg\"; did you mean config?; see \"cne --help\"\n"},
		{"something", 2, "", "cne: there is no command \"something\"; see \"cne --help\"\n"},
		{"completion bsh", 2, "", "cne: there is no command \"completion bsh\"; did you mean bash?; see \"cne completion --help\"\n"},
		{"help something", 2, "", "cne: there is no command \"something\"; see \"cne help --help\"\n"},
		{"config extra", 2, "", "cne: cne config: got argument \"extra\", want none; see \"cne config --help\"\n"},
		{"config --chek", 2, "", "cne: unknown flag --chek; did you mean --check?; see \"cne config --help\"\n"},
		{"--frobnicate", 2, "", "cne: unknown flag --frobnicate; see \"cne --help\"\n"},
		{"config --config", 2, "", "cne: flag needs an argument: --config; see \"cne config --help\"\n"},
		{"config --set seed", 2, "", "cne: invalid argument \"seed\" for \"-s, --set\" flag: it must have the form key=value; see \"cne config --help\"\n"},
		{"config -s 0.5", 2, "", "cne: invalid argument \"0.5\" for \"-s, --set\" flag: it must have the form key=value; the position on the spectrum is --s, with two dashes; see \"cne config --help\"\n"},
		{"config --set =5", 2, "", "cne: invalid argument \"=5\" for \"-s, --set\" flag: it must have the form key=value; see \"cne config --help\"\n"},
	} {
		code, stdout, stderr := runCne(context.Background(), strings.Fields(tc.args)...)
		if code != tc.code {
			t.Errorf("cne %s: exit code %d, want %d", tc.args, code, tc.code)
		}
		if !strings.Contains(stdout, tc.stdout) || tc.stdout == "" && stdout != "" {
			t.Errorf("cne %s: stdout %q, want %q", tc.args, stdout, tc.stdout)
		}
		if stderr != tc.stderr {
			t.Errorf("cne %s: stderr\n%s want\n%s", tc.args, stderr, tc.stderr)
		}
	}
}

func TestEnvironmentReachesTheCommand(t *testing.T) {
	t.Setenv("CNE_TRAIN_EPOCHS", "31")
	if code, stdout, stderr := runCne(context.Background(), "config"); code != 0 || !strings.Contains(stdout, "epochs: 31") {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
}

func TestPanicBecomesASentence(t *testing.T) {
	t.Setenv(debugVariable, "")
	code, _, stderr := runCne(context.Background(), "crash")
	if code != exitFailure || !strings.HasPrefix(stderr, "cne: internal error: index out of range; please report it as a bug") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
	t.Setenv(debugVariable, "1")
	if _, _, stderr := runCne(context.Background(), "crash"); !strings.Contains(stderr, "goroutine") {
		t.Errorf("no stack: %s", stderr)
	}
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if code, _, stderr := runCne(ctx, "wait"); code != exitFailure || stderr != "cne: interrupted\n" {
		t.Errorf("exit code %d, stderr %s", code, stderr)
	}
}

func TestCompletion(t *testing.T) {
	for args, want := range map[string]string{
		"con":                   "config\t",
		"config --set train.an": "train.anneal=linear\n",
		"config --set loss.na":  "loss.name=\n",
	} {
		_, stdout, _ := runCne(context.Background(), append([]string{cobra.ShellCompRequestCmd}, strings.Fields(args)...)...)
		if !strings.Contains(stdout, want) {
			t.Errorf("cne %s: %q lacks %q", args, stdout, want)
		}
	}
}

// fullDisk is a writer that has no room.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Failing to print anything is an error.
func TestFullStdout(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"train", "--help"}, {"help", "train"}, {"simclr"}, {"version"}, {"--version"}, {"config"}, {"completion", "bash"}} {
		var stderr bytes.Buffer
		code := run(t.Context(), commands, args, fullDisk{}, &stderr)
		if code != exitFailure || !strings.Contains(stderr.String(), "no space left on device") || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: exit code %d, stderr %q", args, code, &stderr)
		}
	}
}
