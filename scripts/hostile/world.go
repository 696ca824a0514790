package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// A world is the folder of a trial, and what happens in it. Its methods end the trial
// when something is not as it has to be.
//
// By custom, results are written to files and folders whose names begin with "run" or
// "out"; everything else counts as input, which no command may touch.
type world struct {
	r       *runner
	ctx     context.Context
	dir     string
	rng     *rand.Rand
	asRoot  bool     // run commands as this process's user
	env     []string // added to the commands' environment
	log     []string // command lines and their last messages
	killed  bool     // a command was killed, and may have left a temporary file, until another succeeds
	fault   string
	skipped string

	commands int
}

// newWorld makes the folder of a trial.
func (r *runner) newWorld(ctx context.Context, name string) (*world, error) {
	dir, err := os.MkdirTemp(r.root, "trial")
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	w := &world{r: r, ctx: ctx, dir: dir, rng: rand.New(rand.NewPCG(r.seed, h.Sum64()))}
	return w, os.Chmod(dir, 0o777)
}

// protect runs a function that may call fail or skip, and returns when it has ended.
func (w *world) protect(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// fail ends the trial with a fault.
func (w *world) fail(format string, args ...any) {
	w.fault = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// skip ends the trial, which this machine cannot make.
func (w *world) skip(format string, args ...any) {
	w.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// must ends the trial if the harness itself meets an error.
func (w *world) must(err error) {
	if err != nil {
		w.fail("the trial cannot be made: %v", err)
	}
}

// remove deletes the folder, of which parts may have been made unreadable.
func (w *world) remove() {
	_ = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o777)
		}
		return nil
	})
	os.RemoveAll(w.dir)
}

// path returns that of a file of the world.
func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// write makes a file, and the folders around it.
func (w *world) write(name string, content []byte) {
	path := w.path(name)
	if dir := filepath.Dir(path); dir != w.dir {
		w.must(os.MkdirAll(dir, 0o777))
		for ; dir != w.dir; dir = filepath.Dir(dir) {
			w.must(os.Chmod(dir, 0o777))
		}
	}
	w.must(os.WriteFile(path, content, 0o666))
	w.must(os.Chmod(path, 0o666))
}

// text makes a file of text.
func (w *world) text(name, content string) { w.write(name, []byte(content)) }

// read returns the content of a file.
func (w *world) read(name string) []byte {
	content, err := os.ReadFile(w.path(name))
	if err != nil {
		w.fail("a file is missing: %v", err)
	}
	return content
}

// exists tells whether there is a file or folder.
func (w *world) exists(name string) bool {
	_, err := os.Lstat(w.path(name))
	return err == nil
}

// A result is what a command line has left.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// last returns the last line of stderr.
func (r result) last() string {
	lines := strings.Split(strings.TrimRight(r.stderr, "\n"), "\n")
	return lines[len(lines)-1]
}

// ok runs command lines that have to succeed.
func (w *world) ok(script string) result {
	res := w.run(script, effects{})
	if res.code != 0 {
		w.fail("exit code %d: %s", res.code, res.last())
	}
	return res
}

// says runs command lines that have to succeed and to say something on stderr.
func (w *world) says(script, message string) result {
	res := w.ok(script)
	if !regexp.MustCompile(message).MatchString(res.stderr) {
		w.fail("nothing on stderr matches %q", message)
	}
	return res
}

// refused runs a command line that has to fail with exit code 1, with a message, and
// without a trace.
func (w *world) refused(script, message string) result {
	return w.ends(script, 1, message, effects{refused: true})
}

// misused runs a command line that is wrong: exit code 2.
func (w *world) misused(script, message string) result {
	return w.ends(script, 2, message, effects{refused: true})
}

// breaks runs a command line that has to fail with exit code 1 and a message when it has
// already written some of its results.
func (w *world) breaks(script, message string) result {
	return w.ends(script, 1, message, effects{})
}

// ends runs a command line that has to end with an exit code, and with a last line on
// stderr that matches.
func (w *world) ends(script string, code int, message string, e effects) result {
	res := w.run(script, e)
	if res.code != code {
		w.fail("exit code %d, not %d: %s", res.code, code, res.last())
	}
	if !regexp.MustCompile(message).MatchString(res.last()) {
		w.fail("the last message does not match %q: %s", message, res.last())
	}
	return res
}

// effects says what a command line may do.
type effects struct {
	refused bool  // it changes nothing if it fails
	codes   []int // exit codes besides 0, 1 and 2
	dirty   bool  // other programs in it write files of their own, and messages
}

// run runs command lines by bash in the folder, with the program as cne, and checks what
// holds for all of them.
func (w *world) run(script string, e effects) result {
	w.commands++
	before := w.snapshot()
	res, err := w.start(script)
	entry := "$ " + shorten(script, 1000)
	if res.stderr != "" {
		entry += "\n" + shorten(res.last(), 1000)
	}
	w.log = append(w.log, entry)
	if err != nil {
		w.fail("%v", err)
	}
	switch res.code {
	case 128 + 9:
		w.killed = true
	case 0:
		w.killed = false
	}
	if fault := w.check(res, e); fault != "" {
		w.fail("%s", fault)
	}
	if fault := w.compare(before, w.snapshot(), res, e); fault != "" {
		w.fail("%s", fault)
	}
	return res
}

// start runs command lines and returns what they left, or an error if they got stuck.
func (w *world) start(script string) (result, error) {
	ctx, cancel := context.WithTimeout(w.ctx, w.r.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = w.dir
	cmd.Env = append([]string{
		"PATH=" + w.r.bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME=" + w.dir, "LANG=C.UTF-8",
	}, w.env...)
	user := w.r.user
	if w.asRoot {
		user = nil
	}
	ownGroup(cmd, user)
	// Files in place of pipes, which children that are left would keep open.
	var streams [2]*os.File
	for i := range streams {
		f, err := os.CreateTemp(w.r.root, "stream")
		if err != nil {
			return result{}, err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		streams[i] = f
	}
	cmd.Stdout, cmd.Stderr = streams[0], streams[1]
	begun := time.Now()
	err := cmd.Run()
	res := result{took: time.Since(begun)}
	if cmd.Process != nil {
		_ = endGroup(cmd) // what the script has left in the background
	}
	for i, s := range []*string{&res.stdout, &res.stderr} {
		content, err := os.ReadFile(streams[i].Name())
		if err != nil {
			return res, err
		}
		*s = string(content)
	}
	if ctx.Err() != nil && w.ctx.Err() == nil {
		return res, fmt.Errorf("stuck: it did not end within %v", w.r.limit)
	}
	if cmd.ProcessState == nil {
		return res, err
	}
	res.code = cmd.ProcessState.ExitCode()
	if res.code < 0 { // bash itself was ended by a signal
		res.code = 128 + 9
	}
	return res, nil
}

// crashes are words that only a crash of the program prints.
var crashes = []string{"goroutine ", "panic", "fatal error", "runtime error", "internal error", "SIGSEGV", "unexpected fault"}

// longestLine is the number of characters that a line on stderr may have.
const longestLine = 1500

// check returns what is wrong with the way in which command lines ended, or "".
func (w *world) check(res result, e effects) string {
	if res.code != 0 && res.code != 1 && res.code != 2 && !slices.Contains(e.codes, res.code) {
		return fmt.Sprintf("exit code %d: %s", res.code, res.last())
	}
	for _, word := range crashes {
		for stream, text := range map[string]string{"stdout": res.stdout, "stderr": res.stderr} {
			if i := strings.Index(text, word); i >= 0 {
				return fmt.Sprintf("%q on %s: %s", word, stream, shorten(text[max(0, i-100):], 300))
			}
		}
	}
	if e.dirty {
		return ""
	}
	complaints := 0
	for line := range strings.Lines(res.stderr) {
		line = strings.TrimRight(line, "\n")
		if n := utf8.RuneCountInString(line); n > longestLine {
			return fmt.Sprintf("a line of %d characters on stderr: %s", n, shorten(line, 200))
		}
		if !utf8.ValidString(line) {
			return fmt.Sprintf("a line on stderr that is no UTF-8: %q", line)
		}
		if i := strings.IndexFunc(line, func(c rune) bool { return c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) }); i >= 0 {
			return fmt.Sprintf("a control character on stderr: %q", line)
		}
		if strings.HasPrefix(line, "cne: ") {
			complaints++
		}
	}
	failed := res.code == 1 || res.code == 2
	last := res.last()
	switch {
	case failed && strings.HasPrefix(last, "{"):
		var record map[string]any
		if err := json.Unmarshal([]byte(last), &record); err != nil {
			return fmt.Sprintf("the last line is no JSON (%v): %s", err, last)
		}
	case failed && !strings.HasPrefix(last, "cne: "):
		return fmt.Sprintf("it failed, but the last line on stderr does not begin with cne: %q", last)
	case failed && complaints != 1:
		return fmt.Sprintf("it failed with %d lines that begin with cne, not one", complaints)
	case !failed && res.code == 0 && complaints > 0:
		return fmt.Sprintf("it succeeded, but complained: %s", last)
	}
	return ""
}

// snapshot returns a digest of each file and folder.
func (w *world) snapshot() map[string]string {
	found := make(map[string]string)
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(w.dir, path)
		name = filepath.ToSlash(name)
		switch {
		case name == ".":
			return nil
		case err != nil && d != nil && d.IsDir():
			found[name] = "unreadable"
			return fs.SkipDir
		case err != nil:
			found[name] = "unreadable"
			return nil
		}
		info, err := d.Info()
		if err != nil {
			found[name] = "unreadable"
			return nil
		}
		found[name] = info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			found[name] += " to " + to
		case d.Type().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				found[name] += " unreadable"
				return nil
			}
			found[name] += fmt.Sprintf(" %x", sha256.Sum256(content))
		}
		return nil
	})
	w.must(err)
	return found
}

// isResult tells whether results may be written to a file.
func isResult(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.HasPrefix(first, "run") || strings.HasPrefix(first, "out")
}

// isCache tells whether a file is what a run keeps for the next even if it is refused, or
// the folder of nothing but that.
func isCache(name string, all map[string]string) bool {
	if strings.HasSuffix(name, "/cache.safetensors") {
		return true
	}
	if _, there := all[name+"/cache.safetensors"]; !there {
		return false
	}
	for other := range all {
		if strings.HasPrefix(other, name+"/") && other != name+"/cache.safetensors" {
			return false
		}
	}
	return true
}

// temporary matches the names of files that are still being written.
var temporary = regexp.MustCompile(`(^|/)\.cne-[^/]*$|\.tmp$`)

// compare returns what command lines have done to files although they may not, or "".
func (w *world) compare(before, after map[string]string, res result, e effects) string {
	if e.dirty {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		is, there := after[name]
		switch {
		case !there && temporary.MatchString(name):
			continue
		case isResult(name) && !(e.refused && res.code != 0), strings.HasSuffix(name, "/cache.safetensors"):
			continue
		case !there:
			return fmt.Sprintf("the file %s is lost", name)
		case is != before[name]:
			return fmt.Sprintf("the file %s has changed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if temporary.MatchString(name) && !w.killed {
			return fmt.Sprintf("the temporary file %s is left", name)
		}
		if _, there := before[name]; there {
			continue
		}
		switch {
		case e.refused && res.code != 0 && !isCache(name, after):
			return fmt.Sprintf("it was refused, but has made %s", name)
		case !isResult(name) && !temporary.MatchString(name):
			return fmt.Sprintf("it has made %s, which nobody asked for", name)
		}
	}
	return ""
}

// same fails unless two files have the same content.
func (w *world) same(a, b string) {
	if !bytes.Equal(w.read(a), w.read(b)) {
		w.fail("%s and %s differ", a, b)
	}
}

// differ fails if two files have the same content, and with it the trials that compare
// such files prove nothing.
func (w *world) differ(a, b string) {
	if bytes.Equal(w.read(a), w.read(b)) {
		w.fail("%s and %s are the same", a, b)
	}
}

// A base is a run that nobody has disturbed, with which others are compared.
type base struct {
	once sync.Once
	w    *world
	took time.Duration
}

// base returns the folder in which a script has run undisturbed, and how long it took.
// It runs once however many trials ask for it.
func (w *world) base(name string, files func(*world), script string) (dir string, took time.Duration) {
	w.r.mu.Lock()
	b := w.r.bases[name]
	if b == nil {
		b = new(base)
		w.r.bases[name] = b
	}
	w.r.mu.Unlock()
	b.once.Do(func() {
		u, err := w.r.newWorld(w.ctx, name)
		if err != nil {
			b.w = &world{fault: err.Error()}
			return
		}
		b.w = u
		u.protect(func() {
			files(u)
			b.took = u.ok(script).took
		})
	})
	if b.w.fault != "" {
		w.fail("the undisturbed run %s: %s", name, b.w.fault)
	}
	return b.w.dir, b.took
}

// sameAs fails unless files are those of another folder.
func (w *world) sameAs(dir string, names ...string) {
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(dir, name))
		w.must(err)
		if !bytes.Equal(w.read(name), want) {
			w.fail("%s is not that of the undisturbed run", name)
		}
	}
}

// shorten returns the beginning of a text.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// quote returns a word of a command line for bash.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// have fails unless there are files, none of them empty.
func (w *world) have(names ...string) {
	for _, name := range names {
		if info, err := os.Stat(w.path(name)); err != nil || info.Size() == 0 {
			w.fail("%s is missing or empty", name)
		}
	}
}

// tool skips the trial if a program is not installed.
func (w *world) tool(name string) {
	if _, err := exec.LookPath(name); err != nil {
		w.skip("there is no %s", name)
	}
}

// mkdir makes a folder in which every user may write.
func (w *world) mkdir(name string) error {
	if err := os.MkdirAll(w.path(name), 0o777); err != nil {
		return err
	}
	return os.Chmod(w.path(name), 0o777)
}

// removeFile removes a file if it is there.
func (w *world) removeFile(name string) error { return os.RemoveAll(w.path(name)) }
