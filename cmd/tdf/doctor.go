package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/admin"
)

func newDoctor(a *app) *cobra.Command {
	asJSON, quiet, configOnly := false, false, false
	c := &cobra.Command{
		Use: "doctor", Short: "Say what is not well, and how it is cured",
		Long: "Looks at Redis, its version, settings and memory, at server and workers, and at tasks that run or wait for too long. Each\n" +
			"finding comes with its cure. Exit status 3: there is a problem. For cron: tdf doctor --quiet.\n" +
			"With --config-only it reads the configuration, says what is wrong with it, and ends.",
		Example: "  tdf doctor --quiet || mail -s 'TDF is not well' root",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if configOnly {
				return a.checkConfig()
			}
			return a.doctor(c.Context(), asJSON, quiet)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object a line")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "only problems")
	c.Flags().BoolVar(&configOnly, "config-only", false, "only check the configuration")
	return c
}

func (a *app) checkConfig() error {
	tool, err := a.tool()
	if err != nil {
		return err
	}
	file := a.configFile()
	if file == "" {
		file = "no file"
	}
	a.say("%s: the configuration makes sense: namespace %s, redis at %s", file, tool.Manager.Namespace, tool.Manager.Redis.Addr())
	return nil
}

func (a *app) doctor(ctx context.Context, asJSON, quiet bool) error {
	m, err := a.manager(ctx)
	if err != nil {
		return err
	}
	defer m.Close()
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
		if err := a.tellDiagnosis(d, asJSON); err != nil {
			return err
		}
	}
	if !well {
		return errNotWell
	}
	return nil
}

// tellDiagnosis writes a line, on a terminal with the cure below it.
func (a *app) tellDiagnosis(d admin.Diagnosis, asJSON bool) error {
	subject, text, fix := oneLine(d.Subject, 0), oneLine(d.Text, 0), oneLine(d.Fix, 0)
	var err error
	switch {
	case asJSON:
		err = jsonLines(a.stdout).Encode(d)
	case !a.style.out:
		_, err = fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%s\n", d.Severity, subject, text, fix)
	default:
		_, err = fmt.Fprintf(a.stdout, "%-8s %s: %s\n", d.Severity, subject, text)
		if fix != "" && err == nil {
			_, err = fmt.Fprintf(a.stdout, "%-8s   fix: %s\n", "", fix)
		}
	}
	return err
}
