package train_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"cne/data"
	"cne/data/neighbors"
	"cne/model"
	"cne/model/op"
	"cne/train"
	"cne/train/initial"
	"cne/train/quality"
)

// clusters returns points around three centres in ten dimensions.
func clusters(n int, seed uint64) *data.Dataset {
	random := rand.New(rand.NewPCG(seed, 0))
	m := data.NewMatrix(n, 10)
	for i := range m.X {
		m.X[i] = float32(random.NormFloat64())
		if i/10%3 == i%10 {
			m.X[i] += 20
		}
	}
	return &data.Dataset{Name: "clusters", Points: m}
}

// A network is trained, saved, loaded, and places points that it has not seen.
func Example_network() {
	dir, err := os.MkdirTemp("", "cne")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	if err := fitAndSave(path, clusters(300, 1)); err != nil {
		fmt.Println(err)
		return
	}
	embedding, err := project(path, clusters(6, 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	// Points of one cluster, which are 3 apart in the file, stay together.
	near, err := neighbors.KNN(context.Background(), embedding, 1, neighbors.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(near.Index)
	// Output: [3 4 5 0 1 2]
}

// fitAndSave trains a network on points and writes it to a file, with what has
// to be done to new points.
func fitAndSave(path string, set *data.Dataset) error {
	scaler, err := set.Scale(context.Background(), data.ScaleStandard)
	if err != nil {
		return err
	}
	points := set.Points
	nearest, err := neighbors.KNN(context.Background(), points, 10, neighbors.Options{})
	if err != nil {
		return err
	}
	graph, err := neighbors.FromNeighbors(nearest)
	if err != nil {
		return err
	}
	network, err := model.NewMLP[float32](points.D, []int{32, 32}, 2, 0)
	if err != nil {
		return err
	}
	loss := op.ContrastiveOptions{Loss: op.InfoNC, Clamp: 1e-10}
	m, err := model.NewParametric(network, points.X, loss)
	if err != nil {
		return err
	}
	heads, tails := graph.EdgeList()
	if _, err := train.Fit(context.Background(), m, heads, tails, train.Options{
		Phases:    []train.Phase{{Epochs: 60, LR: 0.002, Negatives: 5}},
		Optimizer: new(train.Adam), Clip: 4, BatchSize: 256,
	}); err != nil {
		return err
	}
	return network.Save(path, &model.Description{
		Preprocessing: &model.Preprocessing{Width: points.D, Scaler: scaler},
		Training:      model.FitInfo{Objective: loss, Negatives: 5, Neighbors: 10},
	})
}

// project places new points with a saved network.
func project(path string, set *data.Dataset) (*data.Matrix, error) {
	saved, err := model.Load(path)
	if err != nil {
		return nil, err
	}
	points, err := saved.Preprocessing.Apply(context.Background(), set.Points)
	if err != nil {
		return nil, err
	}
	_, d := saved.Network.Size()
	embedding := data.NewMatrix(points.N, d)
	return embedding, saved.Network.ProjectTo(embedding.X, points.X)
}

// A run that is interrupted goes on from its last checkpoint, and ends with the
// bits of one that was not.
func Example_resume() {
	dir, err := os.MkdirTemp("", "cne")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "checkpoint.safetensors")
	heads, tails := ring(30, 1)
	fit := func(ctx context.Context, from *train.Checkpoint, hooks ...train.Hook) ([]float32, error) {
		start, err := initial.Random[float32](30, 2, 1, 0)
		if err != nil {
			return nil, err
		}
		m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10})
		if err != nil {
			return nil, err
		}
		_, err = train.Fit(ctx, m, heads, tails, train.Options{
			Phases: []train.Phase{{Epochs: 100, LR: 1, Negatives: 5}}, BatchSize: 16, Clip: 4,
			Checkpoints: &train.Checkpoints{Save: func(c *train.Checkpoint) error { return c.WriteFile(path) }},
			Resume:      from, Hooks: hooks,
		})
		return m.Table(), err
	}
	want, err := fit(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = fit(ctx, nil, train.HookFunc(func(s *train.State) error {
		if s.Epoch == 40 {
			cancel()
		}
		return nil
	}))
	fmt.Println(err)
	checkpoint, err := train.ReadCheckpoint(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := fit(context.Background(), checkpoint)
	fmt.Println(checkpoint.Progress.Epochs, slices.Equal(got, want), err)
	// Output:
	// context canceled
	// 40 true <nil>
}

// The early phase of a spectrum is run once. Each of its embeddings goes on from
// there, and has the bits of a run of its own through both phases.
func Example_spectrum() {
	heads, tails := ring(600, 2)
	early := train.Phase{Epochs: 30, LR: 1, Negatives: 5}
	fit := func(options train.Options) ([]float32, error) {
		start, err := initial.Random[float32](600, 2, 1, 0)
		if err != nil {
			return nil, err
		}
		m, err := model.NewEmbedding(start, 2, op.ContrastiveOptions{Loss: op.Neg, Clamp: 1e-10})
		if err != nil {
			return nil, err
		}
		options.BatchSize, options.Clip = 64, 4
		_, err = train.Fit(context.Background(), m, heads, tails, options)
		return m.Table(), err
	}
	var shared *train.Checkpoint
	_, err := fit(train.Options{
		Phases: []train.Phase{early},
		Checkpoints: &train.Checkpoints{Save: func(c *train.Checkpoint) (err error) {
			shared, err = c.Clone()
			return err
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var partitions []float64
	for _, zBar := range []float64{1e3, 1e4, 1e5} {
		phases := []train.Phase{early, {Epochs: 60, LR: 1, Negatives: 5, Spectrum: train.FromZBar(zBar)}}
		embedding, err := fit(train.Options{Phases: phases, Resume: shared})
		if err != nil {
			fmt.Println(err)
			return
		}
		whole, err := fit(train.Options{Phases: phases})
		if err != nil {
			fmt.Println(err)
			return
		}
		partition, err := quality.PartitionFunction(context.Background(), embedding, 2)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("the bits of one run:", slices.Equal(embedding, whole))
		partitions = append(partitions, partition)
	}
	fmt.Println("the partition function grows with Z̄:", slices.IsSorted(partitions))
	// Output:
	// the bits of one run: true
	// the bits of one run: true
	// the bits of one run: true
	// the partition function grows with Z̄: true
}
