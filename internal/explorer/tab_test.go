package explorer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cne/data"
	"cne/internal/plot"
)

// The tests of pages use them as people do, in a Chromium without a
// window, if BROWSER_TESTS is set, as .ci/run does.

// closeBrowser ends the browser that all tests share.
var closeBrowser = func() {}

// chromium is that browser, started by the first test.
var chromium = sync.OnceValues(func() (context.Context, error) {
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.NoSandbox, // which containers do not allow
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("use-angle", "swiftshader"), // WebGL without a graphics card
		chromedp.Flag("enable-unsafe-swiftshader", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("allow-pre-commit-input", true), // keys and clicks before the first picture count, too
	)...)
	ctx, closeTab := chromedp.NewContext(allocator)
	closeBrowser = func() { closeTab(); end() }
	return ctx, chromedp.Do(ctx)
})

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// spare holds tabs that no test uses now. To open a tab takes longer than most tests.
var spare = make(chan *target, 8)

// A target is a tab of the browser.
type target struct {
	ctx   context.Context
	close func()
}

// take returns a tab, which shows nothing or what another test has shown.
func take(browser context.Context) (*target, error) {
	select {
	case o := <-spare:
		return o, nil
	default:
		ctx, closeTab := chromedp.NewContext(browser)
		return &target{ctx, closeTab}, chromedp.Do(ctx) // opens it, for longer than a test
	}
}

// giveBack makes a tab ready for the next test, or closes it.
func (o *target) giveBack(script cdppage.ScriptIdentifier) {
	away := input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved}
	_, err := chromedp.Call(o.ctx, cdppage.RemoveScriptToEvaluateOnNewDocument, cdppage.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: script})
	if err == nil {
		_, err = chromedp.Call(o.ctx, input.DispatchMouseEvent, away)
	}
	if err == nil {
		select {
		case spare <- o:
			return
		default:
		}
	}
	o.close()
}

// A tab shows a page.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string // errors, and requests for anything but the file
}

// How a tab is.
type setting struct {
	width, height int64 // 800 × 560 by default
	phone, dark   bool
	before        string // a script that runs before the page's
	first         bool   // visit, which begins with a hint
}

// show opens a page. When the test ends, nothing may have gone wrong in it.
func show(t *testing.T, p *Page, s setting) *tab {
	t.Helper()
	if os.Getenv("BROWSER_TESTS") == "" {
		t.Skip("BROWSER_TESTS=1 tests pages in Chromium")
	}
	browser, err := chromium()
	must(t, err)
	path := filepath.Join(t.TempDir(), "page.html")
	must(t, os.WriteFile(path, []byte(write(t, p)), 0o666))
	opened, err := take(browser)
	must(t, err)
	ctx, deaf := context.WithCancel(opened.ctx)
	script := cdppage.ScriptIdentifier("")
	b := &tab{t: t, ctx: ctx, url: "file://" + filepath.ToSlash(path)}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Error(problem)
		}
		deaf()
		if t.Failed() {
			opened.close()
		} else {
			opened.giveBack(script)
		}
	})
	must(t, chromedp.Listen(ctx, b.listen))
	ratio := map[bool]float64{false: 1, true: 2}[s.phone]
	call(b, runtime.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: cmp.Or(s.width, 800), Height: cmp.Or(s.height, 560), DeviceScaleFactor: ratio, Mobile: s.phone})
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: s.phone, MaxTouchPoints: 2})
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}) // as if no other tab were in front
	b.prefer(s.dark)
	added, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: ownStorage + map[bool]string{false: "localStorage.setItem('cne-hint', 'seen');"}[s.first] + s.before})
	must(t, err)
	script = added.Identifier
	b.run(chromedp.Navigate(b.url))
	return b
}

// ownStorage gives a page a storage of its own. The browser has one for all files, from
// which a test would get the theme that another chose a moment ago.
const ownStorage = `{
  const kept = new Map();
  const value = { getItem: (key) => kept.get(key) ?? null, setItem: (key, v) => { kept.set(key, String(v)); }, clear: () => { kept.clear(); } };
  Object.defineProperty(window, "localStorage", { value, configurable: true });
}
`

// prefer has the system prefer a theme.
func (b *tab) prefer(dark bool) {
	theme := map[bool]string{false: "light", true: "dark"}[dark]
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
}

// listen takes note of what must not happen.
func (b *tab) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprint("an error: ", e.ExceptionDetails.Text)
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			problem += " " + thrown.Description
		}
	case *runtime.EventConsoleAPICalled:
		for _, a := range e.Args {
			problem += " " + string(a.Value) + a.Description
		}
		// Software graphics warn of being slow.
		if e.Type != runtime.ConsoleAPICalledTypeError && (e.Type != runtime.ConsoleAPICalledTypeWarning || strings.Contains(problem, "GL Driver Message")) {
			return
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; url != b.url && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			problem = "a request for " + url
		}
	}
	if problem != "" {
		b.mu.Lock()
		b.problems = append(b.problems, problem)
		b.mu.Unlock()
	}
}

// forgive forgets problems that a test has brought about.
func (b *tab) forgive(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = slices.DeleteFunc(b.problems, func(p string) bool { return strings.Contains(p, problem) })
}

// run carries out steps, which may take a minute together.
func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	must(b.t, chromedp.Do(ctx, steps...))
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
}

// get evaluates an expression.
func get[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// do runs statements.
func (b *tab) do(statements string) {
	b.t.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](statements))
}

// until waits for an expression to become true.
func (b *tab) until(expression string) {
	b.t.Helper()
	if !b.expect("in the end", "Boolean("+expression+")", "true") {
		b.t.FailNow()
	}
}

// expect waits for an expression to become what it shall be, looking at every picture: a
// page under load takes its time to hear of the mouse and of keys.
func (b *tab) expect(what, expression, want string) bool {
	b.t.Helper()
	got := get[string](b, fmt.Sprintf(`new Promise((done) => {
	  const end = performance.now() + 20000;
	  const look = () => {
	    const got = String(%s);
	    if (got === %q || performance.now() > end) done(got); else requestAnimationFrame(look);
	  };
	  look();
	})`, expression, want))
	if got != want {
		b.t.Errorf("%s: %s is %s, want %s", what, expression, got, want)
	}
	return got == want
}

// settle waits until what happened so far has been drawn.
func (b *tab) settle() {
	b.t.Helper()
	get[bool](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// ready waits for a picture with everything on it, or without what cannot be read.
func (b *tab) ready() *tab {
	b.t.Helper()
	b.until("window.cne && cne.settled && (cne.complete || !document.getElementById('without').hidden)")
	b.settle()
	return b
}

// says compares the words of an element.
func (b *tab) says(selector, want string) {
	b.t.Helper()
	b.expect("words", fmt.Sprintf(`document.querySelector(%q).innerText.trim().replace(/\s+/g, " ")`, selector), want)
}

// contains compares parts of the words of an element.
func (b *tab) contains(selector string, parts ...string) {
	b.t.Helper()
	got := get[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
	for _, part := range parts {
		if !strings.Contains(got, part) {
			b.t.Errorf("%s says %q, which lacks %q", selector, got, part)
		}
	}
}

// at returns where a row is in the window.
func (b *tab) at(row int) (x, y float64) {
	b.t.Helper()
	p := get[[]float64](b, fmt.Sprintf("(() => { const box = document.getElementById('points').getBoundingClientRect(), p = cne.place(%d); return [box.left + p[0], box.top + p[1]]; })()", row))
	return p[0], p[1]
}

// moved compares how far a row has come from a place.
func (b *tab) moved(row int, x, y, dx, dy float64) {
	b.t.Helper()
	if x1, y1 := b.at(row); math.Hypot(x1-x-dx, y1-y-dy) > 1 {
		b.t.Errorf("row %d has moved by %v, %v, want %v, %v", row, x1-x, y1-y, dx, dy)
	}
}

// pixel returns the colour that is drawn at a row's place.
func (b *tab) pixel(row int) string {
	b.t.Helper()
	c := get[[]int](b, fmt.Sprintf("cne.pixel(...cne.place(%d))", row))
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2])
}

// colour compares what is drawn at a row's place with a colour; the ground may shine
// through.
func (b *tab) colour(what string, row int, want string) {
	b.t.Helper()
	var g, w [3]int
	got := b.pixel(row)
	_, _ = fmt.Sscanf(got+want, "#%02x%02x%02x#%02x%02x%02x", &g[0], &g[1], &g[2], &w[0], &w[1], &w[2])
	for k := range g {
		if max(g[k]-w[k], w[k]-g[k]) > 45 {
			b.t.Errorf("%s: row %d is drawn in %s, want about %s", what, row, got, want)
			return
		}
	}
}

// keys are the words for keys that type nothing.
var keys = map[string]string{"Right": kb.ArrowRight, "Left": kb.ArrowLeft, "Up": kb.ArrowUp, "Down": kb.ArrowDown, "Home": kb.Home, "End": kb.End, "Enter": kb.Enter, "Escape": kb.Escape, "Space": " "}

// key presses a key. Unlike chromedp.KeyEvent, it leaves what the key types to the
// browser, which does not type where the page has a use of its own for it.
func (b *tab) key(name string) {
	b.t.Helper()
	name, shifted := strings.CutPrefix(name, "shift+")
	events := kb.Encode([]rune(cmp.Or(keys[name], name))[0])
	down, up := events[0], events[len(events)-1]
	if len(events) == 3 {
		down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
	}
	down.Type = input.DispatchKeyEventTypeKeyDown
	for _, p := range []*input.DispatchKeyEventParams{down, up} {
		if shifted {
			p.Modifiers |= int64(chromedp.ModifierShift)
		}
		call(b, input.DispatchKeyEvent, *p)
	}
}

// after does something – clicks on an element, presses keys, types into the search, hovers
// over a row or over none, chooses a column, runs a statement, or several of all but the
// last, with semicolons between – and waits for expressions to get their values.
func (b *tab) after(actions string, expected ...string) {
	b.t.Helper()
	steps := []string{actions}
	if !strings.HasPrefix(actions, "do ") {
		steps = strings.Split(actions, "; ")
	}
	for _, step := range steps {
		switch verb, what, _ := strings.Cut(step, " "); verb {
		case "click":
			b.run(chromedp.Click(chromedp.CSS(what)))
		case "key":
			b.key(what)
		case "find":
			b.do("document.getElementById('query').value = ''")
			b.run(chromedp.Focus(chromedp.CSS("#query")), chromedp.SendKeys(chromedp.CSS("#query"), what))
		case "hover":
			row, err := strconv.Atoi(what)
			must(b.t, err)
			b.hover(row)
		case "away":
			b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, 400, 550)
		case "choose":
			b.do("{ const choice = document.getElementById('column'); choice.value = '" + what + "'; choice.dispatchEvent(new Event('change')); }")
		case "do":
			b.do(what)
		}
		b.settle()
	}
	for i := 0; i < len(expected); i += 2 {
		b.expect(actions, expected[i], expected[i+1])
	}
}

// hover moves the mouse to a row, again and a little further if the page finds none
// there: under load, a frame of what moved the points before may forget it.
func (b *tab) hover(row int) {
	b.t.Helper()
	for try := range 4 {
		x, y := b.at(row)
		b.mouse(input.DispatchMouseEventTypeMouseMoved, 0, x+0.5*float64(try), y)
		b.settle()
		if get[int](b, "cne.hovered") >= 0 {
			return
		}
	}
}

func (b *tab) mouse(kind input.DispatchMouseEventType, modifiers int64, x, y float64) {
	b.t.Helper()
	p := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Modifiers: modifiers}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		p.Button, p.ClickCount = input.MouseButtonLeft, 1
	}
	call(b, input.DispatchMouseEvent, p)
}

// wheel turns the wheel at a row, upwards below 0.
func (b *tab) wheel(row int, by float64) {
	b.t.Helper()
	x, y := b.at(row)
	call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: 1e-9, DeltaY: by}) // a DeltaX of 0 would be left out
}

// drag draws with the button pressed through places, x and y alternating.
func (b *tab) drag(modifiers int64, places ...float64) {
	b.t.Helper()
	b.mouse(input.DispatchMouseEventTypeMouseMoved, modifiers, places[0], places[1])
	b.mouse(input.DispatchMouseEventTypeMousePressed, modifiers, places[0], places[1])
	for i := 2; i < len(places); i += 2 {
		for step := 1.0; step <= 4; step++ {
			call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, Modifiers: modifiers, Button: input.MouseButtonLeft, Buttons: 1,
				X: places[i-2] + (places[i]-places[i-2])*step/4, Y: places[i-1] + (places[i+1]-places[i-1])*step/4})
		}
	}
	b.mouse(input.DispatchMouseEventTypeMouseReleased, modifiers, places[len(places)-2], places[len(places)-1])
	b.settle()
}

// three returns three groups of ten points, far from each other, and the same
// with the groups turned by one place and ten times as large.
func three() *Page {
	first, second := data.NewMatrix(30, 2), data.NewMatrix(30, 2)
	classes := make([]int32, 30)
	corners := [][2]float64{{-10, -8}, {10, -8}, {0, 8}}
	for i := range 30 {
		g := i % 3
		classes[i] = int32(g)
		sin, cos := math.Sincos(float64(i))
		for k, c := range []float64{cos, sin} {
			first.Row(i)[k] = float32(corners[g][k] + 1.5*c)
			second.Row(i)[k] = float32(10 * (corners[(g+1)%3][k] + 1.5*c))
		}
	}
	return &Page{
		Title: "Three groups", Slider: "s", Colouring: plot.Colouring{Classes: classes, ClassNames: []string{"ant", "bee", "cat"}},
		Views: []View{
			{Name: "s = 0", Embedding: first, Facts: []Fact{{Name: "kNN recall", Value: "0.1"}, {Name: "loss", Value: "7"}}},
			{Name: "s = 1", Embedding: second, Facts: []Fact{{Name: "kNN recall", Value: "0.2"}}},
			{Name: "s = 2", Embedding: first, Facts: []Fact{{Name: "kNN recall", Value: "0.3"}}},
		},
	}
}

// classInk is the colour of a class in the light theme, or in the dark one.
func classInk(class, theme int) string { return inkOf(plot.ClassColour(class))[theme] }

// valueInk is the colour at a place of the scale of values, from 0 to 1.
func valueInk(t float64) ink { return inkOf(plot.ValueColour(t)) }
