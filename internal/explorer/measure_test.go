package explorer

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"

	"cne/data"
	"cne/internal/plot"
	"cne/internal/rng"
)

// gaussians returns a page of n points of ten classes, each a normal distribution.
func gaussians(n int) *Page {
	r := rng.New(5, rng.Sample)
	m, classes := data.NewMatrix(n, 2), make([]int32, n)
	for i := range n {
		c := int(10 * r.Float64())
		sin, cos := math.Sincos(float64(c))
		classes[i] = int32(c)
		m.X[2*i] = float32(10*cos + (1+float64(c)/5)*r.Normal())
		m.X[2*i+1] = float32(10*sin + (1+float64(c)/5)*r.Normal())
	}
	return &Page{Title: "Gaussians", Colouring: plot.Colouring{Classes: classes}, Views: []View{{Embedding: m}}}
}

// TestMeasurePages reports how large pages of the numbers of points in PAGE_POINTS are, how
// long they take, and how smoothly they move. It is no test of a page, and skipped otherwise.
func TestMeasurePages(t *testing.T) {
	if os.Getenv("PAGE_POINTS") == "" {
		t.Skip("PAGE_POINTS, such as 1000000,5000000, says of which sizes")
	}
	for _, text := range strings.Split(os.Getenv("PAGE_POINTS"), ",") {
		n, err := strconv.Atoi(text)
		must(t, err)
		p := gaussians(n)
		began := time.Now()
		path := filepath.Join(t.TempDir(), "page.html")
		must(t, os.WriteFile(path, []byte(write(t, p)), 0o666))
		written := time.Since(began)
		info, err := os.Stat(path)
		must(t, err)
		b := show(t, p, setting{width: 1280, height: 800, before: `{
		  const look = () => {
		    if (!window.cne || !(cne.drawn > 0)) return requestAnimationFrame(look);
		    const gl = document.getElementById("points").getContext("webgl2");
		    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits until it is drawn
		    window.first = performance.now();
		    const rest = () => (cne.whole === false ? requestAnimationFrame(rest) : window.full = performance.now());
		    rest();
		  };
		  requestAnimationFrame(look);
		}`})
		b.until("window.full")
		line := fmt.Sprintf("%d points: %.1f MB written in %.2f s; first picture %.2f s, all points %.2f s", n, float64(info.Size())/1e6, written.Seconds(),
			get[float64](b, "first")/1e3, get[float64](b, "full")/1e3)
		b.do("window.frames = cne.drawn")
		b.mouse(input.DispatchMouseEventTypeMousePressed, 0, 400, 400)
		began = time.Now()
		for time.Since(began) < 3*time.Second {
			a := 2 * time.Since(began).Seconds()
			call(b, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseMoved, Button: input.MouseButtonLeft, Buttons: 1, X: 400 + 100*math.Sin(a), Y: 400 + 50*math.Sin(2*a)})
			time.Sleep(8 * time.Millisecond)
		}
		b.do(`{ const gl = document.getElementById("points").getContext("webgl2"); gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); }`)
		frames := get[float64](b, "cne.drawn - frames")
		line += fmt.Sprintf("; %.0f frames/s", frames/time.Since(began).Seconds())
		b.mouse(input.DispatchMouseEventTypeMouseReleased, 0, 400, 400)
		t.Log(line, fmt.Sprintf("; heap %.0f MB", get[float64](b, "performance.memory.usedJSHeapSize")/1e6))
	}
}
