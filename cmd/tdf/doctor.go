package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

func newDoctor(a *app) *cobra.Command {
	asJSON, quiet, configOnly := false, false, false
	c := &cobra.Command{
		Use: "doctor", Short: "Diagnose problems and suggest fixes",
		Long: "Checks Redis (its version, settings and memory), the server, the workers, and tasks that run or wait too long. It suggests a fix for\n" +
			"each problem. Exit status 3 means that it has found a problem. With --config-only, the command checks only the configuration.",
		Example: "  tdf doctor --quiet || mail -s 'TDF has a problem' root",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if configOnly {
				return a.checkConfig()
			}
			return a.withManager(c.Context(), func(m *client) error { return a.doctor(c.Context(), m, asJSON, quiet) })
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "only problems")
	c.Flags().BoolVar(&configOnly, "config-only", false, "check of the configuration only, without a connection to Redis")
	return c
}

func (a *app) checkConfig() error {
	tool, err := a.tool()
	if err != nil {
		return err
	}
	a.say("%s: the configuration is valid: namespace %s, redis at %s", cmp.Or(tool.File, "no file"), tool.Manager.Namespace, tool.Manager.Redis.Addr())
	return nil
}

func (a *app) doctor(ctx context.Context, m *client, asJSON, quiet bool) error {
	all, err := m.admin().Diagnose(ctx)
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
		if err := a.printDiagnosis(d, asJSON); err != nil {
			return err
		}
	}
	if !well {
		return errProblems
	}
	return nil
}

// printDiagnosis prints a diagnosis and its fix on one line. On a terminal, the fix gets a separate line.
func (a *app) printDiagnosis(d admin.Diagnosis, asJSON bool) error {
	d.Fix.Text = withCommands(d.Fix, 0)
	subject, text, fix := oneLine(d.Subject, 0), oneLine(d.Text, 0), oneLine(d.Fix.Text, 0)
	var err error
	switch {
	case asJSON:
		err = jsonLines(a.stdout).Encode(d)
	case !a.terminal.out:
		_, err = fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\n", d.Severity, subject, text, fix)
	default:
		_, err = fmt.Fprintf(a.stdout, "%-8s %s: %s\n", d.Severity, subject, text)
		if fix != "" && err == nil {
			_, err = fmt.Fprintf(a.stdout, "%-8s   fix: %s\n", "", fix)
		}
	}
	return err
}
