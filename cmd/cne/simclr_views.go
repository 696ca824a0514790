package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/text"
)

func simclrViewsCmd() *cobra.Command {
	var output string
	var count, views, epoch, zoom int
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
			if count < 1 || views < 1 || zoom < 1 || epoch < 1 {
				return cli.Usage(cmd, fmt.Errorf("--images, --views, --zoom and --epoch must be at least 1"))
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
