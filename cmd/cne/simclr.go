package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data/file"
	"cne/data/images"
	"cne/internal/app/cli"
	"cne/internal/app/report"
	"cne/internal/app/rundir"
	"cne/internal/ctxio"
	"cne/internal/memory"
	"cne/internal/text"
	"cne/simclr"
)

func simclrCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simclr",
		Short: "Learn to represent images",
		Long: `Train a network (ResNet18) that represents images as vectors, from nothing but
the images: two random views of an image are drawn towards each other and away
from those of others. How good the representation is shows in what simple
classifiers make of it, for which the images need labels.

A configuration has its own keys here; "cne simclr config" prints them.`,
		Args: cli.KnownCommand,
		RunE: cli.ShowHelp,
	}
	cmd.AddCommand(simclrConfigCmd(), simclrEvaluateCmd(), simclrFeaturesCmd(), simclrPretrainCmd(), simclrProjectCmd(), simclrViewsCmd())
	return cmd
}

func simclrConfigCmd() *cobra.Command {
	return printCmd(configs.Pretrain, &cobra.Command{
		Use:   "config",
		Short: "Print or check the configuration of a pretraining",
		Long: `Print the configuration of a pretraining as YAML: every key with its meaning,
and with the value that it has after the defaults, the file given with --config,
the environment (CNE_TRAIN_EPOCHS is train.epochs) and the flags, each
overriding the ones before.`,
		Example: `  cne simclr config > my.yaml
  cne simclr config --config my.yaml --set loss.negatives=2
  cne simclr config --config my.yaml --check`,
	})
}

// openImages reads the images of a configuration. key is the key with their paths, such
// as data.path.
func openImages(ctx context.Context, r *cli.Reporter, c *configs.ImageData, key string) (*images.Set, error) {
	if err := c.CheckFiles(key); err != nil {
		return nil, err
	}
	o := c.Options()
	o.Progress = r.ProgressLogger("reading the images")
	set, err := ctxio.Await(ctx, func() (*images.Set, error) { return images.Open(ctx, c.Path, o) })
	switch {
	case ctx.Err() != nil:
		return nil, errors.New("interrupted while the images were read; nothing was written")
	case errors.Is(err, images.ErrSizes):
		return nil, fmt.Errorf("%w (data.size)", err)
	case errors.Is(err, images.ErrBroken):
		return nil, fmt.Errorf("%w, or have them left out (data.skip_broken)", err)
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
	output := "features.npy"
	cmd := &cobra.Command{
		Use:   "features RUN INPUT",
		Short: "Represent images by a trained network",
		Long: `Represent images by the network of a run, write an array (npy) with a row for
each image, in the order in which they are read, and print its path. RUN is the
folder of a run, or the file of a network; INPUT is whatever data.path may be.
Images of another size than the network's views are scaled to that; images of
several sizes need --set data.size=…, which brings them to one.`,
		Example: `  cne simclr features runs/simclr-cifar10 photos -o photos.npy
  cne train photos.npy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s: got %d arguments, want two, the folder of a run and the images", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			return represent(cmd, args[0], args[1:], output, false, ".npy")
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, instead of the run's")
	cmd.Flags().StringVarP(&output, "output", "o", output, "`file` for the array, which ends in .npy")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"npy"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

func simclrProjectCmd() *cobra.Command {
	var run string
	output := "positions.csv"
	cmd := &cobra.Command{
		Use:   "project --model RUN INPUT…",
		Short: "Place new images with a trained network",
		Long: `Place images where a run's network puts them, among those of its embedding, and
write the positions as a table (csv, with the labels and the names of the files if
there are any) or an array (npy), in the order in which the images are read. RUN is
the folder of a run, or the file of a network; INPUT is whatever data.path may be.`,
		Example: `  cne simclr project --model runs/photos new-photos -o new.csv`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || run == "" {
				return fmt.Errorf("%s needs --model, the folder of a run, and an argument, the images", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return represent(cmd, run, args, output, true, ".csv", ".npy")
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, instead of the run's")
	cmd.Flags().StringVarP(&run, "model", "m", "", "run folder, or `file` with the network")
	cmd.Flags().StringVarP(&output, "output", "o", output, "positions, a `file` that ends in .csv or .npy")
	return cmd
}

// represent writes the network's output for images: of its head, or its representations.
// endings are the allowed endings of the output.
func represent(cmd *cobra.Command, run string, inputs []string, output string, head bool, endings ...string) (err error) {
	if err := cli.CheckEnding("--output", output, endings...); err != nil {
		return cli.Usage(cmd, err)
	}
	if err := (cli.Output{Flag: "--output", Path: output}).Check(append(inputs, run)...); err != nil {
		return err
	}
	t, err := openRepresentation(cmd, run, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.device.Close()) }()
	from := t.config.Data
	images, err := openImages(cmd.Context(), t.Reporter, &configs.ImageData{Path: inputs, Size: from.Size, SkipBroken: from.SkipBroken}, "INPUT")
	if err != nil {
		return err
	}
	use := memory.Images{Represented: images.N}
	if head {
		t.encoder, use = simclr.Projection{ResNet: t.network}, memory.Images{Placed: images.N}
	}
	if err := t.checkMemory(use); err != nil {
		return err
	}
	features, err := t.features(cmd.Context(), images)
	if err != nil {
		return err
	}
	if err := rundir.WriteFile(output, func(w io.Writer) error {
		if strings.HasSuffix(strings.ToLower(output), ".csv") {
			return file.WriteCSV(w, features, images.Labels, images.Names)
		}
		return file.WriteNPY(w, features)
	}); err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(output))
	return err
}

func simclrViewsCmd() *cobra.Command {
	var output string
	var count, views, epoch, zoom int
	cmd := &cobra.Command{
		Use:   "views",
		Short: "Draw images next to their random views",
		Long: `Draw some of the images, each in a row with its views, to see what the
augmentation of a configuration does, and print the path of the picture (PNG).
The first two views of an image are those that a pretraining with this
configuration sees in the given epoch.`,
		Example: `  cne simclr views --config configs/simclr-cifar10.yaml
  cne simclr views --set data.path=photos --set data.size=64 --set views.size=64 --set views.hue=0.5 -o strong.png`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 || views < 1 || zoom < 1 || epoch < 1 {
				return cli.Usage(cmd, fmt.Errorf("--images, --views, --zoom and --epoch: want 1 or more"))
			}
			if err := cli.CheckEnding("--output", output, ".png"); err != nil {
				return cli.Usage(cmd, err)
			}
			c, _, err := cli.Config(configs.Pretrain, cmd)
			if err != nil {
				return err
			}
			if err := (cli.Output{Flag: "--output", Path: output}).Check(c.Inputs()...); err != nil {
				return err
			}
			images, err := openImages(cmd.Context(), cli.NewReporter(cmd, c.Log.Format), &c.Data, "data.path")
			if err != nil {
				return err
			}
			rows := make([]int32, min(count, images.N))
			for i := range rows {
				rows[i] = int32(i * images.N / len(rows))
			}
			a := c.Pretraining().Augmentation
			if err := rundir.WriteFile(output, func(w io.Writer) error {
				return a.Grid(w, images, rows, views, epoch-1, c.Pretrain.Seed, zoom)
			}); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(output))
			return err
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file` with the keys that differ from the defaults")
	flags := cmd.Flags()
	flags.StringVarP(&output, "output", "o", "views.png", "picture, a `file` that ends in .png")
	flags.IntVar(&count, "images", 8, "`number` of images, taken at even distances from all")
	flags.IntVar(&views, "views", 8, "`number` of views of each")
	flags.IntVar(&epoch, "epoch", 1, "`epoch` in which the views are drawn, counted from 1")
	flags.IntVar(&zoom, "zoom", 3, "`side` of a view's pixel in the picture")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"png"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}
