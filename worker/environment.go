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

// dirVariable, with the path behind it, also marks the processes of a round.
const dirVariable = "TDF_DIR="

// environment is that of the task's program.
func (e *execution) environment(d *desk) []string {
	started := e.clock.Load().redis
	env := append(allowed(os.Environ(), e.s.cfg.Env),
		"TDF_NAMESPACE="+e.s.cfg.Namespace,
		"TDF_TASK_ID="+strconv.FormatInt(e.task.ID, 10),
		"TDF_ROUND="+strconv.Itoa(e.task.Round),
		"TDF_PROGRAM="+e.task.Program,
		"TDF_WORKER="+e.s.name,
		"TDF_START="+started.String(),
		"TDF_TIMEOUT="+e.task.Timeout.String(),
		"TDF_END_BEFORE="+e.task.EndBefore.String(),
		"TDF_GROUP="+e.task.Group,
		"TDF_META="+e.task.Meta,
		dirVariable+d.dir.Path(),
	)
	return append(env, d.secrets.Env()...)
}

// allowed leaves of an environment what is inherited, and more by name.
func allowed(environ, more []string) []string {
	var env []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(inherited, name) || slices.Contains(more, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, variable)
		}
	}
	return env
}
