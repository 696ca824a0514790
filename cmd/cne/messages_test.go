package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"cne/configs"
	"cne/internal/text"
)

// nasty is a name that would colour, ring, end the line and turn the text around.
const nasty = "a\x1b[31m\x07\r\nb\u009b2J\x7f\u2028\u202ec"

// checkSafe checks that nothing in an output controls a terminal, and that a message is
// one line. A configuration keeps the marks of direction in its names.
func checkSafe(t *testing.T, command, stdout, stderr string) {
	t.Helper()
	for name, output := range map[string]string{"stdout": stdout, "stderr": stderr} {
		plain := strings.NewReplacer("\n", "", "\t", "").Replace(output)
		unsafe := text.Unsafe
		if name == "stdout" && strings.HasPrefix(command, "config") {
			unsafe = unicode.IsControl
		}
		if strings.ContainsFunc(plain, unsafe) {
			t.Errorf("%q: unsafe %s: %q", command, name, output)
		}
	}
}

// Names in arguments, flags, keys, variables, files and folders never reach the terminal
// as they are, whether they are right or wrong.
func TestNastyNames(t *testing.T) {
	t.Chdir(t.TempDir())
	const table = nasty + ".csv"
	writeTestFile(t, table, "\"x"+nasty+"\",y,label\n1,2,\""+nasty+"\"\n2,3,b\n3,4,c\n4,6,d\n")
	writeTestFile(t, nasty+".yaml", "data: {path: 'x', \"x\\e[31m\": 1}\n")
	writeTestFile(t, "title.yaml", "data: {label_column: \"x\\e[31m\\u202e\\u2028\\x7f\", path: [\"x\\u202e\"]}\n")
	if err := os.Mkdir(nasty, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{nasty},
		{"config", nasty},
		{"config", "--" + nasty},
		{"config", "-c", nasty},
		{"config", "-c", nasty + ".yaml"},
		{"config", "-c", "title.yaml"},
		{"config", "--set", nasty},
		{"config", "--set", nasty + "=1"},
		{"config", "--epochs", nasty},
		{"config", "--set", "data.path=" + nasty, "--set", "data.label_column=" + nasty},
		{"config", "--log-format", nasty},
		{"help", nasty},
		{"train", "--set", "data.path=" + nasty},
		{"train", "--set", "data.path=" + nasty + ".npy"},
		{"train", "--set", "data.path=" + table, "--set", "graph.k=2", "--set", "data.label_column=label", "-o", nasty + "/run", "--epochs", "1"},
		{"train", "--set", "data.path=" + table, "--set", "data.label_column=z" + nasty, "-o", "run"},
		{"train", "--set", "data.path=" + table, "-o", "run"},
		{"train", "--resume", nasty},
		{"train", "--resume", nasty + "/run", "--set", "train.lr=2"},
		{"evaluate", nasty + "/run"},
		{"evaluate", nasty + "/run", "--json"},
		{"evaluate", table, "--against", nasty},
		{"plot", table, "--label-column", "label"},
		{"plot", table, "--label-column", "label", "-o", nasty + ".svg"},
		{"plot", table, "--label-column", nasty},
		{"plot", nasty + "/run", "--html"},
		{"project", "--model", nasty, table, "-o", nasty + ".npy"},
		{"simclr", nasty},
		{"simclr", "pretrain", "--set", "data.path=" + nasty},
		{"spectrum", "--s", nasty},
	} {
		for _, more := range [][]string{nil, {"--log-format", "json"}} {
			args := append(args[:len(args):len(args)], more...)
			code, stdout, stderr := runCne(context.Background(), args...)
			command := strings.Join(args, " ")
			checkSafe(t, command, stdout, stderr)
			if code != exitOK && more == nil && strings.Count(stderr, "cne: ") == 0 {
				t.Errorf("%q: no message", command)
			}
			if more == nil {
				continue
			}
			for line := range strings.Lines(stderr) {
				if !json.Valid([]byte(line)) {
					t.Errorf("%q: no JSON: %s", command, line)
				}
			}
		}
	}
	// What was printed in quotes is what was meant.
	var printed bytes.Buffer
	if code := run(context.Background(), commands, []string{"config", "-c", "title.yaml"}, &printed, new(bytes.Buffer)); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	c, err := configs.Train.Parse("printed", printed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if c.Data.LabelColumn != "x\x1b[31m\u202e\u2028\x7f" || c.Data.Path[0] != "x\u202e" {
		t.Errorf("printed column %q and path %q", c.Data.LabelColumn, c.Data.Path)
	}
}

// The last error is in the form of the other messages, wherever the form comes from.
func TestErrorFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "json.yaml", "log: {format: json}\n")
	for _, args := range []string{
		"fail --log-format json",
		"--log-format=json fail",
		"crash --log-format json",
		"--log-format json confg",
		"train --frobnicate --log-format json",
		"train --epochs many --log-format=json",
		"train -c json.yaml --set data.path=none.npy",
		"plot none.npy --log-format json",
	} {
		code, _, stderr := runCne(context.Background(), strings.Fields(args)...)
		var record struct{ Level, Msg string }
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &record); err != nil || record.Level != "ERROR" || record.Msg == "" || code == exitOK {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
	for _, args := range []string{"fail --log-format text", "fail --log-format xml"} {
		if _, _, stderr := runCne(context.Background(), strings.Fields(args)...); !strings.HasPrefix(stderr, "cne: ") {
			t.Errorf("%s: %s", args, stderr)
		}
	}
	t.Setenv("CNE_LOG_FORMAT", "json")
	if _, _, stderr := runCne(context.Background(), "train", "--frobnicate"); !strings.HasPrefix(stderr, "{") {
		t.Errorf("from the environment: %s", stderr)
	}
}

// A message with a long name is short and says what to do.
func TestLongNames(t *testing.T) {
	t.Chdir(t.TempDir())
	long := strings.Repeat("long", 25_000)
	writeTestFile(t, "wide.csv", strings.Repeat("x", 90_000)+",y\n1,a\n2,b\n")
	for _, args := range [][]string{
		{long},
		{"config", "--" + long},
		{"config", "--set", long},
		{"config", "--set", long + "=1"},
		{"config", "--set", "train.epochs=" + long},
		{"config", "--set", "train.phases=" + strings.Repeat("[", 9000)},
		{"train", "--set", "data.path=" + long},
		{"train", "--set", "data.path=" + strings.Repeat("long/", 20_000)},
		{"train", "--set", "data.path=wide.csv", "--set", "data.label_column=z"},
		{"train", "--resume", long},
		{"plot", long},
		{"plot", "wide.csv", "--label-column", strings.Repeat("long ", 20_000)},
		{"project", "--model", long, long, "-o", "x.npy"},
		{"spectrum", "--s", long},
	} {
		code, _, stderr := runCne(context.Background(), append(args, "--quiet")...)
		if code == exitOK || len(stderr) > 1000 || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%.40q: exit code %d, %d bytes: %.1000s", args, code, len(stderr), stderr)
		}
	}
}
