package points

import (
	"os/exec"
	"strings"
	"testing"
)

// Shells must pass on the flags that messages name as they are meant.
func TestSettingInShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		want   string
		values []string
	}{
		{"k=a", []string{"a"}},
		{"k=two words,b", []string{"two words", "b"}},
		{"k=cost $US", []string{"cost $US"}},
		{"k=it's", []string{"it's"}},
		{"k=it's $1", []string{"it's $1"}},
		{`k=a\b;c{d}`, []string{`a\b;c{d}`}},
		{`k=["Mother's age, $HOME","\x60x"]`, []string{"Mother's age, $HOME", "\x60x"}},
		{"data.names=[a], #1 *", []string{"[a], #1 *"}},
		{"data.names=50 % \"q\" & more!", []string{"50 % \"q\" & more!"}},
		{`data.names="\"q\""`, []string{`"q"`}},
		{`data.names="null"`, []string{"null"}},
		{`data.names="a\nb"`, []string{"a\nb"}},
	} {
		key, _, _ := strings.Cut(c.want, "=")
		flag, ok := strings.CutPrefix(setting(key, c.values...), "--set ")
		got, err := exec.Command("sh", "-c", "printf %s "+flag).Output()
		if c.want = strings.ReplaceAll(c.want, `\x60`, "`"); !ok || err != nil || string(got) != c.want {
			t.Errorf("%q: the shell makes %q of %s, want %q (%v)", c.values, got, flag, c.want, err)
		}
	}
}
