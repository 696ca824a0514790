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
	"cne/internal/kind"
)

func sweepCmd() *cobra.Command {
	var only int
	var count, report bool
	cmd := &cobra.Command{
		Use:   "sweep FILE",
		Short: "Make many runs that differ in some keys",
		Long: `Make the runs that a YAML file describes (docs/guide.md, Many runs): every
combination of the values of its axes is a run. Finished runs are skipped,
interrupted ones continue, and failed ones are tried again. Several processes
may work on one sweep; --only is for job arrays. When all runs have ended, or
with --report, report.csv in the folder of the sweep gets a row of scores for
each run, or their means and standard deviations over seeds.`,
		Example: `  cne sweep losses.yaml`,
		Args:    cli.Exactly(1, "one, the file that describes the runs"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		defer kind.Catch(&err)
		one := cmd.Flags().Changed("only")
		if one && report || one && count || report && count {
			return cli.Usage(cmd, errors.New("--only, --count and --report: got several, want one of them"))
		}
		described := kind.Got(configs.ReadSweep(cmd.Context(), args[0], os.Environ()))
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
		s.Program, err = os.Executable()
		kind.Checkf(err, "cannot find this program: %w", err)
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
	cmd.Flags().IntVar(&only, "only", 0, "make only the run of this `number`, counted from 0")
	cmd.Flags().BoolVar(&count, "count", false, "print the number of runs")
	cmd.Flags().BoolVar(&report, "report", false, "write the report of the runs that have succeeded, and make none")
	return cmd
}
