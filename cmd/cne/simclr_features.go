package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data"
	"cne/internal/atomicfile"
	"cne/internal/cli"
	"cne/internal/text"
)

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
				return fmt.Errorf("%s needs two arguments, the folder of a run and the images, but got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := cli.CheckEnding("--output", output, ".npy"); err != nil {
				return cli.Usage(cmd, err)
			}
			if err := (cli.Output{Flag: "--output", Path: output}).Check(args...); err != nil {
				return err
			}
			t, err := openRepresentation(cmd, args[0], false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, t.device.Close()) }()
			images, err := openImages(cmd.Context(), &configs.ImageData{Path: args[1:], Size: t.config.Data.Size}, "INPUT")
			if err != nil {
				return err
			}
			features, err := t.features(cmd.Context(), images)
			if err != nil {
				return err
			}
			if err := atomicfile.Write(output, func(w io.Writer) error { return data.WriteNPY(w, features) }); err != nil {
				return fmt.Errorf("cannot write %s: %w", output, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(output))
			return err
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, in place of that of the run")
	cmd.Flags().StringVarP(&output, "output", "o", output, "`file` for the array, which ends in .npy")
	cli.MustComplete(cmd, "output", cobra.FixedCompletions([]string{"npy"}, cobra.ShellCompDirectiveFilterFileExt))
	return cmd
}
