package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/data/file"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/memory"
	"cne/internal/text"
	"cne/simclr"
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
			return represent(cmd, args[0], args[1:], output, false, ".npy")
		},
	}
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, in place of that of the run")
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
	cli.AddSourceFlags(configs.Pretrain, cmd, "configuration, a YAML `file`, in place of that of the run")
	cmd.Flags().StringVarP(&run, "model", "m", "", "run folder, or `file` with the network")
	cmd.Flags().StringVarP(&output, "output", "o", output, "positions, a `file` that ends in .csv or .npy")
	return cmd
}

// represent writes what the network of a run makes of images: the output of its head, or
// its representations. endings are those that the output may have.
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
