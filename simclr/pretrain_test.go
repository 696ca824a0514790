package simclr_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cne/data"
	"cne/data/images"
	"cne/internal/rng"
	"cne/model"
	"cne/model/op"
	"cne/simclr"
	"cne/train"
)

// patches returns n images of size×size pixels, each of four quarters of random colours:
// views of one image resemble each other more than views of two images.
func patches(n, size int) *images.Set {
	images := &images.Set{Name: "patches", N: n, H: size, W: size, C: 3}
	s := rng.New(1, rng.Sample)
	for range n {
		var colours [4][3]byte
		for q := range colours {
			for c := range 3 {
				colours[q][c] = byte(s.IntN(256))
			}
		}
		for y := range size {
			for x := range size {
				q := 2*(2*y/size) + 2*x/size
				images.Pixels = append(images.Pixels, colours[q][:]...)
			}
		}
	}
	return images
}

// small is a pretraining that takes a moment: of a narrow network on images of
// 8×8 pixels, 8 to a batch.
func small() simclr.Pretraining {
	p := simclr.PaperPretraining()
	p.Augmentation.Size = 8
	p.Network = model.ResNetOptions{Width: 2, Hidden: 16, Out: 8}
	p.BatchSize, p.Negatives, p.Epochs, p.WarmUp, p.LR, p.Seed = 8, 4, 3, 1, 0.05, 7
	return p
}

func pretrain(t *testing.T, p simclr.Pretraining, images *images.Set, rows []int32) (*simclr.Network, train.Result) {
	t.Helper()
	n, r, err := p.Run(context.Background(), images, rows)
	must(t, err)
	return n, r
}

// state returns all that a network has learnt and how its run ended.
func state(n *simclr.Network, r train.Result) []float64 {
	all := []float64{r.Loss, r.LogZ, float64(r.Epochs)}
	add := func(a *op.Array) {
		for _, v := range op.Data[float32](a) {
			all = append(all, float64(v))
		}
	}
	for _, p := range n.Parameters() {
		add(p.Value)
	}
	for _, s := range n.State() {
		add(s.Value)
	}
	return all
}

// resumesAnywhere runs a pretraining, and then resumes it from each of its checkpoints; all
// must end with the same bits. It returns the checkpoints.
func resumesAnywhere(t *testing.T, p simclr.Pretraining, images *images.Set) (saved []*train.Checkpoint, n *simclr.Network, r train.Result) {
	t.Helper()
	dir := t.TempDir()
	path := func(i int) string { return filepath.Join(dir, strconv.Itoa(i)) }
	count := 0
	p.Checkpoints = &train.Checkpoints{Interval: 1, Save: func(c *train.Checkpoint) error {
		count++
		return c.WriteFile(path(count - 1))
	}}
	n, r = pretrain(t, p, images, nil)
	want := state(n, r)
	p.Checkpoints = nil
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i := range count {
		c, err := train.ReadCheckpoint(path(i))
		must(t, err)
		saved, p.Resume = append(saved, c), c
		runtime.GOMAXPROCS(1 + i%3)
		if n, r := pretrain(t, p, images, nil); !slices.Equal(state(n, r), want) {
			t.Errorf("another network from checkpoint %+v on", c.Progress)
		}
	}
	return saved, n, r
}

func cosine(loss op.Loss) op.ContrastiveOptions {
	return op.ContrastiveOptions{Loss: loss, Metric: op.Cosine, Temperature: 0.5, Mean: true}
}

func euclidean(loss op.Loss) op.ContrastiveOptions {
	return op.ContrastiveOptions{Loss: loss, Mean: true, Clamp: 1e-10}
}

// The loss falls, whichever it is.
func TestPretrainingLearns(t *testing.T) {
	images := patches(64, 8)
	for name, change := range map[string]func(p *simclr.Pretraining){
		"infonce":            func(*simclr.Pretraining) {},
		"neg":                func(p *simclr.Pretraining) { p.Loss = cosine(op.Neg) },
		"nc":                 func(p *simclr.Pretraining) { p.Loss, p.LRZ, p.LogZ = cosine(op.NC), new(0.01), 0.5 },
		"umap":               func(p *simclr.Pretraining) { p.Loss, p.LR = euclidean(op.UMAP), 0.01 },
		"infonce, euclidean": func(p *simclr.Pretraining) { p.Loss, p.LR = euclidean(op.InfoNC), 0.01 },
	} {
		t.Run(name, func(t *testing.T) {
			p := small()
			p.Network = model.ResNetOptions{Width: 4}
			p.Augmentation.Jitter, p.Augmentation.Gray, p.Augmentation.Flip, p.Augmentation.MinScale = 0, 0, 0, 0.6
			p.BatchSize, p.Epochs = 16, 15
			change(&p)
			var losses []float64
			p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
				if s.Model.(*simclr.Network).Width() != 32 {
					t.Errorf("representations of %d", s.Model.(*simclr.Network).Width())
				}
				losses = append(losses, s.Loss)
				return nil
			})}
			_, r := pretrain(t, p, images, nil)
			if len(losses) != 15 || r.Epochs != 15 {
				t.Fatalf("%d losses of %d epochs", len(losses), r.Epochs)
			}
			if last := (losses[12] + losses[13] + losses[14]) / 3; !(last < 0.75*losses[0]) {
				t.Errorf("the loss goes from %g to about %g: %v", losses[0], last, losses)
			}
		})
	}
}

// One seed makes one network: on any number of cores, whatever the labels say,
// and whether or not hooks look at representations and embedding.
func TestPretrainingIsReproducible(t *testing.T) {
	set := patches(45, 16)
	p := small()
	// Large enough for every loop to be cut into pieces.
	p.Network.Width, p.Augmentation.Size, p.BatchSize, p.Epochs = 8, 16, 20, 2
	n, r := pretrain(t, p, set, nil)
	want := state(n, r)
	check := func(t *testing.T, p simclr.Pretraining, set *images.Set, same bool) {
		t.Helper()
		n, r := pretrain(t, p, set, nil)
		if got := state(n, r); slices.Equal(got, want) != same {
			t.Errorf("the same bits: %v, want %v", !same, same)
		}
	}
	for _, cores := range []int{1, 3} {
		t.Run(fmt.Sprintf("GOMAXPROCS=%d", cores), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			check(t, p, set, true)
		})
	}
	t.Run("labels", func(t *testing.T) {
		labelled := *set
		// Reading labels would fail: they are too few.
		labelled.Labels, labelled.Train = data.NewLabels([]string{"a"}), []bool{true}
		check(t, p, &labelled, true)
	})
	t.Run("monitor", func(t *testing.T) {
		p := p
		p.Hooks = []train.Hook{train.HookFunc(func(s *train.State) error {
			n := s.Model.(*simclr.Network)
			for _, count := range []int{20, 1} {
				plain := make([]float32, count*3*16*16)
				if err := p.Augmentation.EvalBatchTo(plain, set, rows(count)); err != nil {
					return err
				}
				if err := n.RepresentTo(make([]float32, count*n.Width()), plain, 16, 16); err != nil {
					return err
				}
			}
			points, d := n.Points()
			return n.EmbedTo(make([]float32, points*d))
		})}
		check(t, p, set, true)
	})
	t.Run("another seed", func(t *testing.T) {
		p := p
		p.Seed++
		check(t, p, set, false)
	})
}

// A run resumed from any of its checkpoints, between two batches as well as after an epoch,
// ends with the bits of the uninterrupted run.
func TestPretrainingResumes(t *testing.T) {
	for name, loss := range map[string]op.ContrastiveOptions{"infonce": small().Loss, "nc": cosine(op.NC)} {
		t.Run(name, func(t *testing.T) {
			p := small()
			p.Loss = loss
			saved, _, _ := resumesAnywhere(t, p, patches(20, 8))
			var at [][2]int
			for _, c := range saved {
				at = append(at, [2]int{c.Progress.Epochs, c.Progress.Batches})
			}
			// 20 images are two batches of 8; the 4 left over are left out.
			if all := [][2]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}, {3, 0}}; !slices.Equal(at, all) {
				t.Errorf("checkpoints after %v epochs and batches, want %v", at, all)
			}
		})
	}
}

// With four views, the loss of a batch is the mean loss of the edges from each view to the
// three others of its image, whose negatives are the views of the other images, each of them
// twice.
func TestFourViews(t *testing.T) {
	const b, size = 6, 8
	p, images := small(), patches(b, size)
	p.BatchSize, p.Negatives, p.Epochs, p.WarmUp = b, train.Full, 1, 0
	p.LR = 1e-30 // the network that is measured is the one that was trained
	two, resultOfTwo := pretrain(t, p, images, nil)
	p.Views = 2
	if same, r := pretrain(t, p, images, nil); !slices.Equal(state(same, r), state(two, resultOfTwo)) {
		t.Error("2 views are not those of 0")
	}
	p.Views = 4
	_, r := pretrain(t, p, images, nil)
	views := make([]float32, 4*b*3*size*size)
	for v := range 4 {
		must(t, p.Augmentation.BatchTo(views[v*len(views)/4:][:len(views)/4], images, rows(b), 0, v, p.Seed))
	}
	// By another model, with the negatives one by one.
	var batch model.Batch
	const edges = 3 * 4 * b
	batch.Rows, batch.Local = rows(4*b), make([]int32, 2*edges)
	negatives := make([][]int32, edges)
	for edge := range int32(edges) {
		head, other := edge%(4*b), 1+edge/(4*b)
		batch.Local[edge], batch.Local[edges+edge] = head, (head+other*b)%(4*b)
		for row := range int32(8 * b) {
			if row%b != head%b {
				negatives[edge] = append(negatives[edge], row)
			}
		}
	}
	for j := range negatives[0] {
		for _, list := range negatives {
			batch.Negatives = append(batch.Negatives, list[j])
		}
	}
	batch.Images = views
	net, err := model.NewResNet[float32](p.Network, p.Seed)
	must(t, err)
	c, err := model.NewConvolutional(net, 4*b, size, p.Loss, nil, op.Float32)
	must(t, err)
	want, err := c.Step(&batch, 0)
	must(t, err)
	if math.Abs(r.Loss-want) > 1e-5*want {
		t.Errorf("the loss is %v, want %v", r.Loss, want)
	}
	p.LR = small().LR
	p.Epochs = 3
	resumesAnywhere(t, p, patches(20, size))
	p.Network.Small = true
	few, r := pretrain(t, p, patches(20, size), nil)
	wanted := state(few, r)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	if n, r := pretrain(t, p, patches(20, size), nil); !slices.Equal(state(n, r), wanted) {
		t.Error("another network on three cores")
	}
}

// The number of images in a batch and the number of negatives are independent; more
// negatives than a batch has mean all.
func TestBatchesAndNegatives(t *testing.T) {
	images := patches(24, 8)
	run := func(b, m int, sampling train.Sampling) ([]float64, train.Result) {
		p := small()
		p.Epochs, p.WarmUp, p.BatchSize, p.Negatives, p.Sampling = 1, 0, b, m, sampling
		n, r := pretrain(t, p, images, nil)
		return state(n, r), r
	}
	for _, b := range []int{2, 5, 24} {
		full, r := run(b, train.Full, train.SampleAuto)
		if r.Negatives != 2*b-2 {
			t.Errorf("%d negatives with full at b=%d", r.Negatives, b)
		}
		for _, tc := range []struct {
			m        int
			sampling train.Sampling
			want     int
		}{
			{1, train.SamplePerHead, 1}, {2, train.SampleAuto, 2}, {2, train.SampleSharedRuns, 2}, {512, train.SampleAuto, 2*b - 2},
		} {
			got, r := run(b, tc.m, tc.sampling)
			want := min(tc.want, 2*b-2)
			if r.Negatives != want {
				t.Errorf("b=%d, m=%d: %d negatives, want %d", b, tc.m, r.Negatives, want)
			}
			if slices.Equal(got, full) != (want == 2*b-2) {
				t.Errorf("b=%d, m=%d: as with all negatives: %v", b, tc.m, slices.Equal(got, full))
			}
		}
	}
}

// What is embedded are the images as they are, for both views.
func TestNetworkEmbeds(t *testing.T) {
	images := patches(300, 8) // more than go through the network at a time
	p := small()
	p.Epochs, p.WarmUp, p.BatchSize = 1, 0, 128
	subset := rows(300)[3:]
	n, _ := pretrain(t, p, images, subset)
	points, d := n.Points()
	if points != 594 || d != 8 {
		t.Fatalf("%d points of %d", points, d)
	}
	all := make([]float32, points*d)
	must(t, n.EmbedTo(all))
	for _, i := range []int{0, 255, 256, 296} {
		plain, want := make([]float32, 3*8*8), make([]float32, d)
		must(t, errors.Join(p.Augmentation.EvalTo(plain, images.Image(3+i), 8, 8), n.ProjectTo(want, plain)))
		for k, v := range want {
			if math.Abs(float64(all[i*d+k]-v)) > 1e-5*(1+math.Abs(float64(v))) {
				t.Errorf("image %d is embedded at %v, want %v", i, all[i*d:(i+1)*d], want)
				break
			}
		}
	}
	if !slices.Equal(all[:297*d], all[297*d:]) {
		t.Error("the views of an image are embedded at two places")
	}
	if err := n.EmbedTo(all[1:]); !errors.Is(err, simclr.ErrShape) {
		t.Errorf("error %v", err)
	}
}

// A saved network comes back with its representations and with what prepares
// images for it.
func TestPretrainedNetworkIsSaved(t *testing.T) {
	images := patches(16, 16)
	p := small()
	n, _ := pretrain(t, p, images, nil)
	path := filepath.Join(t.TempDir(), "model.safetensors")
	must(t, n.Save(path, &model.Description{Images: p.Augmentation.Input()}))
	s, err := model.Load(path)
	must(t, err)
	represent := func(net *model.ResNet[float32], a simclr.Augmentation) []float32 {
		x, h := make([]float32, 16*3*8*8), make([]float32, 16*net.Width())
		must(t, errors.Join(a.EvalBatchTo(x, images, rows(16)), net.RepresentTo(h, x, a.Size, a.Size)))
		return h
	}
	if !slices.Equal(represent(s.ResNet, simclr.EvalTransform(s.Images)), represent(n.ResNet, p.Augmentation)) {
		t.Error("the loaded network represents otherwise")
	}
}

// An epoch of views of half the size takes a quarter of the time, and one without gradients of
// the network a third.
func TestWork(t *testing.T) {
	p := simclr.PaperPretraining()
	if p.Work(3.5) != 3.5 {
		t.Errorf("without stages: %v", p.Work(3.5))
	}
	p.Augmentation.Size = 16
	p.Stages = []simclr.Stage{{Epochs: 4, Size: 8}, {Epochs: 2}, {Epochs: 6, Freeze: []string{"backbone", "fc1"}}}
	for epochs, want := range map[float64]float64{0: 0, 1.5: 1.5 * 64, 4: 4 * 64, 5: 4*64 + 256, 6: 4*64 + 2*256, 9: 4*64 + 3*256, 12: 4*64 + 4*256} {
		if got := p.Work(epochs); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v epochs: %v, want %v", epochs, got, want)
		}
	}
}

// An interrupted run, or one whose hook fails, returns its network.
func TestPretrainingStops(t *testing.T) {
	images := patches(16, 8)
	p := small()
	cause := errors.New("enough")
	p.Hooks = []train.Hook{train.EveryEpochs(2, train.HookFunc(func(*train.State) error { return cause }))}
	if n, r, err := p.Run(context.Background(), images, nil); !errors.Is(err, cause) || r.Epochs != 2 || n == nil {
		t.Errorf("network %v after %d epochs, error %v", n != nil, r.Epochs, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n, r, err := p.Run(ctx, images, nil); !errors.Is(err, context.Canceled) || r.Epochs != 0 || n == nil {
		t.Errorf("network %v after %d epochs, error %v", n != nil, r.Epochs, err)
	}
}

func TestPretrainingRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *simclr.Pretraining, images *images.Set)
		rows   []int32
		want   string
	}{
		"fewer images than a batch": {func(p *simclr.Pretraining, _ *images.Set) { p.BatchSize = 0 }, nil, "train.batch_size: got 1024 for 16 images, want at most"},
		"fewer rows than a batch":   {func(*simclr.Pretraining, *images.Set) {}, rows(7), "train.batch_size: got 8 for 7 images, want at most"},
		"no rows":                   {func(*simclr.Pretraining, *images.Set) {}, []int32{}, "for 0 images, want at most"},
		"unknown row":               {func(*simclr.Pretraining, *images.Set) {}, []int32{0, 16}, "row 1: got image 16, want 0 to 15"},
		"grey images":               {func(_ *simclr.Pretraining, i *images.Set) { i.C, i.W = 1, 24 }, nil, "1 values per pixel"},
		"one pixel":                 {func(_ *simclr.Pretraining, i *images.Set) { *i = *patches(16, 1) }, nil, "images: got a single pixel each, want more"},
		"no pixels":                 {func(_ *simclr.Pretraining, i *images.Set) { i.Pixels = nil }, nil, "images: got 0 bytes for 16 images of 8×8 with 3 colours, want 3 colours"},
		"one image":                 {func(p *simclr.Pretraining, _ *images.Set) { p.BatchSize = 1 }, nil, "train.batch_size: got 1, want"},
		"augmentation":              {func(p *simclr.Pretraining, _ *images.Set) { p.Augmentation.Gray = 2 }, nil, "views.grey: got 2"},
		"negatives":                 {func(p *simclr.Pretraining, _ *images.Set) { p.Negatives = 0 }, nil, "loss.negatives: got 0"},
		"epochs":                    {func(p *simclr.Pretraining, _ *images.Set) { p.Epochs = 0 }, nil, "train.epochs: got 0"},
		"warm-up":                   {func(p *simclr.Pretraining, _ *images.Set) { p.WarmUp = 3 }, nil, "train.warm_up: got 3 with train.epochs 3"},
		"step size":                 {func(p *simclr.Pretraining, _ *images.Set) { p.LR = math.NaN() }, nil, "train.lr: got NaN"},
		"momentum":                  {func(p *simclr.Pretraining, _ *images.Set) { p.Momentum = -1 }, nil, "train.momentum: got -1"},
		"place":                     {func(p *simclr.Pretraining, _ *images.Set) { p.Spectrum = train.FromZBar(3) }, nil, "loss.z_bar: got 3 with loss.name infonc"},
		"width":                     {func(p *simclr.Pretraining, _ *images.Set) { p.Network.Width = -1 }, nil, "network.width: got -1"},
		"loss":                      {func(p *simclr.Pretraining, _ *images.Set) { p.Loss = cosine(op.UMAP) }, nil, "loss.metric: got cosine with loss.name umap"},
		"small views":               {func(p *simclr.Pretraining, _ *images.Set) { p.Network.Small, p.Augmentation.Size = true, 1 }, nil, "views.size: got 1 with network.small true, want 2 or more"},
		"small whole images":        {func(p *simclr.Pretraining, _ *images.Set) { p.Network.Small, p.Augmentation.WholeSize = true, 1 }, nil, "views.whole_size: got 1 with network.small true, want 2 or more"},
		"muon of a plane":           {func(p *simclr.Pretraining, _ *images.Set) { p.Optimizer, p.Loss.Metric = simclr.Muon, op.Euclidean }, nil, "train.optimizer: got muon with loss.metric euclidean, want sgd"},
		"odd views":                 {func(p *simclr.Pretraining, _ *images.Set) { p.Views = 3 }, nil, "views.count: got 3, want an even number"},
		"four views":                {func(p *simclr.Pretraining, _ *images.Set) { p.Views = 4 }, nil, "views.count: got 4 with loss.negatives 4, want 2"},
		"views of no nc":            {func(p *simclr.Pretraining, _ *images.Set) { p.Views, p.Loss = 4, cosine(op.NC) }, nil, "views.count: got 4 with loss.name nc, want 2"},
	} {
		t.Run(name, func(t *testing.T) {
			p, images := small(), patches(16, 8)
			tc.change(&p, images)
			n, _, err := p.Run(context.Background(), images, tc.rows)
			if n != nil || !(errors.Is(err, simclr.ErrOption) || errors.Is(err, simclr.ErrShape)) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The settings of the paper's Table 1.
func TestPaperPretraining(t *testing.T) {
	p := simclr.PaperPretraining()
	if err := p.Check(50000); err != nil {
		t.Error(err)
	}
	want := simclr.Pretraining{
		Augmentation: simclr.Augmentation{
			Size: 32, MinScale: 0.2, MaxScale: 1, MinRatio: 0.75, MaxRatio: 4. / 3, Flip: 0.5,
			Jitter: 0.8, Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1, Gray: 0.2,
			Mean: [3]float32{.4914, .4822, .4465}, Std: [3]float32{.2023, .1994, .2010},
		},
		Loss:  op.ContrastiveOptions{Loss: op.InfoNC, Metric: op.Cosine, Temperature: 0.5, Scale: 0.5, Mean: true},
		Views: 2, BatchSize: 1024, Negatives: 16, Sampling: train.SamplePerHead,
		Epochs: 1000, WarmUp: 5, LR: 0.12, Schedule: train.Cosine,
		Momentum: 0.9, WeightDecay: 5e-4, Clip: 4,
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got\n%+v, want\n%+v", p, want)
	}
}

// In bfloat16, too, a seed gives the same network on any number of cores, a resumed run has
// the same bits, and checkpoints of the other precision are refused. The losses are near
// float32's, up to rounding by 2 to 3 % in each of 20 layers, but not the same.
func TestPretrainingInBFloat16(t *testing.T) {
	images := patches(16, 8)
	p := small()
	p.Network.Width, p.Epochs, p.Precision = 16, 2, op.BFloat16
	if !p.Precision.Native() {
		p.Network.Width = 8 // the deeper half is in bfloat16
	}
	saved, n, r := resumesAnywhere(t, p, images)
	for i, c := range saved {
		if c.Progress.Precision != "bf16" {
			t.Errorf("checkpoint %d says that its precision is %q", i, c.Progress.Precision)
		}
	}
	p.Resume = saved[len(saved)-1]
	p.Precision = op.Float32
	if _, _, err := p.Run(context.Background(), images, nil); !errors.Is(err, train.ErrCheckpoint) || !strings.Contains(err.Error(), "precision of its run: got bf16") {
		t.Errorf("a checkpoint of bf16 in float32: error %v", err)
	}
	p.Resume = nil
	_, exact := pretrain(t, p, images, nil)
	if off := math.Abs(r.Loss/exact.Loss - 1); off == 0 || off > 0.15 {
		t.Errorf("the loss is %g, and %g in float32", r.Loss, exact.Loss)
	}
	// What was trained in bfloat16 is used in float32.
	features := make([]float32, n.Width())
	must(t, n.RepresentTo(features, make([]float32, 3*8*8), 8, 8))
}
