package operate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/format"
)

func Doctor(a *cli.App) *cobra.Command {
	asJSON, quiet, configOnly := false, false, false
	c := &cobra.Command{
		Use: "doctor", Short: "Diagnose problems and suggest fixes",
		Long: "Checks Redis (its version, settings and memory), the server, the workers, and tasks that run or wait " +
			"too long. It suggests a fix for\n" +
			"each problem. Exit status 3 means that it has found a problem. With --config-only, the command checks " +
			"only the configuration.",
		Example: "  tdf doctor\n  tdf doctor --quiet || mail -s 'TDF has a problem' root",
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if configOnly {
				return checkConfig(a)
			}
			return a.WithManager(c.Context(), func(m *cli.Client) error {
				return diagnose(c.Context(), a, m, asJSON, quiet)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "only problems")
	c.Flags().BoolVar(&configOnly, "config-only", false,
		"check of the configuration only, without a connection to Redis")
	return c
}

func checkConfig(a *cli.App) error {
	tool, err := a.Tool()
	if err != nil {
		return err
	}
	if tool.WorkerAPI != nil {
		return tool.WorkerAPI
	}
	at := "redis at " + tool.Manager.Redis.Addr()
	if api := tool.Worker.API.URL; api != "" {
		at = "a worker over the API at " + api
	}
	a.Say("%s: the configuration is valid: namespace %s, %s", cmp.Or(tool.File, "no file"),
		tool.Manager.Namespace, at)
	return nil
}

func diagnose(ctx context.Context, a *cli.App, m *cli.Client, asJSON, quiet bool) error {
	all, err := m.Admin().Diagnose(ctx)
	if err != nil {
		return err
	}
	well := true
	for _, d := range all {
		bad := d.Severity == admin.SeverityProblem
		well = well && !bad
		if quiet && !bad {
			continue
		}
		if err := printDiagnosis(a, d, asJSON); err != nil {
			return err
		}
	}
	if !well {
		return cli.ErrProblems
	}
	return nil
}

// printDiagnosis prints a diagnosis and its fix on one line. On a terminal, the fix gets a separate line.
func printDiagnosis(a *cli.App, d admin.Diagnosis, asJSON bool) error {
	d.Fix.Text = cli.WithCommands(d.Fix, "")
	subject, text, fix := format.OneLine(d.Subject, 0), format.OneLine(d.Text, 0), format.OneLine(d.Fix.Text, 0)
	var err error
	switch {
	case asJSON:
		err = cli.JsonLines(a.Stdout).Encode(d)
	case !a.Terminal.Out:
		_, err = fmt.Fprintf(a.Stdout, "%s\t%s\t%s\t%s\n", d.Severity, subject, text, fix)
	default:
		_, err = fmt.Fprintf(a.Stdout, "%-8s %s: %s\n", d.Severity, subject, text)
		if fix != "" && err == nil {
			_, err = fmt.Fprintf(a.Stdout, "%-8s   fix: %s\n", "", fix)
		}
	}
	return err
}
