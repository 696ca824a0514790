package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/cli"
	"cne/internal/sweep"
)

func sweepCmd() *cobra.Command {
	var only int
	var count, report bool
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Carry out many runs that differ in some keys",
		Long: `Carry out the runs that a YAML file describes: a configuration, and the keys in
which the runs differ.

  config: base.yaml          # of all runs, beside this file; without it the defaults
  set: {train.epochs: 250}   # keys of all runs, on top of it
  output: runs/losses        # the folder of the runs; without it runs/ and this file's name
  axes:                      # every combination of these values is a run
    loss.name: [neg, infonce]
    seed: [0, 1, 2]
  runs: [{graph.k: 15}, {graph.k: 30}]  # or these are, with every combination of the axes
  command: train             # or simclr pretrain

The runs are numbered from 0 and have a folder each. They share principal
components and neighbours, which are found once. What is done is skipped, what
was interrupted goes on, and a run that fails is told at the end and tried again
the next time. Several processes, on one machine or on many, may work on one
sweep at once; --only is for job arrays.

When all are done, or with --report, tables (report.csv, and report.md with mean
and standard deviation over seeds), curves along every axis of numbers, and an
explorer of all embeddings are made of what they gave.`,
		Example: `  cne sweep losses.yaml
  cne sweep losses.yaml --count
  cne sweep losses.yaml --only 3
  cne sweep losses.yaml --report`,
		Args: cli.ExactlyOne("the file that describes the runs"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		one := cmd.Flags().Changed("only")
		if one && report || one && count || report && count {
			return cli.Usage(cmd, errors.New("--only, --count and --report are given together; give one of them"))
		}
		described, err := configs.ReadSweep(cmd.Context(), args[0], os.Environ())
		if err != nil {
			return err
		}
		if count {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), len(described.Runs))
			return err
		}
		if one && (only < 0 || only >= len(described.Runs)) {
			return cli.Usage(cmd, fmt.Errorf("--only is %d, but the runs of %s are numbered from 0 to %d", only, args[0], len(described.Runs)-1))
		}
		s := &sweep.Sweep{Sweep: described, Log: cli.Reporter(cmd, cli.LogFormat(cmd)).Log, Stderr: cmd.ErrOrStderr()}
		if s.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("cannot find this program: %w", err)
		}
		s.Flags = []string{"--log-format", cli.LogFormat(cmd)}
		if cli.Quiet(cmd) {
			s.Flags = append(s.Flags, "--quiet")
		}
		if err := s.Open(); err != nil {
			return err
		}
		switch {
		case one:
			return s.CarryOutOne(cmd.Context(), only)
		case report:
			return s.PrintReport(cmd.Context(), cmd.OutOrStdout())
		}
		return s.CarryOut(cmd.Context(), cmd.OutOrStdout())
	}
	cmd.Flags().IntVar(&only, "only", 0, "carry out the run of this `number` alone, counted from 0")
	cmd.Flags().BoolVar(&count, "count", false, "print how many runs there are")
	cmd.Flags().BoolVar(&report, "report", false, "report on the runs that are done, and carry none out")
	return cmd
}
