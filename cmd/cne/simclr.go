package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data/images"
	"cne/internal/app/cli"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/kind"
	"cne/internal/memory"
	"cne/internal/selection"
	"cne/internal/text"
	"cne/simclr"
)

func simclrCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simclr",
		Short: "Learn to represent images",
		Long: `Train a network (a ResNet) to represent images as vectors, from nothing but the
images. Training draws two random views of each image towards each other, and
away from the views of other images. The accuracy of simple classifiers shows
how good the representation is; they need labels.

The configuration has keys of its own: see "cne simclr config".`,
		Args: cli.KnownCommand,
		RunE: cli.ShowHelp,
	}
	cmd.AddCommand(printCmd(configs.Pretrain, "cne simclr config", "loss.negatives=2"),
		simclrEvaluateCmd(), simclrFeaturesCmd(), simclrPretrainCmd(), simclrProjectCmd())
	return cmd
}

// openImages reads the images of a configuration. key is the key with their paths, such
// as data.path.
func openImages(ctx context.Context, r *cli.Reporter, c *configs.ImageData, key string) (*images.Set, error) {
	if err := c.CheckFiles(key); err != nil {
		return nil, err
	}
	o := c.Options
	o.Progress = r.ProgressLogger("reading the images")
	set, err := ctxio.Await(ctx, func() (*images.Set, error) { return images.Open(ctx, c.Path, o) })
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted while the images were read; nothing was written")
	case errors.Is(err, images.ErrSizes):
		return nil, fmt.Errorf("%w (data.size)", err)
	case errors.Is(err, images.ErrBroken):
		return nil, fmt.Errorf("%w; data.skip_broken: true leaves them out", err)
	case err != nil:
		return nil, err
	case set.H == 1 && set.W == 1:
		return nil, fmt.Errorf("%s: got images of a single pixel, want larger ones (%s)", set.Name, key)
	case set.C == 1:
		r.Log.Info("the images are in greyscale; each value stands for red, green and blue", "images", set.Name)
		set = set.InColour()
	}
	report.WarnSkipped(r.Log, set)
	return set, nil
}

func simclrFeaturesCmd() *cobra.Command {
	output, whiten := "features.npy", false
	cmd := &cobra.Command{
		Use:   "features RUN INPUT",
		Short: "Represent images by a trained network, as an array",
		Long: `Represent images by the network of a run, write an array (.npy) with a row per
image, in the order of reading, and print its path. RUN is a run folder, or the
file of a network; INPUT is anything that data.path takes. Images are scaled to
the size of the views, or to views.whole_size; images of several sizes need
--set data.size=…, which brings them to one size first.

--whiten divides by the standard deviation along each of the representations'
principal axes. These are INPUT's, so arrays of different images do not fit each
other, and INPUT must have more images than a representation has values. If it
has many more, a map separates classes better.`,
		Example: `  cne simclr features runs/simclr-cifar10 photos -o photos.npy
  cne train photos.npy --metric cosine
  cne simclr features runs/simclr-cifar10 photos --whiten -o white.npy
  cne train white.npy --metric cosine --set graph.pca=0`,
		Args: cli.Exactly(2, "two, the folder of a run and the images"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			t := &representation{whiten: whiten}
			return t.represent(cmd, args[0], args[1:], output, ".npy")
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "YAML `file` to use instead of the configuration of the run")
	cmd.Flags().StringVarP(&output, "output", "o", output, "`file` for the array, .npy")
	cmd.Flags().BoolVar(&whiten, "whiten", false, "divide by the standard deviation along each principal axis")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"npy"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

func simclrProjectCmd() *cobra.Command {
	var run string
	output := "positions.csv"
	cmd := &cobra.Command{
		Use:   "project --model RUN INPUT…",
		Short: "Place new images with a trained network",
		Long: `Place images in the map of a run, and write their positions as a table (.csv,
with labels and file names if there are any) or an array (.npy), in the order of
reading. RUN is a run folder, or the file of a network; INPUT is anything that
data.path takes.`,
		Example: `  cne simclr project --model runs/photos new-photos -o new.csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || run == "" {
				return fmt.Errorf("%s needs --model, the folder of a run, and an argument, the images", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t := &representation{head: true}
			return t.represent(cmd, run, args, output, ".csv", ".npy")
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "YAML `file` to use instead of the configuration of the run")
	cmd.Flags().StringVarP(&run, "model", "m", "", "run `folder`, or file with the network")
	cmd.Flags().StringVarP(&output, "output", "o", output, "`file` for the positions, .csv or .npy")
	return cmd
}

// represent writes the network's output for images: of its head, or its representations.
// endings are the allowed endings of the output.
func (t *representation) represent(cmd *cobra.Command, run string, inputs []string, output string, endings ...string) (err error) {
	defer func() { err = errors.Join(err, t.device.Close()) }()
	defer kind.Catch(&err)
	kind.Check(cli.Usage(cmd, cli.CheckEnding("--output", output, endings...)))
	kind.Check((cli.Output{Flag: "--output", Path: output}).Check(append(inputs, run)...))
	kind.Check(t.open(cmd, run, false))
	from := t.config.Data
	from.Path, from.Labels = inputs, nil
	images := kind.Got(openImages(cmd.Context(), t.Reporter, &from, "INPUT"))
	if width := t.network.Width(); t.whiten && images.N <= width {
		return fmt.Errorf("--whiten: %s: got %d images, want more than the %d values of a representation", images.Name, images.N, width)
	}
	use := memory.Images{Represented: selection.If(t.whiten, 2, 1) * images.N}
	if t.head {
		t.encoder, use = simclr.Projection{ResNet: t.network}, memory.Images{Placed: images.N}
	}
	kind.Check(t.checkMemory(use))
	features := kind.Got(t.features(cmd.Context(), images))
	if t.whiten {
		features = kind.Got(simclr.Whiten(cmd.Context(), features, nil))
	}
	kind.Check(rundir.WriteEmbedding([]string{output}, features, images.Labels, images.Names))
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(output))
	return err
}
