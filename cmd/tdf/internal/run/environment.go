package run

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// ofShell are variables that say where and how the caller's shell runs, and those by which a worker gives a command its
// share of the machine. --env-all leaves them out.
var ofShell = []string{
	"PWD", "OLDPWD", "SHLVL", "_", "TMPDIR",
	"OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// exports returns the lines of a script that set the variables of --env and --env-all.
func (r *run) exports() (string, error) {
	var script strings.Builder
	export := func(name, value string) {
		script.WriteString("export " + name + "=" + sweep.Quote(value) + "\n")
	}
	values := map[string]string{}
	for _, variable := range r.a.Env {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
	}
	for _, name := range r.env {
		value, set := values[name]
		switch {
		case !variableName.MatchString(name) || strings.HasPrefix(name, "TDF_"):
			return "", cli.Usagef("--env %s: want the name of a variable that does not begin with TDF_", name)
		case !set:
			return "", cli.Usagef("--env %s: the variable is not set", name)
		}
		if !r.envAll {
			export(name, value)
		}
	}
	if r.envAll {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			own := slices.Contains(ofShell, name) && !slices.Contains(r.env, name)
			if variableName.MatchString(name) && !strings.HasPrefix(name, "TDF_") && !own {
				export(name, values[name])
			}
		}
	}
	return script.String(), nil
}
