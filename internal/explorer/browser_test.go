package explorer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
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

// The tests of this file use the page as people do, in a Chromium without a
// window. Where there is none they are skipped, unless BROWSER_TESTS is
// "required", as .ci/run sets it.

// browsers are the names under which Chromium and its kin are installed.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// chromium is one browser for all tests, started by the first.
var chromium struct {
	once  sync.Once
	ctx   context.Context
	close func()
	err   error
}

var errNoBrowser = errors.New("no Chromium was found: none of " + strings.Join(browsers, ", ") + " can be run; install one to test the page in it")

func TestMain(m *testing.M) {
	code := m.Run()
	if chromium.close != nil {
		chromium.close()
	}
	os.Exit(code)
}

func startChromium() {
	var path string
	for _, name := range browsers {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		chromium.err = errNoBrowser
		return
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // which containers do not allow
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("use-angle", "swiftshader"), // WebGL without a graphics card
		chromedp.Flag("enable-unsafe-swiftshader", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	)
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(allocator)
	chromium.ctx, chromium.close = ctx, func() { closeTab(); end() }
	chromium.err = chromedp.Do(ctx)
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
	width, height int64 // 1000 × 700 by default
	phone, dark   bool
	before        string // a script that runs before those of the page
}

// show opens a page. When the test ends, nothing may have gone wrong in it.
func show(t *testing.T, p *Page, s setting) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	chromium.once.Do(startChromium)
	if err := chromium.err; err != nil {
		if os.Getenv("BROWSER_TESTS") == "required" || !errors.Is(err, errNoBrowser) {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := p.Save(path); err != nil {
		t.Fatal(err)
	}
	ctx, closeTab := chromedp.NewContext(chromium.ctx)
	b := &tab{t: t, ctx: ctx, url: "file://" + filepath.ToSlash(path)}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, problem := range b.problems {
			t.Error(problem)
		}
		closeTab()
	})
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	if s.width == 0 {
		s.width, s.height = 1000, 700
	}
	ratio, theme := 1.0, "light"
	if s.phone {
		ratio = 2
	}
	if s.dark {
		theme = "dark"
	}
	call(b, runtime.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.width, Height: s.height, DeviceScaleFactor: ratio, Mobile: s.phone})
	call(b, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: s.phone, MaxTouchPoints: 2})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	// A theme that one test chose is not for the next.
	call(b, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: "try { localStorage.clear(); } catch {}\n" + s.before})
	b.run(chromedp.Navigate(b.url))
	return b
}

// listen takes note of what must not happen.
func (b *tab) listen(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = "an error: " + e.ExceptionDetails.Text
		if thrown := e.ExceptionDetails.Exception; thrown != nil {
			problem += " " + thrown.Description
		}
	case *runtime.EventConsoleAPICalled:
		var text []string
		for _, a := range e.Args {
			text = append(text, string(a.Value), a.Description)
		}
		// Software graphics warn of being slow.
		if line := strings.Join(text, " "); e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning && !strings.Contains(line, "GL Driver Message") {
			problem = "the console says: " + line
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

// timed returns a context in which one step of a test must end.
func (b *tab) timed() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, time.Minute)
}

func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.timed()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := b.timed()
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return r
}

// get evaluates an expression.
func get[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := b.timed()
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
	for begun := time.Now(); !get[bool](b, "Boolean("+expression+")"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 30*time.Second {
			b.t.Fatalf("this does not come true: %s", expression)
		}
	}
}

// settle waits until what happened so far has been drawn.
func (b *tab) settle() {
	b.t.Helper()
	get[bool](b, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
}

// text returns what an element says, once it says anything: under load, a page may be
// ready before its first layout, which innerText goes by.
func (b *tab) text(selector string) (text string) {
	b.t.Helper()
	for begun := time.Now(); text == "" && time.Since(begun) < longestWait; time.Sleep(10 * time.Millisecond) {
		text = get[string](b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
	}
	return text
}

// expect waits for an expression to become what it shall be: a page under load takes its
// time to hear of the mouse and of keys.
func (b *tab) expect(what, expression, want string) {
	b.t.Helper()
	got := ""
	for begun := time.Now(); time.Since(begun) < longestWait; time.Sleep(10 * time.Millisecond) {
		if got = get[string](b, "String("+expression+")"); got == want {
			return
		}
	}
	b.t.Errorf("%s: %s is %s, want %s", what, expression, got, want)
}

// longestWait is how long a page may take to do what it shall.
const longestWait = 10 * time.Second

// at returns where a row is in the window.
func (b *tab) at(row int) (x, y float64) {
	b.t.Helper()
	p := get[[]float64](b, fmt.Sprintf("(() => { const box = document.getElementById('points').getBoundingClientRect(), p = cne.place(%d); return [box.left + p[0], box.top + p[1]]; })()", row))
	return p[0], p[1]
}

// pixel returns the colour that is drawn at a row's place.
func (b *tab) pixel(row int) string {
	b.t.Helper()
	c := get[[]int](b, fmt.Sprintf("cne.pixel(...cne.place(%d))", row))
	return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2])
}

// colour compares what is drawn at a row's place with a colour, of which the
// ground may shine through.
func (b *tab) colour(what string, row int, want string) {
	b.t.Helper()
	got := b.pixel(row)
	for k := 1; k < 7; k += 2 {
		g, _ := strconv.ParseInt(got[k:k+2], 16, 0)
		w, _ := strconv.ParseInt(want[k:k+2], 16, 0)
		if g-w > 45 || w-g > 45 {
			b.t.Errorf("%s: row %d is drawn in %s, want about %s", what, row, got, want)
			return
		}
	}
}

// key presses a key. Unlike chromedp.KeyEvent, it leaves what the key types to
// the browser, which does not type where the page has a use of its own for it.
func (b *tab) key(key string, modifiers ...chromedp.KeyOption) {
	b.t.Helper()
	for _, r := range key {
		events := kb.Encode(r)
		down, up := events[0], events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		down.Type = input.DispatchKeyEventTypeKeyDown
		for _, p := range []*input.DispatchKeyEventParams{down, up} {
			for _, modify := range modifiers {
				modify(p)
			}
			call(b, input.DispatchKeyEvent, *p)
		}
	}
	b.settle()
}

func (b *tab) click(selector string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
	b.settle()
}

// doubleClick clicks twice, as people do.
func (b *tab) doubleClick(selector string) {
	b.t.Helper()
	p := get[[]float64](b, fmt.Sprintf("(() => { const b = document.querySelector(%q).getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()", selector))
	for count := range int64(2) {
		for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
			b.mouse(kind, p[0], p[1], func(p *input.DispatchMouseEventParams) { p.ClickCount = count + 1 })
		}
	}
	b.settle()
}

func (b *tab) mouse(kind input.DispatchMouseEventType, x, y float64, options ...func(*input.DispatchMouseEventParams)) {
	b.t.Helper()
	p := input.DispatchMouseEventParams{Type: kind, X: x, Y: y}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		p.Button, p.ClickCount = input.MouseButtonLeft, 1
	}
	for _, option := range options {
		option(&p)
	}
	call(b, input.DispatchMouseEvent, p)
}

// wheel turns the wheel at a place, upwards below 0.
func (b *tab) wheel(x, y, by float64) {
	b.t.Helper()
	call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: x, Y: y, DeltaX: 1e-9, DeltaY: by}) // a DeltaX of 0 would be left out
}

// drag draws with the button pressed through places, x and y alternating.
func (b *tab) drag(modifiers int64, places ...float64) {
	b.t.Helper()
	with := func(p *input.DispatchMouseEventParams) { p.Modifiers = modifiers }
	held := func(p *input.DispatchMouseEventParams) {
		p.Modifiers, p.Button, p.Buttons = modifiers, input.MouseButtonLeft, 1
	}
	b.mouse(input.DispatchMouseEventTypeMouseMoved, places[0], places[1], with)
	b.mouse(input.DispatchMouseEventTypeMousePressed, places[0], places[1], with)
	for i := 2; i < len(places); i += 2 {
		for step := 1.0; step <= 4; step++ {
			b.mouse(input.DispatchMouseEventTypeMouseMoved, places[i-2]+(places[i]-places[i-2])*step/4, places[i-1]+(places[i+1]-places[i-1])*step/4, held)
		}
	}
	b.mouse(input.DispatchMouseEventTypeMouseReleased, places[len(places)-2], places[len(places)-1], with)
	b.settle()
}

// ready waits for the first picture.
func (b *tab) ready() *tab {
	b.t.Helper()
	b.until("window.cne && cne.ready && cne.drawn > 0")
	return b
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
		Title: "Three groups", Slider: "s", Classes: classes, ClassNames: []string{"ant", "bee", "cat"},
		Views: []View{
			{Name: "s = 0", Embedding: first, Facts: []Fact{{"kNN recall", "0.1"}, {"loss", "7"}}},
			{Name: "s = 1", Embedding: second, Facts: []Fact{{"kNN recall", "0.2"}}},
			{Name: "s = 2", Embedding: first, Facts: []Fact{{"kNN recall", "0.3"}}},
		},
	}
}

func TestBrowserDraws(t *testing.T) {
	p := three()
	for _, dark := range []bool{false, true} {
		b := show(t, p, setting{dark: dark}).ready()
		for row := range 6 {
			b.colour("at the start", row, inkOf(plot.ClassColour(row % 3))[map[bool]int{true: 1}[dark]])
		}
		ground := map[bool]string{false: "255,255,255", true: "18,20,24"}[dark]
		b.expect("the ground", "cne.pixel(3, 3)", ground)
		b.expect("points", "cne.visible", "30")
		if got := b.text("#count"); got != "30 points" {
			t.Errorf("the heading says %q", got)
		}
		b.expect("nothing waits", "document.getElementById('loading')", "null")
		b.expect("nothing scrolls", "document.documentElement.scrollHeight <= innerHeight", "true")
	}
}

func TestBrowserSlider(t *testing.T) {
	b := show(t, three(), setting{}).ready()
	facts := func(name, text string) {
		t.Helper()
		if got := b.text("#view-name"); got != name {
			t.Errorf("the view is called %q, want %q", got, name)
		}
		if got := strings.Join(strings.Fields(b.text("#facts")), " "); got != text {
			t.Errorf("facts %q, want %q", got, text)
		}
	}
	facts("s = 0", "kNN recall 0.1 loss 7")
	x0, y0 := b.at(0)
	bar := get[float64](b, "cne.camera.perUnit")

	// A little at a time: the point is on its straight way.
	for range 10 {
		b.key(kb.ArrowRight, shift) // arrow right
	}
	b.expect("after ten small steps", "cne.t.toFixed(3)", "0.500")
	xm, ym := b.at(0)
	b.colour("half-way", 0, inkOf(plot.ClassColour(0))[0])
	facts("s = 0 → 1", "kNN recall 0.2")
	if half := get[float64](b, "cne.camera.perUnit"); math.Abs(half*half/(bar*bar/10)-1) > 0.01 {
		t.Errorf("half-way a unit has %v pixels, and %v at the beginning", half, bar)
	}

	b.key(kb.ArrowRight)
	b.until("cne.t === 1")
	b.settle()
	x1, y1 := b.at(0)
	if math.Hypot(x1-x0, y1-y0) < 100 || math.Hypot(xm-(x0+x1)/2, ym-(y0+y1)/2) > 2 {
		t.Errorf("row 0 went from %v, %v by %v, %v to %v, %v", x0, y0, xm, ym, x1, y1)
	}
	b.colour("in the second view", 0, inkOf(plot.ClassColour(0))[0])
	facts("s = 1", "kNN recall 0.2")
	if got := b.text("#scale-text"); got != "50" {
		t.Errorf("the scale bar says %s", got)
	}

	b.key(kb.Home) // home
	b.until("cne.t === 0")
	b.key(kb.End) // end
	b.until("cne.t === 2")
	b.key(kb.ArrowLeft) // arrow left
	b.until("cne.t === 1")

	b.run(chromedp.Focus(chromedp.CSS("#slider")))
	b.key(kb.ArrowUp) // of a slider, all arrows move it
	b.until("cne.t === 2")
	b.key(kb.ArrowDown)
	b.until("cne.t === 1")

	// With the mouse: the thumb from the middle to a quarter.
	box := get[[]float64](b, "(() => { const b = document.getElementById('slider').getBoundingClientRect(); return [b.left, b.top + b.height / 2, b.width]; })()")
	b.drag(0, box[0]+box[2]/2, box[1], box[0]+box[2]/4, box[1])
	if at := get[float64](b, "cne.t"); math.Abs(at-0.5) > 0.05 {
		t.Errorf("dragged to a quarter, the slider is at %v", at)
	}
	b.drag(0, box[0]+box[2]/4, box[1], box[0]+8, box[1]) // near a view is that view
	b.until("cne.t === 0")

	// Played to the end, and again from the beginning.
	b.do("document.activeElement.blur()")
	b.key(" ")
	b.expect("after space", "cne.playing", "true")
	b.until("cne.t > 0.2 && cne.t < 1")
	b.until("cne.t === 2 && !cne.playing")
	b.click("#play")
	b.until("cne.t < 0.5 && cne.playing")
	b.click("#play")
	b.expect("after a second click", "cne.playing", "false")

	// At one scale, the second view is ten times as large.
	b.click("#settings-open")
	b.click("#same")
	b.key(kb.Home)
	b.until("cne.t === 0")
	far := func() float64 {
		x0, y0 := b.at(0)
		x1, y1 := b.at(1)
		return math.Hypot(x1-x0, y1-y0)
	}
	before := far()
	b.click("#ticks span:nth-child(2)")
	b.until("cne.t === 1")
	// Between other corners: the distances of the groups differ a little.
	if r := far() / before; r < 8 || r > 12 {
		t.Errorf("at one scale the second view is %v times as large", r)
	}
}

// pictured is true once the tip shows a picture.
const pictured = "document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 1, 1).data[3] === 255"

var shift = chromedp.KeyModifiers(chromedp.ModifierShift)

func TestBrowserPointing(t *testing.T) {
	p := three()
	p.Names = make([]string, 30)
	p.HeldOut = make([]bool, 30)
	for i := range p.Names {
		p.Names[i] = fmt.Sprintf("name-%d", i)
		p.HeldOut[i] = i == 4
	}
	p.Images = &data.Images{N: 30, H: 5, W: 4, C: 1, Pixels: make([]byte, 600)}
	for i := range p.Images.Pixels {
		p.Images.Pixels[i] = byte(i)
	}
	b := show(t, p, setting{}).ready()
	x, y := b.at(4)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x+2, y)
	b.until("cne.hovered === 4")
	b.settle()
	if got := b.text("#tip"); got != "bee\nname-4\nrow 4, held out" {
		t.Errorf("the tip says %q", got)
	}
	// The very pixels of the image.
	b.until(pictured)
	got := get[[]int](b, "Array.from(document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 4, 5).data).filter((_, i) => i % 4 === 0)")
	for i, want := range p.Images.Image(4) {
		if got[i] != int(want) {
			t.Fatalf("the image is %v, want %v", got, p.Images.Image(4))
		}
	}
	tip := get[[]float64](b, "(() => { const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })()")
	if tip[0] < x && x < tip[2] && tip[1] < y && y < tip[3] {
		t.Error("the tip covers the point")
	}
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y+200)
	b.until("cne.hovered === -1 && document.getElementById('tip').hidden")

	// A click keeps it; the slider takes it along; Escape lets it go.
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	b.mouse(input.DispatchMouseEventTypeMousePressed, x, y)
	b.mouse(input.DispatchMouseEventTypeMouseReleased, x, y)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y+200)
	b.until("cne.pinned === 4 && cne.hovered === -1 && !document.getElementById('tip').hidden")
	b.key(kb.ArrowRight)
	b.until("cne.t === 1")
	b.settle()
	x1, y1 := b.at(4)
	tip = get[[]float64](b, "(() => { const b = document.getElementById('tip').getBoundingClientRect(); return [b.left, b.right, (b.top + b.bottom) / 2]; })()")
	if min(math.Abs(tip[0]-x1), math.Abs(tip[1]-x1)) > 30 || math.Abs(tip[2]-y1) > 60 {
		t.Errorf("the tip at %v stayed behind the point at %v, %v", tip, x1, y1)
	}
	b.key(kb.Escape)
	b.expect("after Escape", "cne.pinned", "-1")
}

// While the picture of a row is decoded, that of another must not stand for it.
func TestBrowserWaitsForPictures(t *testing.T) {
	const n = 600 // in two atlases
	p := &Page{Views: []View{{Embedding: normal(n, 2, 1, 0)}}, Images: noise(n, 5, 4, 1)}
	b := show(t, p, setting{before: `
	  const decode = createImageBitmap;
	  window.createImageBitmap = async (blob) => {
	    const bitmap = await decode(blob);
	    await new Promise((done) => { window.finish = done; });
	    return bitmap;
	  };`}).ready()
	for _, row := range []int{0, n - 1} {
		b.do("document.getElementById('query').value = ''")
		b.run(chromedp.Focus(chromedp.CSS("#query")), chromedp.SendKeys(chromedp.CSS("#query"), fmt.Sprint("row ", row)))
		b.key(kb.Enter)
		b.expect("the row", "cne.pinned", strconv.Itoa(row))
		b.until("window.finish")
		b.expect("there is a picture before it is decoded", pictured, "false")
		b.do("finish(); window.finish = null")
		b.until(pictured)
		if got, want := get[int](b, "document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 1, 1).data[0]"), int(p.Images.Image(row)[0]); got != want {
			t.Errorf("the picture of row %d begins with %d, want %d", row, got, want)
		}
	}
}

func TestBrowserMovesAndZooms(t *testing.T) {
	b := show(t, three(), setting{}).ready()
	x, y := b.at(7)
	before := get[float64](b, "cne.camera.scale")
	b.wheel(x, y, -400)
	b.until("cne.camera.zoom > 1.5")
	if x1, y1 := b.at(7); math.Hypot(x1-x, y1-y) > 1 {
		t.Errorf("the wheel moved the point under it from %v, %v to %v, %v", x, y, x1, y1)
	}
	b.settle()
	// The bar is as long as it says.
	bar := get[[]float64](b, "[document.getElementById('scale-bar').offsetWidth, Number(document.getElementById('scale-text').textContent) * cne.camera.perUnit]")
	if math.Abs(bar[0]-bar[1]) > 1 {
		t.Errorf("the scale bar has %v pixels, want %v", bar[0], bar[1])
	}
	b.drag(0, 300, 300, 360, 280)
	if x1, y1 := b.at(7); math.Hypot(x1-x-60, y1-y+20) > 1 {
		t.Errorf("dragged by 60, -20, the point went from %v, %v to %v, %v", x, y, x1, y1)
	}
	b.key("0")
	b.expect("after 0", "cne.camera.zoom", "1")
	if x1, y1 := b.at(7); math.Hypot(x1-x, y1-y) > 1 {
		t.Errorf("the point is not back at %v, %v but at %v, %v", x, y, x1, y1)
	}
	b.key("+")
	b.click("#zoom-in")
	if after := get[float64](b, "cne.camera.scale"); math.Abs(after/before-1.3*1.6) > 0.01 {
		t.Errorf("key and button zoom by %v", after/before)
	}
	for _, k := range []struct {
		key    string
		dx, dy float64
	}{{"d", -60, 0}, {"a", 60, 0}, {"w", 0, 60}, {"s", 0, -60}, {kb.ArrowUp, 0, 60}, {kb.ArrowDown, 0, -60}} {
		x0, y0 := b.at(7)
		b.key(k.key)
		if x1, y1 := b.at(7); math.Hypot(x1-x0-k.dx, y1-y0-k.dy) > 1 {
			t.Errorf("key %q moves the points by %v, %v, want %v, %v", k.key, x1-x0, y1-y0, k.dx, k.dy)
		}
	}
	b.click("#zoom-fit")
	b.expect("after the button", "[cne.camera.zoom, cne.camera.x, cne.camera.y]", "1,0,0")
	// What was under the pointer no longer is when a key has moved the points.
	x, y = b.at(7)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	b.until("cne.hovered === 7")
	b.key("d")
	b.expect("moved by a key", "cne.hovered", "-1")
	// As deep as it goes, two points that are 1e-5 of the whole apart still are.
	near := matrix(2, 0, 0, 1, 1, 0.5, 0.5, 0.50001, 0.5)
	b = show(t, &Page{Views: []View{{Embedding: near}}}, setting{}).ready()
	for range 30 {
		x, y := b.at(2)
		b.wheel(x, y, -240)
	}
	b.until("cne.camera.zoom === 4000")
	x2, _ := b.at(2)
	x3, _ := b.at(3)
	if want := 1e-5 * get[float64](b, "cne.camera.perUnit"); math.Abs(x3-x2-want) > 1 || want < 10 {
		t.Errorf("the points are %v pixels apart, want %v", x3-x2, want)
	}
}

// Pointing finds what is drawn there, whatever the window and its pixels are.
func TestBrowserResizes(t *testing.T) {
	b := show(t, three(), setting{}).ready()
	for range 7 {
		b.key(kb.ArrowRight, shift) // between two views
	}
	for _, to := range []struct {
		width, height int64
		ratio         float64
	}{{1000, 700, 3}, {600, 420, 3}, {600, 420, 1}, {1300, 500, 1.5}} {
		call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: to.width, Height: to.height, DeviceScaleFactor: to.ratio})
		b.settle()
		b.do("cne.pixel(0, 0)") // draws, which new pixels alone do not make happen here
		b.until(fmt.Sprintf("Math.abs(document.getElementById('points').width - document.getElementById('stage').clientWidth * %v) < 1", min(to.ratio, 2)))
		for row := range 3 {
			x, y := b.at(row)
			b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
			b.until(fmt.Sprintf("cne.hovered === %d", row))
			b.colour(fmt.Sprintf("%d×%d at %v", to.width, to.height, to.ratio), row, inkOf(plot.ClassColour(row))[0])
		}
	}
}

func TestBrowserLegend(t *testing.T) {
	b := show(t, three(), setting{}).ready()
	entry := func(k int) string { return fmt.Sprintf("#classes li:nth-child(%d) button", k+1) }
	if got := strings.Join(strings.Fields(b.text("#classes")), " "); got != "ant 10 bee 10 cat 10" {
		t.Errorf("the legend says %q", got)
	}
	away := func() { b.mouse(input.DispatchMouseEventTypeMouseMoved, 500, 690); b.until("cne.standing === null") }
	b.click(entry(1))
	away()
	b.expect("without bees", "cne.visible", "20")
	b.expect("without bees", "document.querySelector('"+entry(1)+"').ariaPressed", "false")
	if got := b.pixel(1); got != "#ffffff" {
		t.Errorf("a hidden bee is drawn in %s", got)
	}
	b.colour("without bees", 0, inkOf(plot.ClassColour(0))[0])
	if got := b.text("#count"); got != "20 of 30 points" {
		t.Errorf("the heading says %q", got)
	}
	x, y := b.at(1)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	b.settle()
	b.expect("over a hidden bee", "cne.hovered", "-1")

	b.doubleClick(entry(2))
	b.expect("after a double click", "cne.visible", "10")
	away()
	b.colour("cats alone", 2, inkOf(plot.ClassColour(2))[0])
	b.doubleClick(entry(2))
	b.expect("after another", "cne.visible", "30")
	nodes, err := chromedp.Run(b.ctx, chromedp.Nodes(chromedp.CSS(entry(0))))
	if err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.MouseClickNode(nodes[0], chromedp.ButtonModifiers(chromedp.ModifierAlt)))
	b.expect("after Alt and a click", "cne.visible", "10")
	b.click("#none")
	b.expect("after None", "cne.visible", "0")
	b.click("#all")
	b.expect("after All", "cne.visible", "30")

	// By keys: down twice, then the space bar.
	b.run(chromedp.Focus(chromedp.CSS(entry(0))))
	b.key(kb.ArrowDown)
	b.key(kb.ArrowDown)
	b.until("cne.standing === 10") // the class that is focused stands out
	b.key(" ")
	b.expect("cats hidden by key", "cne.visible", "20")
	b.expect("the space bar", "cne.playing", "false")
	b.key(kb.Enter, shift)
	b.expect("cats alone by key", "cne.visible", "10")

	// What was selected and is hidden is not exported.
	b.click("#all")
	b.do("document.activeElement.blur()")
	away()
	b.key("x")
	b.expect("all are selected", "cne.selection.length", "30")
	b.click(entry(0))
	b.expect("ants are not", "cne.selection.length", "20")
}

func TestBrowserSearch(t *testing.T) {
	p := three()
	p.Names = make([]string, 30)
	for i := range p.Names {
		p.Names[i] = fmt.Sprintf("Item %c", 'a'+i%26)
	}
	b := show(t, p, setting{}).ready()
	options := func() string {
		return strings.Join(get[[]string](b, "Array.from(document.querySelectorAll('#found li'), (e) => e.innerText.replace(/\\s+/g, ' ').trim())"), "; ")
	}
	b.key("/")
	b.expect("after /", "document.activeElement.id", "query")
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), "BEE"))
	b.expect("bees", "cne.standing", "10")
	if got := options(); got != "bee 10 points" {
		t.Errorf("bees: %q is offered", got)
	}
	b.settle()
	b.colour("bees found", 1, inkOf(plot.ClassColour(1))[0])
	b.do(`document.getElementById("query").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true }))`)
	b.expect("Enter that an input method takes", "cne.pinned", "-1")
	b.key(kb.Enter)
	b.expect("the first bee", "cne.pinned", "1")
	b.key(kb.Enter)
	b.expect("the second bee", "cne.pinned", "4")
	b.key(kb.Enter, shift)
	b.expect("back", "cne.pinned", "1")
	b.key(kb.Escape)
	b.expect("after Escape", "cne.standing", "null")

	type1 := func(text string) {
		b.do("document.getElementById('query-clear').hidden || document.getElementById('query-clear').click()")
		b.run(chromedp.Focus(chromedp.CSS("#query")), chromedp.SendKeys(chromedp.CSS("#query"), text))
	}
	type1("17")
	if got := options(); got != "row 17 cat" {
		t.Errorf("17: %q is offered", got)
	}
	b.key(kb.ArrowDown)
	b.expect("the option", "document.querySelector('#found [aria-selected=true]').innerText.startsWith('row 17')", "true")
	b.key(kb.Enter)
	b.expect("row 17", "[cne.pinned, cne.standing]", "17,1")
	b.expect("the list is closed", "document.getElementById('found').hidden && !document.getElementById('query').hasAttribute('aria-activedescendant')", "true")

	type1("item b")
	if got := options(); got != "“item b” in names 2 points; Item b bee; Item b bee" && got != "“item b” in names 2 points; Item b bee; Item b ant" {
		t.Errorf("item b: %q is offered", got)
	}
	b.expect("names", "cne.standing", "2")
	type1("nonsense")
	b.expect("nothing", "cne.standing", "0")
	if got := options(); got != "Nothing found" {
		t.Errorf("nonsense: %q is offered", got)
	}
	type1("30")
	b.expect("a row that is not there", "cne.standing", "0")

	// Of what is hidden, the search shows what was chosen.
	b.click("#classes li:nth-child(1) button")
	type1("#3")
	b.key(kb.ArrowDown)
	b.key(kb.Enter)
	b.expect("a hidden row", "[cne.visible, cne.pinned]", "30,3")
	// Zoomed in elsewhere, it is brought into sight.
	for range 12 {
		b.click("#zoom-in")
	}
	type1("row 5")
	b.key(kb.Enter)
	b.settle()
	at := get[[]float64](b, "[...cne.place(5), document.getElementById('stage').clientWidth, document.getElementById('stage').clientHeight]")
	if at[0] < 0 || at[1] < 0 || at[0] > at[2] || at[1] > at[3] {
		t.Errorf("row 5 is at %v, outside", at)
	}
}

func TestBrowserLasso(t *testing.T) {
	b := show(t, three(), setting{}).ready()
	folder := t.TempDir()
	call(b, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: folder})
	// around returns a square around the group of a row.
	around := func(group int) []float64 {
		var x, y float64
		for i := group; i < 30; i += 3 {
			px, py := b.at(i)
			x, y = x+px/10, y+py/10
		}
		const r = 60
		return []float64{x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r, x - r, y - r + 5}
	}
	rows := func(groups ...int) string {
		var out []string
		for i := range 30 {
			if slices.Contains(groups, i%3) {
				out = append(out, strconv.Itoa(i))
			}
		}
		return strings.Join(out, ",")
	}
	camera := get[string](b, "JSON.stringify(cne.camera)")
	b.drag(int64(chromedp.ModifierShift), around(2)...)
	b.expect("around the cats", "cne.selection", rows(2))
	b.expect("they stand out", "cne.standing", "10")
	b.expect("nothing moved", "JSON.stringify(cne.camera)", camera)
	if got := b.text("#selection-count"); got != "10 points" {
		t.Errorf("the panel says %q", got)
	}
	b.drag(int64(chromedp.ModifierShift|chromedp.ModifierCtrl), around(0)...)
	b.expect("with the ants", "cne.selection", rows(0, 2))
	if got := strings.Join(strings.Fields(b.text("#selection-classes")), " "); got != "ant 10 cat 10" {
		t.Errorf("the panel counts %q", got)
	}
	b.click("#download")
	want := "row\n" + strings.ReplaceAll(rows(0, 2), ",", "\n") + "\n"
	var got []byte
	for begun := time.Now(); time.Since(begun) < 20*time.Second; time.Sleep(20 * time.Millisecond) {
		if got, _ = os.ReadFile(filepath.Join(folder, "rows.csv")); len(got) == len(want) {
			break
		}
	}
	if string(got) != want {
		t.Errorf("the file is %q, want %q", got, want)
	}

	// The button, and the slider, which takes the selection along.
	b.key(kb.Escape)
	b.expect("after Escape", "cne.selection", "null")
	b.click("#lasso")
	b.drag(0, around(1)...)
	b.expect("around the bees", "cne.selection", rows(1))
	b.key(kb.End)
	b.until("cne.t === 2")
	b.expect("in another view", "cne.selection", rows(1))
	b.drag(0, 500, 60, 505, 60, 505, 65)
	b.expect("around nothing", "cne.selection", "null")
	b.key("l")
	b.drag(0, 300, 300, 320, 300)
	b.expect("without the lasso, dragging moves", "cne.camera.x !== 0", "true")

	// Found by name, selected by key.
	b.key("0")
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), "ant"))
	b.do("document.activeElement.blur()")
	b.key("x")
	b.expect("ants found", "cne.selection", rows(0))
}

// A star, whose line crosses itself, and a line that goes nowhere.
func TestBrowserLassoCrossesItself(t *testing.T) {
	p := &Page{Views: []View{{Embedding: normal(3000, 2, 1, 0)}}}
	b := show(t, p, setting{}).ready()
	box := get[[]float64](b, "(() => { const b = document.getElementById('points').getBoundingClientRect(); return [b.left, b.top]; })()")
	star := []float64{500, 100, 380, 500, 700, 260, 300, 260, 620, 500, 504, 104}
	// Before the panel of the selection makes the stage narrower.
	places := get[[][]float64](b, "Array.from({ length: 3000 }, (_, row) => cne.place(row))")
	b.drag(int64(chromedp.ModifierShift), star...)
	var want []int
	for row, at := range places {
		odd := false
		for i := range len(star) / 2 {
			k := (i + 1) % (len(star) / 2)
			ax, ay, bx, by := star[2*i]-box[0], star[2*i+1]-box[1], star[2*k]-box[0], star[2*k+1]-box[1]
			if (ay > at[1]) != (by > at[1]) && at[0] < (bx-ax)*(at[1]-ay)/(by-ay)+ax {
				odd = !odd
			}
		}
		if odd {
			want = append(want, row)
		}
	}
	if len(want) < 100 {
		t.Fatalf("%d points are in the star", len(want))
	}
	if got := get[[]int](b, "cne.selection"); !slices.Equal(got, want) {
		t.Errorf("%d points are selected, want the %d in the tips of the star", len(got), len(want))
	}
	b.drag(int64(chromedp.ModifierShift), 300, 300, 700, 300, 300, 300)
	b.expect("on a line", "cne.selection", "null")
}

func TestBrowserThemes(t *testing.T) {
	b := show(t, three(), setting{dark: true}).ready()
	b.expect("the system's", "cne.theme", "dark")
	b.key("t")
	b.expect("after T", "cne.theme", "light")
	b.expect("after T", "cne.pixel(3, 3)", "255,255,255")
	b.colour("after T", 0, inkOf(plot.ClassColour(0))[0])
	b.click("#theme")
	b.expect("after the button", "cne.theme", "dark")
	b.colour("after the button", 0, inkOf(plot.ClassColour(0))[1])
	// Should the system change its mind, it counts for those who have made no choice.
	b.do("try { localStorage.clear(); } catch {}")
	b.run(chromedp.SendKeys(chromedp.CSS("#query"), "row 0"))
	b.key(kb.Enter)
	for k, theme := range []string{"light", "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
		b.until("cne.theme === '" + theme + "'")
		b.settle()
		want := inkOf(plot.ClassColour(0))[k]
		b.colour("after the system", 0, want)
		b.expect("the tip after the system", `"#" + getComputedStyle(document.querySelector("#tip .dot")).backgroundColor.match(/\d+/g).map((v) => Number(v).toString(16).padStart(2, "0")).join("")`, want)
	}
	// Everything that has a text: selection, settings and what was found.
	b.key("x")
	b.run(chromedp.Focus(chromedp.CSS("#query")), chromedp.SendKeys(chromedp.CSS("#query"), " "))
	b.do("document.getElementById('settings-open').click()")
	// Text stands off from its ground in both, by the WCAG's measure.
	const contrast = `(() => {
	  const light = (c) => { const v = c.match(/\d+(\.\d+)?/g).slice(0, 3).map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
	  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
	  const all = Array.from(document.querySelectorAll("h1, h2, p, dt, dd, span, strong, small, button, input"), (e) => {
	    if (!e.innerText && !e.placeholder || !e.checkVisibility() || e.closest("[hidden], .bare")) return [99, ""];
	    const a = light(getComputedStyle(e).color), b = light(ground(e));
	    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML];
	  });
	  return all.filter((a) => a[0] < 4.5).map(String);
	})()`
	for range 2 {
		time.Sleep(200 * time.Millisecond) // colours change smoothly
		if weak := get[[]string](b, contrast); len(weak) > 0 {
			t.Errorf("theme %s: text of less than the contrast 4.5: %q", get[string](b, "cne.theme"), weak)
		}
		b.do("document.getElementById('theme').click()")
	}
}

// Everything that can be used has a name and can be reached by keys.
func TestBrowserAccessibility(t *testing.T) {
	p := three()
	p.Images = noise(30, 4, 4, 3)
	b := show(t, p, setting{}).ready()
	b.key("x")
	nameless := get[[]string](b, `Array.from(document.querySelectorAll("button, input, canvas, dialog, [role]"), (e) => {
	  if (e.closest("[hidden], [aria-hidden=true], .unseen") || e.closest("#tip, .card button canvas") || e.matches("button canvas")) return "";
	  const labelled = e.getAttribute("aria-labelledby");
	  const name = e.getAttribute("aria-label") || (labelled && document.getElementById(labelled).textContent) || e.textContent.trim() || (e.labels && e.labels[0]?.textContent) || e.title;
	  return name || e.matches("[role=status], [role=search]") ? "" : e.outerHTML;
	}).filter(Boolean)`)
	if len(nameless) > 0 {
		t.Errorf("without a name: %q", nameless)
	}
	reached := map[string]bool{}
	b.do("document.activeElement.blur()")
	for range 60 {
		b.run(chromedp.KeyEvent(kb.Tab))
		reached[get[string](b, "document.activeElement.closest('[id]')?.id ?? ''")] = true
	}
	for _, id := range []string{"query", "lasso", "settings-open", "theme", "help-open", "side-open", "points", "zoom-in", "zoom-fit", "play", "slider", "all", "classes", "download", "selection-clear", "selection-images"} {
		if !reached[id] {
			t.Errorf("Tab does not reach #%s", id)
		}
	}
	b.do("document.activeElement.blur()")
	b.key("?")
	b.expect("after ?", "document.getElementById('help').open", "true")
	for _, key := range []string{"Shift", "Space", "Home", "Esc", "L", "X", "E", "N", "T", "?"} {
		b.expect("the help names "+key, fmt.Sprintf("Array.from(document.querySelectorAll('#help kbd')).some((e) => e.textContent === %q)", key), "true")
	}
	b.key(kb.Escape)
	b.until("!document.getElementById('help').open")
	b.expect("Escape closed the help alone", "cne.selection.length", "30")
}

func TestBrowserPhone(t *testing.T) {
	p := three()
	p.Title = "A rather long title of an embedding that does not fit on a phone"
	b := show(t, p, setting{width: 360, height: 740, phone: true}).ready()
	b.expect("nothing is wider than the screen", "document.documentElement.scrollWidth <= innerWidth && Array.from(document.querySelectorAll('header *, footer *')).every((e) => e.closest('[hidden], .icons, #facts') || e.getBoundingClientRect().right <= innerWidth + 1)", "true")
	b.expect("the stage has room", "document.getElementById('stage').clientHeight > 400", "true")
	b.expect("the legend waits", "document.getElementById('side').checkVisibility()", "false")
	touch := func(kind input.DispatchTouchEventType, places ...float64) {
		t.Helper()
		at := []*input.TouchPoint{}
		for i := 0; i < len(places); i += 2 {
			id := float64(i)
			at = append(at, &input.TouchPoint{X: places[i], Y: places[i+1], ID: &id})
		}
		call(b, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: at})
	}
	x, y := b.at(2)
	touch(input.DispatchTouchEventTypeTouchStart, x+2, y-1)
	touch(input.DispatchTouchEventTypeTouchEnd)
	b.until("cne.pinned === 2 && !document.getElementById('tip').hidden")
	b.settle()
	b.expect("the tip is on the screen", "(() => { const b = document.getElementById('tip').getBoundingClientRect(); return b.left >= 0 && b.right <= innerWidth; })()", "true")

	touch(input.DispatchTouchEventTypeTouchStart, 150, 300)
	touch(input.DispatchTouchEventTypeTouchMove, 150, 320)
	touch(input.DispatchTouchEventTypeTouchMove, 150, 350)
	touch(input.DispatchTouchEventTypeTouchEnd)
	if _, y1 := b.at(2); math.Abs(y1-y-50) > 1 {
		t.Errorf("a finger moved 50 pixels, the points %v", y1-y)
	}
	touch(input.DispatchTouchEventTypeTouchStart, 150, 300)
	touch(input.DispatchTouchEventTypeTouchStart, 150, 300, 210, 300)
	touch(input.DispatchTouchEventTypeTouchMove, 150, 300, 270, 300)
	touch(input.DispatchTouchEventTypeTouchMove, 120, 300, 270, 300)
	touch(input.DispatchTouchEventTypeTouchEnd)
	if zoom := get[float64](b, "cne.camera.zoom"); math.Abs(zoom-2.5) > 0.05 {
		t.Errorf("fingers 2.5 times as far apart zoom by %v", zoom)
	}
	b.expect("two fingers select nothing", "cne.selection", "null")
	// The finger that stays moves the points on, and is no tap in the end. The
	// protocol cannot lift one of two.
	x, y = b.at(2)
	b.do(`{
	  const canvas = document.getElementById("points");
	  canvas.setPointerCapture = () => {};
	  const { left, top } = canvas.getBoundingClientRect();
	  const finger = (kind, pointerId, x, y) => canvas.dispatchEvent(new PointerEvent("pointer" + kind, { pointerId, pointerType: "touch", clientX: left + x, clientY: top + y, bubbles: true }));
	  finger("down", 71, 100, 200);
	  finger("down", 72, 160, 200);
	  finger("up", 71, 100, 200);
	  finger("move", 72, 165, 230);
	  finger("up", 72, 165, 230);
	  delete canvas.setPointerCapture;
	}`)
	if x1, y1 := b.at(2); math.Hypot(x1-x-5, y1-y-30) > 1 {
		t.Errorf("the finger that stayed moved the points by %v, %v, want 5, 30", x1-x, y1-y)
	}
	b.expect("nor is it a tap", "cne.pinned", "2")

	// A line drawn by a finger.
	b.click("#zoom-fit")
	b.click("#lasso")
	x, y = b.at(2)
	touch(input.DispatchTouchEventTypeTouchStart, x-50, y-50)
	for _, p := range [][2]float64{{50, -50}, {50, 50}, {-50, 50}} {
		touch(input.DispatchTouchEventTypeTouchMove, x+p[0], y+p[1])
	}
	touch(input.DispatchTouchEventTypeTouchEnd)
	b.until("cne.selection")
	b.expect("it selects cats alone", "cne.selection.length > 0 && cne.selection.every((row) => row % 3 === 2)", "true")
	b.click("#selection-clear")
	b.click("#side-close")
	b.click("#lasso")

	b.click("#zoom-fit")
	b.click("#side-open")
	b.expect("the legend", "document.getElementById('side').checkVisibility()", "true")
	b.click("#classes li:nth-child(1) button")
	b.expect("without ants", "cne.visible", "20")
	b.click("#side-close")
	b.expect("closed again", "document.getElementById('side').checkVisibility()", "false")
}

// Pages at the edge of what there is.
func TestBrowserExtremes(t *testing.T) {
	const evil = `"'</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"><!--`
	many := normal(3000, 2, 1, 0)
	classes, names, values := make([]int32, many.N), make([]string, 300), make([]float64, many.N)
	for i := range many.N {
		classes[i] = int32(i % 300)
		values[i] = float64(i % 100)
		if i%10 == 0 {
			values[i] = math.NaN()
		}
	}
	for c := range names {
		names[c] = fmt.Sprintf("class %d of 300, whose name is rather long", c)
	}
	point := matrix(2, 3, 4)

	t.Run("one point", func(t *testing.T) {
		b := show(t, &Page{Views: []View{{Embedding: point}}}, setting{}).ready()
		b.colour("one point", 0, inkOf(plot.SingleColour())[0])
		x, y := b.at(0)
		b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
		b.until("cne.hovered === 0")
		b.expect("no slider", "document.getElementById('foot').checkVisibility()", "false")
		b.expect("no legend", "document.getElementById('side').checkVisibility()", "false")
		b.drag(int64(chromedp.ModifierShift), x-50, y-50, x+50, y-50, x, y+50)
		b.expect("selected", "cne.selection", "0")
		x, y = b.at(0)       // elsewhere, since the panel of the selection has opened
		b.key(kb.ArrowRight) // arrows move, there being no other view
		b.expect("no other view", "cne.t", "0")
		if x1, y1 := b.at(0); math.Hypot(x1-x+60, y1-y) > 1 {
			t.Errorf("the arrow moved the point by %v, %v", x1-x, y1-y)
		}
	})
	t.Run("one point in two views", func(t *testing.T) {
		b := show(t, &Page{Views: []View{{Embedding: point}, {Embedding: point}}}, setting{}).ready()
		b.key(kb.ArrowRight)
		b.until("cne.t === 1")
		b.colour("the second view", 0, inkOf(plot.SingleColour())[0])
		if got := b.text("#view-name"); got != "1" {
			t.Errorf("a view without a name is called %q", got)
		}
	})
	t.Run("one class", func(t *testing.T) {
		b := show(t, &Page{Views: []View{{Embedding: many}}, Classes: make([]int32, many.N), ClassNames: []string{"all"}}, setting{}).ready()
		b.click("#classes button")
		b.expect("the class hidden", "cne.visible", "0")
		b.click("#classes button")
		b.expect("and shown", "cne.visible", "3000")
	})
	t.Run("300 classes", func(t *testing.T) {
		b := show(t, &Page{Views: []View{{Embedding: many}}, Classes: classes, ClassNames: names}, setting{}).ready()
		b.expect("entries", "document.querySelectorAll('#classes button').length", "300")
		b.expect("they scroll", "document.getElementById('classes').scrollHeight > 2000 && document.documentElement.scrollHeight <= innerHeight", "true")
		b.run(chromedp.SendKeys(chromedp.CSS("#filter"), "class 29"))
		b.expect("filtered", "Array.from(document.querySelectorAll('#classes li')).filter((e) => e.checkVisibility()).length", "11")
		b.click("#none")
		b.expect("those hidden", "cne.visible", "2890")
		b.click("#all")
		b.expect("and shown", "cne.visible", "3000")
	})
	t.Run("long names", func(t *testing.T) {
		long := strings.Repeat("a name that is longer than whatever shows it ", 9)
		p := three()
		p.Title, p.ClassNames, p.Names = long, []string{long, long, long}, slices.Repeat([]string{strings.Repeat(long, 4)}, 30)
		for k := range p.Views {
			p.Views[k].Name = fmt.Sprint(k, " ", long)
		}
		for _, s := range []setting{{}, {width: 360, height: 740, phone: true}} {
			b := show(t, p, s).ready()
			b.run(chromedp.SendKeys(chromedp.CSS("#query"), "row 6"))
			b.key(kb.Enter)
			b.run(chromedp.SendKeys(chromedp.CSS("#query"), " "))
			b.settle()
			for what, expression := range map[string]string{
				"the row is in sight":           `(() => { const r = document.getElementById("tip-row").getBoundingClientRect(), s = document.getElementById("stage").getBoundingClientRect(); return r.height > 0 && r.top > s.top && r.bottom < s.bottom; })()`,
				"offers do not scroll sideways": `(() => { const f = document.getElementById("found"); return !f.hidden && f.scrollWidth <= f.clientWidth; })()`,
				"facts are in sight":            `document.querySelector("#facts dd").getBoundingClientRect().right <= innerWidth`,
				"ticks do not overlap": `(() => { const t = Array.from(document.querySelectorAll("#ticks span:not(.bare)"), (e) => e.getBoundingClientRect());
				  return t.length > 0 && t[0].left >= 0 && t.every((r, k) => r.right <= innerWidth && (k === 0 || r.left >= t[k - 1].right)); })()`,
			} {
				b.expect(what, expression, "true")
			}
		}
	})
	t.Run("some without class", func(t *testing.T) {
		some := slices.Clone(classes)
		for i := range some {
			some[i] = some[i]%4 - 1
		}
		b := show(t, &Page{Views: []View{{Embedding: many}}, Classes: some}, setting{}).ready()
		if got := strings.Join(strings.Fields(b.text("#classes")), " "); got != "0 750 1 750 2 750 no label 750" {
			t.Errorf("the legend says %q", got)
		}
		b.click("#classes li:nth-child(4) button")
		b.expect("without those", "cne.visible", "2250")
	})
	t.Run("held out", func(t *testing.T) {
		p := three()
		p.HeldOut = make([]bool, 30)
		p.HeldOut[3], p.HeldOut[27] = true, true
		b := show(t, p, setting{}).ready()
		if got := strings.Join(strings.Fields(b.text("#key")), " "); got != "training 28 held out 2" {
			t.Errorf("the key says %q", got)
		}
		b.colour("trained on, half as far from white", 0, "#8eafc1")
		b.colour("held out", 3, inkOf(plot.ClassColour(0))[0])
		b.click("#key li:nth-child(1) button")
		b.expect("those held out alone", "cne.visible", "2")
		b.click("#classes li:nth-child(1) button")
		b.expect("of other classes", "cne.visible", "0")
		b.run(chromedp.SendKeys(chromedp.CSS("#query"), "row 0"))
		b.key(kb.Enter)
		b.expect("a hidden row is gone to", "[cne.visible, cne.pinned]", "30,0")
	})
	t.Run("values", func(t *testing.T) {
		few := matrix(2, 0, 0, 1, 0, 2, 0, 3, 1)
		b := show(t, &Page{Views: []View{{Embedding: few}}, Values: []float64{1, 5.5, 10, math.NaN()}}, setting{}).ready()
		for row, at := range []float64{0, 0.5, 1} {
			b.colour("values", row, valueInk(at)[0])
		}
		b.colour("none", 3, inkOf(plot.UnlabeledColour())[0])
		x, y := b.at(1)
		b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
		b.until("cne.hovered === 1")
		b.settle()
		if got := b.text("#tip"); got != "5.5\nrow 1" {
			t.Errorf("the tip says %q", got)
		}
		b.run(chromedp.SendKeys(chromedp.CSS("#query"), "10"))
		b.expect("searched by value", "cne.standing", "1")
	})
	t.Run("small values", func(t *testing.T) {
		b := show(t, &Page{Views: []View{{Embedding: matrix(2, 0, 0, 1, 0)}}, Values: []float64{-1e-7, 2.1e-6}}, setting{}).ready()
		b.expect("each tick is on one line", `new Set(Array.from(document.querySelectorAll("#colours .marks span"), (e) => e.offsetHeight)).size`, "1")
		b.expect("the last tick", `document.querySelector("#colours .marks span:last-child").textContent`, "2e-6")
	})
	t.Run("markup", func(t *testing.T) {
		p := three()
		p.Title, p.ClassNames, p.Names, p.Slider = evil, []string{evil, "bee", "cat"}, make([]string, 30), evil
		p.Names[0] = evil
		for k := range p.Views {
			p.Views[k].Name = evil
			p.Views[k].Facts = []Fact{{evil, evil}}
		}
		b := show(t, p, setting{}).ready()
		x, y := b.at(0)
		b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
		b.until("cne.hovered === 0")
		b.run(chromedp.SendKeys(chromedp.CSS("#query"), "script"))
		b.settle()
		b.expect("nothing ran", "typeof window.hacked", "undefined")
		for _, id := range []string{"title", "view-name", "tip-label", "tip-name", "facts dt", "classes .name", "found .what"} {
			b.expect("shown as it is", fmt.Sprintf("document.querySelector('#%s').textContent === %q", id, evil), "true")
		}
		// Even what somebody puts into the page is not run.
		b.do("{ const s = document.createElement('script'); s.textContent = 'window.hacked = 3'; document.body.append(s); }")
		b.expect("nothing runs", "typeof window.hacked", "undefined")
		b.mu.Lock()
		b.problems = slices.DeleteFunc(b.problems, func(p string) bool { return strings.Contains(p, "Content Security Policy") })
		b.mu.Unlock()
	})
	t.Run("no WebGL", func(t *testing.T) {
		p := three()
		b := show(t, p, setting{before: "HTMLCanvasElement.prototype.getContext = () => null;"})
		b.until("window.cne && !document.getElementById('text').hidden")
		got := b.text("#text")
		for _, want := range []string{"no WebGL 2", "s = 1", "0.2", "bee\t10", "30 points"} {
			if !strings.Contains(got, want) {
				t.Errorf("the text lacks %q: %s", want, got)
			}
		}
	})
	t.Run("context lost", func(t *testing.T) {
		b := show(t, three(), setting{}).ready()
		b.do(`{
		  const canvas = document.getElementById("points"), loser = canvas.getContext("webgl2").getExtension("WEBGL_lose_context");
		  canvas.addEventListener("webglcontextlost", () => { window.lost = cne.drawn; });
		  loser.loseContext();
		  window.restore = () => loser.restoreContext();
		}`)
		b.until("window.lost")
		// What happens meanwhile counts afterwards.
		b.key("t")
		b.click("#classes li:nth-child(2) button")
		b.expect("drawn without a context", "cne.drawn === lost", "true")
		b.do("restore()")
		b.until("cne.drawn > lost")
		b.expect("the ground after a loss", "cne.pixel(3, 3)", "18,20,24")
		b.colour("after a loss", 2, inkOf(plot.ClassColour(2))[1])
		if got := b.pixel(1); got != "#121418" {
			t.Errorf("after a loss, a hidden bee is drawn in %s", got)
		}
		b.mu.Lock()
		b.problems = slices.DeleteFunc(b.problems, func(p string) bool { return strings.Contains(p, "CONTEXT_LOST") })
		b.mu.Unlock()
	})
}

// 70 000 points with the images of MNIST's 10 000, seven times.
func TestBrowserLarge(t *testing.T) {
	ds, few := digits(t)
	im := &data.Images{N: 7 * few.N, H: few.H, W: few.W, C: 1, Pixels: bytes.Repeat(few.Pixels, 7)}
	classes := slices.Repeat(ds.Labels.Class, 7)
	p := &Page{Classes: classes, ClassNames: ds.Labels.Names, Images: im, Slider: "s"}
	for k := range 7 {
		p.Views = append(p.Views, View{Name: fmt.Sprintf("s = %d", k), Embedding: normal(im.N, 2, float64(k+1), 0)})
	}
	begun := time.Now()
	b := show(t, p, setting{}).ready()
	t.Logf("written and shown after %.1f s, shown %.0f ms after the page was opened", time.Since(begun).Seconds(), get[float64](b, "performance.now()"))
	b.expect("points", "cne.visible", "70000")
	b.key(kb.End)
	b.until("cne.t === 6")
	x, y := b.at(69_999)
	b.mouse(input.DispatchMouseEventTypeMouseMoved, x, y)
	b.until("cne.hovered >= 0 && " + pictured)
	row := get[int](b, "cne.hovered")
	got := get[[]int](b, "Array.from(document.getElementById('tip-image').getContext('2d').getImageData(0, 0, 28, 28).data).filter((_, i) => i % 4 === 0)")
	for i, v := range got {
		if d := v - int(im.Image(row)[i]); d > 9 || d < -9 { // 16 levels
			t.Fatalf("the image of row %d differs by %d at byte %d", row, d, i)
		}
	}
}
