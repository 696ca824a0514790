package cne_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/gonum/mat"

	"cne"
	"cne/data"
	"cne/data/neighbors"
	"cne/train"
	"cne/train/quality"
)

// rings returns n points on each of two circles in space, one after the other.
func rings(n int) *mat.Dense {
	m := mat.NewDense(2*n, 3, nil)
	for i := range 2 * n {
		a := 2 * math.Pi * float64(i%n) / float64(n)
		m.SetRow(i, []float64{math.Cos(a), math.Sin(a), float64(3 * (i / n))})
	}
	return m
}

// Points become an embedding in one call; train/quality says how good it is.
func Example() {
	ctx := context.Background()
	points, err := data.FromMat(rings(200))
	if err != nil {
		log.Fatal(err)
	}
	e, err := cne.Embed(ctx, points, cne.Options{Epochs: 100})
	if err != nil {
		log.Fatal(err)
	}
	figures, err := quality.Measure(ctx, points, e.Positions, quality.Options{K: 15})
	if err != nil {
		log.Fatal(err)
	}
	n, d := e.Positions.Dims()
	fmt.Printf("%d points in %d dimensions keep more than half of their neighbours: %t\n", n, d, *figures.KNNRecall > 0.5)
	// Output: 400 points in 2 dimensions keep more than half of their neighbours: true
}

// A network is trained, saved and loaded, and places points: here the training points,
// which get their positions again.
func Example_network() {
	ctx := context.Background()
	points, err := data.FromMat(rings(100))
	if err != nil {
		log.Fatal(err)
	}
	e, err := cne.Embed(ctx, points, cne.Options{Hidden: []int{32, 32}, Epochs: 20, Scaling: data.ScaleStandard})
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "cne")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "model.safetensors")
	if err := e.Save(path); err != nil {
		log.Fatal(err)
	}
	loaded, err := cne.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	positions, err := loaded.Project(ctx, points)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mat.Equal(positions, e.Positions))
	// Output: true
}

// A part of the points is held out, and placed when the others have been embedded. Do
// their neighbours there have their labels, and are they their neighbours in the data?
func Example_heldOut() {
	ctx := context.Background()
	points, err := data.FromMat(rings(200))
	if err != nil {
		log.Fatal(err)
	}
	all := &data.Dataset{Points: points, Labels: data.NewLabels(ringNames(200))}
	rest, held, _, err := all.Split(0.1, 1)
	if err != nil {
		log.Fatal(err)
	}
	e, err := cne.Embed(ctx, rest.Points, cne.Options{Epochs: 100})
	if err != nil {
		log.Fatal(err)
	}
	positions, err := e.Project(ctx, held.Points)
	if err != nil {
		log.Fatal(err)
	}
	figures, err := quality.MeasureHeldOut(ctx, rest.Points, e.Positions,
		quality.HeldOut{Points: held.Points, Embedding: positions, Labels: held.Labels}, quality.Options{Labels: rest.Labels})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d points, accuracy %.2f, most neighbours kept: %t\n", figures.N, *figures.Accuracy, *figures.KNNRecall > 0.5)
	// Output: 40 points, accuracy 1.00, most neighbours kept: true
}

// A run saves its state every ten epochs, is interrupted, and continues from its file to
// the embedding of an uninterrupted run.
func Example_checkpoints() {
	points, err := data.FromMat(rings(50))
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "cne")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "checkpoint.safetensors")
	ctx, interrupt := context.WithCancel(context.Background())
	e, err := cne.Embed(ctx, points, cne.Options{
		Epochs:      40,
		Checkpoints: &train.Checkpoints{Epochs: 10, Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }},
		Hooks: []train.Hook{train.HookFunc(func(s *train.State) error {
			if s.Epoch == 25 {
				interrupt()
			}
			return nil
		})},
	})
	fmt.Println(err, "after", e.Result.Epochs, "epochs")
	checkpoint, err := train.ReadCheckpoint(path)
	if err != nil {
		log.Fatal(err)
	}
	resumed, err := cne.Embed(context.Background(), points, cne.Options{Epochs: 40, Resume: checkpoint})
	if err != nil {
		log.Fatal(err)
	}
	whole, err := cne.Embed(context.Background(), points, cne.Options{Epochs: 40})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mat.Equal(resumed.Positions, whole.Positions))
	// Output:
	// context canceled after 25 epochs
	// true
}

// Embeddings along the spectrum share their early phase: towards UMAP, clusters shrink
// and the gaps between them grow.
func ExampleSpectrum() {
	points, err := data.FromMat(rings(300))
	if err != nil {
		log.Fatal(err)
	}
	places := cne.PhasesAt(train.FromS(0), train.FromS(0.5), train.FromS(1))
	embeddings, err := cne.Spectrum(context.Background(), points, places, cne.Options{Epochs: 60})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range embeddings {
		fmt.Println(e.Positions.Dims())
	}
	// Output:
	// 600 2
	// 600 2
	// 600 2
}

// ringNames names the points of rings.
func ringNames(n int) []string {
	names := make([]string, 2*n)
	for i := range names {
		names[i] = []string{"lower", "upper"}[i/n]
	}
	return names
}

// An embedding becomes a picture with a legend of the classes.
func ExampleEmbedding_WritePicture() {
	points, err := data.FromMat(rings(200))
	if err != nil {
		log.Fatal(err)
	}
	e, err := cne.Embed(context.Background(), points, cne.Options{Epochs: 50})
	if err != nil {
		log.Fatal(err)
	}
	var picture bytes.Buffer // or a file of os.Create
	err = e.WritePicture(&picture, cne.PictureOptions{
		Title:  "Two rings",
		Labels: data.NewLabels(ringNames(200)),
		Width:  6, Height: 4, DPI: 100,
	})
	if err != nil {
		log.Fatal(err)
	}
	size, err := png.DecodeConfig(&picture)
	fmt.Println(size.Width, "×", size.Height, "pixels", err)
	// Output: 600 × 400 pixels <nil>
}

// A web server shows an embedding as a page to explore.
func ExampleEmbedding_WritePage() {
	points, err := data.FromMat(rings(200))
	if err != nil {
		log.Fatal(err)
	}
	e, err := cne.Embed(context.Background(), points, cne.Options{Epochs: 50})
	if err != nil {
		log.Fatal(err)
	}
	options := cne.PageOptions{Title: "Two rings", Labels: data.NewLabels(ringNames(200))}
	for i := range points.N {
		options.Names = append(options.Names, fmt.Sprintf("%.0f degrees", 360*float64(i%200)/200))
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := e.WritePage(w, options); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})

	server := httptest.NewServer(handler) // or http.ListenAndServe
	defer server.Close()
	response, err := http.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	fmt.Println(response.Status, response.Header.Get("Content-Type"), err)
	fmt.Println(strings.Contains(string(page), "<title>Two rings</title>"), strings.Contains(string(page), `"upper"`))
	// Output:
	// 200 OK text/html; charset=utf-8 <nil>
	// true true
}

// Embeddings along the spectrum become a page with a slider.
func ExampleEmbedding_WritePage_spectrum() {
	ctx := context.Background()
	points, err := data.FromMat(rings(200))
	if err != nil {
		log.Fatal(err)
	}
	values := []float64{0, 0.5, 1}
	var phases []cne.Phase
	for _, s := range values {
		phases = append(phases, cne.PhasesAt(train.FromS(s))...)
	}
	embeddings, err := cne.Spectrum(ctx, points, phases, cne.Options{Epochs: 50})
	if err != nil {
		log.Fatal(err)
	}
	options := cne.PageOptions{Slider: "s", Labels: data.NewLabels(ringNames(200))}
	for i, e := range embeddings {
		figures, err := quality.Measure(ctx, points, e.Positions, quality.Options{})
		if err != nil {
			log.Fatal(err)
		}
		options.Views = append(options.Views, cne.PageView{Name: fmt.Sprint("s = ", values[i]), Embedding: e.Positions, Facts: cne.Facts(figures)})
	}
	var page strings.Builder // or a file of os.Create
	if err := embeddings[0].WritePage(&page, options); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(page.String(), `"name":"s = 0.5"`))
	// Output: true
}

// A run can be looked at while it is trained, and can have a graph of one's own.
func ExampleOptions() {
	points, err := data.FromMat(rings(50))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	nearest, err := neighbors.KNN(ctx, points, 4, neighbors.Options{})
	if err != nil {
		log.Fatal(err)
	}
	graph, err := neighbors.FromNeighbors(nearest)
	if err != nil {
		log.Fatal(err)
	}
	_, err = cne.Embed(ctx, points, cne.Options{
		Graph: graph, Epochs: 30, Seed: 1,
		Hooks: []train.Hook{train.EveryEpochs(10, train.HookFunc(func(s *train.State) error {
			fmt.Printf("epoch %d of %d\n", s.Epoch, s.Epochs)
			return nil
		}))},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// epoch 10 of 30
	// epoch 20 of 30
	// epoch 30 of 30
}
