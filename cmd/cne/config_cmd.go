package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
)

func configCmd() *cobra.Command {
	return printCmd(configs.Train, &cobra.Command{
		Use:   "config",
		Short: "Print or check the configuration of a run",
		Long: `Print the configuration of a run as YAML: every key with its meaning, and with
the value that it has after the defaults, the file given with --config, the
environment (CNE_TRAIN_EPOCHS is train.epochs) and the flags, each overriding
the ones before.`,
		Example: `  cne config > my.yaml
  cne config --config my.yaml --set loss.s=0.5 --set train.phases='[{epochs: 10}]'
  cne config --config my.yaml --check`,
	})
}

// printCmd makes a command print configurations.
func printCmd[C any](s *configs.Schema[C], cmd *cobra.Command) *cobra.Command {
	var checkOnly bool
	cmd.Args = cli.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, origins, err := cli.Config(s, cmd)
		if err != nil {
			return err
		}
		if checkOnly {
			report, err := s.Report(cmd.Context(), c, origins)
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), report)
			}
			return err
		}
		var yaml bytes.Buffer
		if err := s.Write(&yaml, c); err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(yaml.Bytes())
		return err
	}
	cli.AddFlags(s, cmd)
	cmd.Flags().BoolVar(&checkOnly, "check", false, "print what memory a run takes; the exit code says whether the configuration is right")
	return cmd
}
