package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wrongValues are values that flags must refuse, in addition to "" and what their types
// imply, by the flag, or by the command and the flag. A flag that accepts any text, such
// as the name of a file to read, is not listed.
var wrongValues = map[string][]string{
	"--log-format":   {"xml", "JSON "},
	"--set":          {"seed", "=5", "sed=1", "seed=many", "seed=-1", "seed=", "train.epochs=0", "train=1", "train.lr=nan", "train.lr=1e999", "log.format=xml", "device=gpu"},
	"--seed":         {"many", "-1", "1.5", "1e30", "null"},
	"--epochs":       {"many", "0", "-1", "1.5", "1e30", "5 5", "[5]"},
	"--device":       {"gpu", "cuda:-1", "cuda:x", "CPU"},
	"--header":       {"maybe"},
	"--config":       nil,
	"--resume":       nil,
	"--output":       nil, // of runs, a folder
	"--model":        nil,
	"--data":         {"\xff"},
	"--labels":       nil,
	"--layer":        nil,
	"--obsm":         nil,
	"--images":       nil, // paths
	"--graph":        {"\xff"},
	"--against":      nil,
	"--label-column": nil,
	"--drop":         nil,
	"--names":        nil, // a column or a file
	"--color":        nil,
	"--title":        nil,
	"--columns":      {"-1"},
	"--point-size":   {"-1", "101", "NaN"},
	"--width":        {"-1", "101", "Inf", "many", "1001mm", "40in", "180px", "mm"},
	"--height":       {"-1", "101", "NaN", "many", "-7in"},
	"--grid":         {"loss.s", "loss.s,loss.s", "los.s,seed", "loss.s,", "loss.s,seed,loss.name"},
	"--s":            {"NaN", "Inf", "many"},
	"--k":            {"many", "0", "-1", "2.5"},
	"--metric":       {"cosin", "1"},
	"--pull":         {"many", "-0.1", "NaN", "1e30"},
	"--towards":      nil,
	"--loss":         {"tsne", "1"},
	"--preset":       {"best", "1"},
	"--network":      {"resnet", "true"},
	"--plot":         {"x.txt", "x"},

	"cne spectrum --s":             {"1,", ",", "1,x", "1,1", "0 1", "NaN", "101"},
	"cne spectrum --zbar":          {"1,x", "Inf"},
	"cne spectrum --m":             {"5,x", "all", "1e30"},
	"cne spectrum --pull":          {"0,x", "-1", "0,0", "NaN"},
	"cne plot --output":            {"x", "x.txt", "x.npy"},
	"cne evaluate --output":        {"x.txt"},
	"cne project --output":         {"x.txt"},
	"cne project --rows":           {"1", "2:1", "1:1", "-1:4", "x:4", "0:4:2"},
	"cne simclr project --output":  {"x.txt", "x"},
	"cne simclr evaluate --output": {"x.txt"},
	"cne simclr features --output": {"x.txt"},
}

// neededArguments are what commands cannot do without.
var neededArguments = map[string][]string{
	"cne plot":            {"none.npy"},
	"cne evaluate":        {"none.npy"},
	"cne project":         {"none.npy", "--model", "none", "--output", "x.npy"},
	"cne export":          {"x.onnx", "--model", "none"},
	"cne simclr evaluate": {"none"},
	"cne simclr project":  {"none", "--model", "none", "--output", "x.npy"},
	"cne simclr features": {"none", "none"},
}

// allCommands returns the commands below one that do something.
func allCommands(c *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, sub := range c.Commands() {
		list = append(list, allCommands(sub)...)
	}
	if c.Runnable() && !c.HasSubCommands() {
		list = append(list, c)
	}
	return list
}

// Every flag of every command refuses invalid values as wrong usage, in a line that names
// it, before anything else is checked.
func TestEveryFlagRefusesWrongValues(t *testing.T) {
	t.Chdir(t.TempDir())
	used := map[string]bool{}
	for _, c := range allCommands(newRootCommand(commands, new(bytes.Buffer), new(bytes.Buffer))) {
		path := c.CommandPath()
		words := append(strings.Fields(path)[1:], neededArguments[path]...)
		refuses := func(named string, more ...string) {
			t.Helper()
			args := append(words[:len(words):len(words)], more...)
			code, stdout, stderr := runCne(context.Background(), args...)
			if code != exitUsage || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, named) {
				t.Errorf("%q: exit code %d, stdout %.100q, stderr %.400q", args, code, stdout, stderr)
			}
		}
		refuses("--frobnicate", "--frobnicate")
		if c.Flags().Lookup("resume") != nil { // it takes the paths of points
			refuses("argument", "")
			refuses("--set seed=5", "seed=5")
		}
		if strings.HasPrefix(path, "cne completion") || path == "cne help" {
			continue // cobra's, which do not look at values
		}
		c.InheritedFlags() // adds the root's flags to the command's own
		c.Flags().VisitAll(func(f *pflag.Flag) {
			var values []string
			switch f.Value.Type() {
			case "bool":
				values = []string{"maybe", "2"}
			case "int", "float64":
				values = []string{"many", "1x", "1e999"}
			}
			name := path + " --" + f.Name
			own, known := wrongValues[name]
			if !known {
				name = "--" + f.Name
				own, known = wrongValues[name]
			}
			if used[name] = true; !known && values == nil {
				t.Errorf("%s: which values of --%s are wrong?", path, f.Name)
			}
			if f.Name != "title" { // which may be empty
				values = append(values, "")
			}
			for _, value := range append(values, own...) {
				refuses("--"+f.Name, "--"+f.Name+"="+value)
			}
		})
		if len(neededArguments[path]) == 0 {
			continue
		}
		if code, _, stderr := runCne(context.Background(), words...); code != exitFailure {
			t.Errorf("%q: exit code %d, stderr %s", words, code, stderr)
		}
	}
	for name := range wrongValues {
		if !used[name] {
			t.Errorf("there is no flag %s", name)
		}
	}
}
