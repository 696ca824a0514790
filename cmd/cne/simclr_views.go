package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/atomicfile"
	"cne/internal/cli"
)

func simclrViewsCmd() *cobra.Command {
	v := viewing{output: "views.png", images: 8, views: 8, zoom: 3}
	cmd := &cobra.Command{
		Use:   "views",
		Short: "Draw images beside their random views",
		Long: `Draw some of the images, each in a row with its views, to see what the
augmentation of a configuration does, and print the path of the picture (PNG).
The first two views of an image are those that a pretraining with this
configuration sees in the given epoch.`,
		Example: `  cne simclr views --config configs/simclr-cifar10.yaml
  cne simclr views --set data.path=photos --set data.size=64 --set views.size=64 --set views.hue=0.5 -o strong.png`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if v.images < 1 || v.views < 1 || v.zoom < 1 || v.epoch < 1 {
				return cli.Usage(cmd, fmt.Errorf("--images, --views, --zoom and --epoch must be at least 1"))
			}
			if err := cli.CheckEnding("--output", v.output, ".png"); err != nil {
				return cli.Usage(cmd, err)
			}
			c, _, err := cli.Config(configs.Pretrain, cmd)
			if err != nil {
				return err
			}
			if err := v.draw(cmd.Context(), c); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), v.output)
			return err
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file` with the keys that differ from the defaults")
	flags := cmd.Flags()
	flags.StringVarP(&v.output, "output", "o", v.output, "picture, a `file` that ends in .png")
	flags.IntVar(&v.images, "images", v.images, "`number` of images, taken at even distances from all")
	flags.IntVar(&v.views, "views", v.views, "`number` of views of each")
	flags.IntVar(&v.epoch, "epoch", 1, "`epoch` in which the views are drawn, counted from 1")
	flags.IntVar(&v.zoom, "zoom", v.zoom, "`side` of a view's pixel in the picture")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"png"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}

// viewing is one run of cne simclr views.
type viewing struct {
	output                     string
	images, views, epoch, zoom int
}

func (v *viewing) draw(ctx context.Context, c *configs.SimCLR) error {
	if err := cli.CheckOutput("--output", v.output, c.Data.Path...); err != nil {
		return err
	}
	images, err := openImages(ctx, &c.Data, "data.path")
	if err != nil {
		return err
	}
	rows := make([]int32, min(v.images, images.N))
	for i := range rows {
		rows[i] = int32(i * images.N / len(rows))
	}
	a := c.Views.Augmentation()
	if err := atomicfile.Write(v.output, func(w io.Writer) error {
		return a.Grid(w, images, rows, v.views, v.epoch-1, c.Seed, v.zoom)
	}); err != nil {
		return fmt.Errorf("cannot draw %s: %w", v.output, err)
	}
	return nil
}
