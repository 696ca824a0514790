package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"cne"
	"cne/internal/app/cli"
	"cne/internal/app/rundir"
	"cne/internal/atomicfile"
	"cne/internal/kind"
	"cne/internal/text"
)

func exportCmd() *cobra.Command {
	var run string
	var represent bool
	cmd := &cobra.Command{
		Use:   "export --model RUN_OR_FILE OUTPUT.onnx",
		Short: "Write a trained network as an ONNX file",
		Long: `Write the network of a run as an ONNX file, which programs in many languages run:
onnxruntime, OpenCV and others. --model is a run folder, or the file of a network.

Scaling, normalisation and principal components are inside: the input "points"
[N, columns] are points as they are in the files, in the order of training, and
the output "positions" are their positions, to about 1e-6 of the largest. The
input of a network for images is "images" [N, 3, height, width], with pixels from
0 to 1. Points that float32 does not hold, such as times in milliseconds, are
float64. Networks of counts, and of points with missing values, are refused.`,
		Example: `  cne export --model runs/mnist mnist.onnx
  cne export --model runs/simclr-cifar10 --representation encoder.onnx`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || run == "" {
				return fmt.Errorf("%s needs --model, the folder of a run, and an argument, the file to write", cmd.CommandPath())
			}
			return cli.CheckEnding("OUTPUT", args[0], ".onnx")
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer kind.Catch(&err)
			kind.Check((cli.Output{Flag: "OUTPUT", Path: args[0]}).Check(run))
			var write func(w io.Writer) error
			e, err := loadModel(run)
			switch {
			case errors.Is(err, cne.ErrImages):
				saved := kind.Got(rundir.LoadImageNetwork(cli.NewReporter(cmd, cli.LogFormat(cmd)).Log, run))
				write = func(w io.Writer) error { return saved.ResNet.WriteONNX(w, saved.Images, represent) }
			case err != nil:
				return err
			case represent:
				return fmt.Errorf("%s: got a model of points, want one of images for --representation", run)
			default:
				write = e.WriteONNX
			}
			if err := atomicfile.Write(args[0], write); err != nil {
				return fmt.Errorf("%s: %w", run, err)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text.Escape(args[0]))
			return err
		},
		ValidArgsFunction: cobra.FixedCompletions([]string{"onnx"}, cobra.ShellCompDirectiveFilterFileExt),
	}
	cmd.Flags().StringVarP(&run, "model", "m", "", "run `folder`, or file with the network")
	cmd.Flags().BoolVar(&represent, "representation", false, "of a network for images, write the representation instead of the head's output")
	return cmd
}
