package worker

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// inherited is what a program gets of the worker's environment (docs/programs.md, "How
// a program is run"): what it takes to find interpreters and, through a proxy, data. Nothing
// that says how to reach Redis.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// environment is that of the task's program.
func (e *execution) environment() []string {
	return append(allowed(os.Environ()),
		"TDF_NAMESPACE="+e.w.cfg.Namespace,
		"TDF_TASK_ID="+strconv.FormatInt(e.task.ID, 10),
		"TDF_ROUND="+strconv.Itoa(e.task.Round),
		"TDF_PROGRAM="+e.task.Program,
		"TDF_WORKER="+e.w.name,
	)
}

func allowed(environ []string) []string {
	var env []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, variable)
		}
	}
	return env
}
