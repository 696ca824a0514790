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
	"cne/internal/ctxio"
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

// openImages reads the images of a configuration. key is what names them, such
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
		return nil, fmt.Errorf("%s: the images have a single pixel each; give larger ones (%s)", set.Name, key)
	case set.C == 1:
		r.Log.Info("the images are in greyscale; each value stands for red, green and blue", "images", set.Name)
		set = set.InColour()
	}
	if n := len(set.Skipped); n > 0 {
		r.Log.Warn("images that cannot be read are left out", "count", n, "files", report.Skipped(set))
	}
	return set, nil
}
