package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cne/configs"
	"cne/internal/app/cli"
	"cne/internal/app/sweep"
)

func sweepCmd() *cobra.Command {
	var only int
	var count, report bool
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Carry out many runs that differ in some keys",
		Long: `Carry out the runs that a YAML file describes: its axes are keys with lists of
values, of which every combination is a run, as in docs/guide.md. Runs that have
succeeded are skipped, interrupted ones continue, and failed ones are tried again.
Several processes may work on one sweep; --only is for job arrays. When all have
ended, or with --report, report.csv in its folder gets the figures of the runs.`,
		Example: `  cne sweep losses.yaml`,
		Args:    cli.ExactlyOne("the file that describes the runs"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		one := cmd.Flags().Changed("only")
		if one && report || one && count || report && count {
			return cli.Usage(cmd, errors.New("--only, --count and --report: got several, want one of them"))
		}
		described, err := configs.ReadSweep(cmd.Context(), args[0], os.Environ())
		if err != nil {
			return err
		}
		if count {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), len(described.Runs))
			return err
		}
		from, to := 0, len(described.Runs)
		if one && (only < 0 || only >= to) {
			return cli.Usage(cmd, fmt.Errorf("--only: got %d, want 0 to %d, the runs of %s", only, to-1, args[0]))
		} else if one {
			from, to = only, only+1
		}
		s := &sweep.Sweep{
			Sweep: described, Stderr: cmd.ErrOrStderr(), Log: cli.NewReporter(cmd, cli.LogFormat(cmd)).Log,
			Flags: []string{"--log-format", cli.LogFormat(cmd), fmt.Sprintf("--quiet=%v", cli.Quiet(cmd))},
		}
		if s.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("cannot find this program: %w", err)
		}
		if report {
			return s.Report(cmd.OutOrStdout())
		}
		elsewhere, err := s.Run(cmd.Context(), from, to)
		if one || elsewhere > 0 || cmd.Context().Err() != nil {
			return err
		}
		// Successful runs are reported even if others have failed.
		return cmp.Or(err, s.Report(cmd.OutOrStdout()))
	}
	cmd.Flags().IntVar(&only, "only", 0, "carry out only the run of this `number`, counted from 0")
	cmd.Flags().BoolVar(&count, "count", false, "print how many runs there are")
	cmd.Flags().BoolVar(&report, "report", false, "report on the runs that have succeeded, and carry none out")
	return cmd
}
