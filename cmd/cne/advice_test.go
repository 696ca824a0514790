package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const flagAdvice = `(?:--set (?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w.]+=[^\s;…]+)|--drop-text|--skip-bad)`

var (
	// advisedFlags matches flags that a message suggests for the command it is about,
	// advisedCommand a command that replaces it, and advisedScript one that makes a table of a file.
	advisedFlags   = regexp.MustCompile(flagAdvice + `(?: ` + flagAdvice + `)*`)
	advisedCommand = regexp.MustCompile(`"(cne [a-z ]+ --[^"]+)"`)
	advisedScript  = regexp.MustCompile(`python3 -c "[^"]+open\('([^']+)'\)[^"]+to_csv\('([^']+)'[^"]*"`)
	// begunWith matches commands that a message reports and does not suggest.
	begunWith = regexp.MustCompile(`was begun with "[^"]*", not "[^"]*"`)

	hasPandas = sync.OnceValue(func() bool { return exec.Command("python3", "-c", "import pandas").Run() == nil })
)

// advised returns what a message suggests as commands for a shell, for the command it is about.
func advised(command, message string) (all []string) {
	for _, flags := range advisedFlags.FindAllString(message, -1) {
		all = append(all, command+" "+strings.TrimRight(flags, ",.)"))
	}
	for _, m := range advisedCommand.FindAllStringSubmatch(begunWith.ReplaceAllString(message, ""), -1) {
		if !strings.Contains(m[1], "--help") && strings.ToUpper(m[1]) != m[1] && !regexp.MustCompile(`\b[A-Z]{3,}\b`).MatchString(m[1]) {
			all = append(all, m[1])
		}
	}
	for _, m := range advisedScript.FindAllStringSubmatch(message, -1) {
		if hasPandas() {
			all = append(all, m[0]+" && "+strings.ReplaceAll(command, m[1], m[2]))
		}
	}
	return all
}

// quoted returns a command line of a shell.
func quoted(args []string) string {
	line := "cne"
	for _, a := range args {
		line += " '" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return line
}

// follow runs what a message suggests, each in a copy of the script's folder: it has to work,
// or lead to another message whose suggestions work.
func follow(ts *testscript.TestScript, env []string, command, message string, depth int) {
	for _, line := range advised(command, message) {
		folder, err := os.MkdirTemp("", "advice")
		ts.Check(err)
		ts.Defer(func() { os.RemoveAll(folder) })
		if err := os.CopyFS(folder, os.DirFS(ts.Getenv("WORK"))); err != nil {
			ts.Logf("not followed, as the folder holds pipes: %s", line)
			continue
		}
		inside, err := filepath.Rel(ts.Getenv("WORK"), ts.MkAbs("."))
		ts.Check(err)
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = filepath.Join(folder, inside), env
		out, err := cmd.CombinedOutput()
		said := strings.TrimSpace(string(out))
		last := said[strings.LastIndexByte(said, '\n')+1:]
		switch {
		case err == nil && !strings.Contains(said, message): // a warning is heeded, too
		case err == nil:
			ts.Fatalf("the advice %q changes nothing: %s", line, message)
		case depth == 3 || last == message || len(advised(line, last)) == 0:
			ts.Fatalf("the advice of %q fails:\n%s\n%s", message, line, last)
		default:
			follow(ts, env, line, last, depth+1)
		}
	}
}

// scriptEnv returns the environment of a script.
func scriptEnv(ts *testscript.TestScript) []string {
	ts.Check(ts.Exec("env"))
	return strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
}

// scriptWarned runs the program, which has to warn with a text, and follows its advice.
func scriptWarned(ts *testscript.TestScript, _ bool, args []string) {
	env := scriptEnv(ts)
	code, _, stderr := runIn(ts, env, args[1:])
	if code != exitOK {
		ts.Fatalf("exit status %d", code)
	}
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "warning: ") && strings.Contains(line, args[0]) {
			follow(ts, env, quoted(append(args[1:], "--force")), line, 1)
			return
		}
	}
	ts.Fatalf("there is no warning with %q", args[0])
}

// Suggestions are found in messages.
func TestAdvised(t *testing.T) {
	for message, want := range map[string][]string{
		`a.csv: x; for instance --set data.na=two --set 'data.drop=["-", 2]', or --drop-text --set data.missing=mean`: {
			"cne --set data.na=two --set 'data.drop=[\"-\", 2]'", "cne --drop-text --set data.missing=mean"},
		`run exists; "cne train --resume run" continues it, see "cne train --help", or "cne plot --html -o FILE"`: {"cne train --resume run"},
		`got 3; --set data.missing=drop leaves such rows out, mean fills in`:                                      {"cne --set data.missing=drop"},
		`the spectrum in run was begun with "cne spectrum --s 0,1", not "cne spectrum --s 0"`:                     nil,
		`--set seed: got x; (--set model.kind), --set data.drop=2,3, or --skip-bad.`:                              {"cne --set data.drop=2,3", "cne --skip-bad"},
	} {
		if got := advised("cne", message); !slices.Equal(got, want) {
			t.Errorf("%s: got %s", message, fmt.Sprintf("%q", got))
		}
	}
}
