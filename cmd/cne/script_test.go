package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"cne/internal/npy"
	"cne/internal/rng"
	"cne/internal/text"
)

// garbage is the tests' GOGC: they make many short runs. A limit keeps the larger ones small.
const garbage = 3000

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	if _, set := os.LookupEnv("CNE_PRESET"); !set {
		os.Setenv("CNE_PRESET", "paper") // which most tests are about; presets.txtar is about the others
	}
	if _, set := os.LookupEnv("CNE_OUTPUT_PLOT"); !set {
		os.Setenv("CNE_OUTPUT_PLOT", "false") // a picture takes longer than most runs
	}
	debug.SetGCPercent(garbage)
	debug.SetMemoryLimit(512 << 20)
	os.Exit(m.Run())
}

// sequential is a test whose scripts run one after the other, as commands in this process have
// its folder and its variables.
type sequential struct{ *testing.T }

func (sequential) Parallel() {}

func (sequential) Verbose() bool { return testing.Verbose() }

func (t sequential) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(sequential{t}) })
}

// TestScript runs the scripts of testdata/script, each in a folder of its own with the
// file points.csv: 60 points of five columns f0 to f4 in three clusters, and their kind.
// Their commands, in addition to package testscript's:
//
//	cne ARGUMENT...                runs the program in this process; "exec cne" starts one
//	refused TEXT ARGUMENT...       cne exits with 1, changes no file, and its one error has the
//	                               text; what it advises works (see follow)
//	misused TEXT ARGUMENT...       the same with exit code 2, for wrong usage
//	warned TEXT ARGUMENT...        cne ends well, and a warning has the text; what it advises works
//	text FILE TEXT...              writes a file of texts with Go's escapes; *N repeats the next one
//	array FILE DTYPE N,D VALUE...  writes an array; random values follow the given ones
//	npz FILE ARRAY...              writes an archive of arrays
//	images FOLDER SIZE TRAIN TEST  makes a folder of square images in three classes
//	cells FOLDER FROM N            makes a folder of 10x with counts of cells in three classes
//	cut FILE TO BYTES              copies the first bytes of a file
//	swap FILE TO OLD NEW           copies a file with the first OLD replaced
//	await FILE LINES               waits until a file has so many more lines
//	readers PIPE...                waits until each pipe has a reader; writes nothing to it
//	signal NAME                    sends a signal to what runs in the background
func TestScript(t *testing.T) {
	points := filepath.Join(t.TempDir(), "points.csv")
	writePoints(t, points, 60, 5)
	content := readText(t, points)
	hdf5, err := filepath.Abs("../../internal/hdf5/testdata")
	if err != nil {
		t.Fatal(err)
	}
	bin := programFolder(t)
	testscript.RunT(sequential{t}, testscript.Params{
		Dir:             "testdata/script",
		ContinueOnError: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("CNE_GRAPH_K", "5")
			e.Setenv("CNE_OUTPUT_PLOT", "false")
			e.Setenv("CNE_PRESET", "paper")
			e.Setenv("HDF5", hdf5)
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv(mainVariable, "1")
			return os.WriteFile(filepath.Join(e.WorkDir, "points.csv"), []byte(content), 0o666)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cne":     scriptCne,
			"refused": func(ts *testscript.TestScript, _ bool, args []string) { refused(ts, exitFailure, args) },
			"misused": func(ts *testscript.TestScript, _ bool, args []string) { refused(ts, exitUsage, args) },
			"warned":  scriptWarned,
			"text":    scriptText,
			"array":   scriptArray,
			"npz":     scriptNPZ,
			"cells": func(ts *testscript.TestScript, _ bool, args []string) {
				var from, cells int
				_, err := fmt.Sscan(args[1], &from)
				ts.Check(err)
				_, err = fmt.Sscan(args[2], &cells)
				ts.Check(err)
				write10X(t, ts.MkAbs(args[0]), from, cells)
			},
			"images": func(ts *testscript.TestScript, _ bool, args []string) {
				var size, train, test int
				_, err := fmt.Sscan(strings.Join(args[1:], " "), &size, &train, &test)
				ts.Check(err)
				writeImages(t, ts.MkAbs(args[0]), size, train, test)
			},
			"cut": func(ts *testscript.TestScript, _ bool, args []string) {
				n, err := strconv.Atoi(args[2])
				ts.Check(err)
				scriptWrite(ts, args[1], ts.ReadFile(args[0])[:n])
			},
			"swap": func(ts *testscript.TestScript, _ bool, args []string) {
				before, after, found := strings.Cut(ts.ReadFile(args[0]), unescaped(ts, args[2]))
				if !found {
					ts.Fatalf("%s has no %q", args[0], args[2])
				}
				scriptWrite(ts, args[1], before+unescaped(ts, args[3])+after)
			},
			"await": func(ts *testscript.TestScript, _ bool, args []string) {
				lines, err := strconv.Atoi(args[1])
				ts.Check(err)
				before, _ := os.ReadFile(ts.MkAbs(args[0]))
				lines += bytes.Count(before, []byte("\n"))
				for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
					content, err := os.ReadFile(ts.MkAbs(args[0]))
					if err == nil && bytes.Count(content, []byte("\n")) >= lines {
						return
					}
					if time.Now().After(deadline) {
						ts.Fatalf("%s does not come to %d lines", args[0], lines)
					}
				}
			},
			"readers": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, pipe := range args {
					for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
						w, err := os.OpenFile(ts.MkAbs(pipe), os.O_WRONLY|syscall.O_NONBLOCK, 0)
						if err == nil {
							ts.Defer(func() { w.Close() })
							break
						}
						if time.Now().After(deadline) {
							ts.Fatalf("no process reads: %v", err)
						}
					}
				}
			},
			"signal": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, cmd := range ts.BackgroundCmds() {
					ts.Check(cmd.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": os.Kill}[args[0]]))
				}
			},
		},
	})
}

// runIn runs the program in this process, with a script's folder and variables. Its output is
// the script's.
func runIn(ts *testscript.TestScript, env, args []string) (code int, stdout, stderr string) {
	folder, err := os.Getwd()
	ts.Check(err)
	own := os.Environ()
	defer func() {
		ts.Check(os.Chdir(folder))
		ts.Check(setEnviron(own))
	}()
	ts.Check(os.Chdir(ts.MkAbs(".")))
	ts.Check(setEnviron(env))
	code, stdout, stderr = runCne(context.Background(), args...)
	fmt.Fprint(ts.Stdout(), stdout)
	fmt.Fprint(ts.Stderr(), stderr)
	return code, stdout, stderr
}

// setEnviron sets all environment variables.
func setEnviron(env []string) error {
	os.Clearenv()
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

func scriptCne(ts *testscript.TestScript, neg bool, args []string) {
	if code, _, _ := runIn(ts, scriptEnv(ts), args); (code != exitOK) != neg {
		ts.Fatalf("exit status %d", code)
	}
}

// crash matches what only a crash prints.
var crash = regexp.MustCompile(`goroutine |panic|fatal error|runtime error|internal error`)

// refused runs the program, which has to refuse its arguments in one short sentence and
// to leave every file as it was.
func refused(ts *testscript.TestScript, code int, args []string) {
	before := scriptFiles(ts)
	ts.Setenv(debugVariable, "")
	env := scriptEnv(ts)
	got, stdout, stderr := runIn(ts, env, args[1:])
	stderr = strings.TrimSuffix(stderr, "\n")
	last := stderr[strings.LastIndexByte(stderr, '\n')+1:]
	switch {
	case got == exitOK:
		ts.Fatalf("it is not refused")
	case got != code:
		ts.Fatalf("exit status %d, not %d", got, code)
	case stdout != "" || !strings.HasPrefix(last, "cne: ") || strings.Count("\n"+stderr, "\ncne: ") != 1 || len(last) > 1500:
		ts.Fatalf("it is not refused in one short sentence")
	case crash.MatchString(stderr) || strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(stderr), text.Unsafe):
		ts.Fatalf("it crashes, or controls the terminal")
	case !strings.Contains(last, args[0]):
		ts.Fatalf("the message has no %q", args[0])
	}
	if after := scriptFiles(ts); !slices.Equal(after, before) {
		ts.Fatalf("the files were\n%s\nand are\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if code == exitFailure {
		follow(ts, env, quoted(args[1:]), last, 1)
	}
}

// scriptFiles lists the files of a script and when they were written, and empty folders.
// It leaves out the cache, which a refused run may fill.
func scriptFiles(ts *testscript.TestScript) (found []string) {
	root := ts.Getenv("WORK")
	ts.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".tmp" || d.Name() == "cache.safetensors" || d.Name() == "graph.npz" {
			return err
		}
		if d.IsDir() {
			if content, err := os.ReadDir(path); err != nil || len(content) > 0 {
				return err
			}
		}
		info, err := d.Info()
		if err == nil {
			found = append(found, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return err
	}))
	return found
}

func scriptWrite(ts *testscript.TestScript, name, content string) {
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(name)), 0o777))
	ts.Check(os.WriteFile(ts.MkAbs(name), []byte(content), 0o666))
}

// unescaped returns a text with its escapes replaced.
func unescaped(ts *testscript.TestScript, s string) string {
	out, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	ts.Check(err)
	return out
}

func scriptText(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	times := 1
	for _, s := range args[1:] {
		if n, err := strconv.Atoi(strings.TrimPrefix(s, "*")); err == nil && s[0] == '*' {
			times = n
			continue
		}
		b.WriteString(strings.Repeat(unescaped(ts, s), times))
		times = 1
	}
	scriptWrite(ts, args[0], b.String())
}

func scriptArray(ts *testscript.TestScript, _ bool, args []string) {
	n := 1
	var shape []int
	for d := range strings.SplitSeq(args[2], ",") {
		size, err := strconv.Atoi(d)
		ts.Check(err)
		n *= size
		shape = append(shape, size)
	}
	content := npy.Head(128, args[1], shape...)
	stream := rng.New(1, rng.Sample)
	for i := range n {
		v := float64(stream.IntN(256))
		if args[1][:2] == "|S" {
			content = append(content, args[i+3]...)
			continue
		}
		if i+3 < len(args) {
			var err error
			v, err = strconv.ParseFloat(args[i+3], 64)
			ts.Check(err)
		}
		switch args[1] {
		case "|u1":
			content = append(content, byte(v))
		case "<f4":
			content = binary.LittleEndian.AppendUint32(content, math.Float32bits(float32(v)))
		case "<i8":
			content = binary.LittleEndian.AppendUint64(content, uint64(int64(v)))
		default:
			ts.Fatalf("no arrays of %s", args[1])
		}
	}
	scriptWrite(ts, args[0], string(content))
}

func scriptNPZ(ts *testscript.TestScript, _ bool, args []string) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range args[1:] {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name})
		ts.Check(err)
		_, err = w.Write([]byte(ts.ReadFile(name)))
		ts.Check(err)
	}
	ts.Check(z.Close())
	scriptWrite(ts, args[0], b.String())
}
