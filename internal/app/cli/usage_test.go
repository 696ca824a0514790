package cli

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cne/configs"
)

// What peers call by a flag has a key here, and an example that works.
func TestPeers(t *testing.T) {
	known := map[string]bool{}
	for _, p := range peers {
		for _, flag := range strings.Fields(p.flags) {
			if known[flag] {
				t.Errorf("%s is there twice", flag)
			}
			known[flag] = true
			cmd := &cobra.Command{Use: "cne", RunE: ShowHelp, SilenceErrors: true, SilenceUsage: true}
			AddFlags(configs.Train, cmd)
			Complete(cmd)
			cmd.SetArgs([]string{"--" + strings.ReplaceAll(flag, "-", "_"), "1"})
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), p.what) || !strings.Contains(err.Error(), p.example) {
				t.Errorf("--%s: %v", flag, err)
			}
			if p.key == "" {
				continue
			}
			if err := cmd.ParseFlags(strings.Fields(p.example)); err != nil {
				t.Errorf("%s: %v", p.example, err)
			} else if from, err := Sources(cmd); err != nil || len(from.Settings) != 1 || from.Settings[0].Key != p.key {
				t.Errorf("%s sets %v, %v", p.example, from.Settings, err)
			}
		}
	}
}

// Errors about a flag's value are in the program's own words.
func TestWrongValues(t *testing.T) {
	for arg, want := range map[string]string{
		"--count=many":                 `--count: got "many", want a whole number`,
		"--count=1.5":                  `--count: got "1.5", want a whole number`,
		"--count=1e99":                 "--count: got 1e99, which is too large",
		"--count=0x10":                 `--count: got "0x10", want a whole number`,
		"--size=inf":                   `--size: got "inf", want a number`,
		"--count=99999999999999999999": "--count: got 99999999999999999999, which is too large",
		"--count=":                     `--count: got "", want a whole number`,
		"--size=x":                     `--size: got "x", want a number`,
		"--size=-1e999":                "--size: got -1e999, which is too large",
		"--all=maybe":                  `--all: got "maybe", want true or false`,
		"--name=":                      "--name is empty",
		"--list=":                      "--list is empty",
		"--seed= ":                     "--seed is empty",
		"--log-format=":                "--log-format is empty",
		"--no\nflag":                   `unknown flag "--no\nflag"`,
		"--text=":                      "",
	} {
		root := &cobra.Command{Use: "cne", SilenceErrors: true, SilenceUsage: true}
		AddReportFlags(root)
		sub := &cobra.Command{Use: "sub", RunE: func(*cobra.Command, []string) error { return nil }}
		flags := sub.Flags()
		flags.Int("count", 0, "")
		flags.Float64("size", 0, "")
		flags.Bool("all", false, "")
		flags.String("name", "", "")
		flags.String("text", "", "")
		flags.StringArray("list", nil, "")
		AddKeyFlag(sub, nil, "seed", "", "seed", "")
		_ = flags.SetAnnotation("text", MayBeEmpty, nil)
		root.AddCommand(sub)
		root.SetOut(io.Discard)
		Complete(root)
		root.SetArgs([]string{"sub", arg})
		got := ""
		if err := root.Execute(); err != nil {
			got = err.Error()
		}
		if want != "" {
			want += `; see "cne sub --help"`
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", arg, got, want)
		}
	}
}

func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a1", "a2", "b [x]"} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	got := Expand([]string{"a*", "*.npy", "b [x]", "?1"})
	if want := []string{"a1", "a2", "*.npy", "b [x]", "a1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
