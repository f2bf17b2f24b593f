package worker

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
)

// inherited lists the names of the variables that a program gets from the worker's environment (docs/programs.md, "The
// environment"). A program needs them to find interpreters, and to reach data through a proxy. None of the variables
// says how to reach Redis.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

// dirVariable is the name of the environment variable for the round's directory, with the equals sign. The variable
// also marks the processes of the round.
const dirVariable = "TDF_DIR="

// unbuffered makes Python write each line at once. Otherwise, its output appears only at the end of the round, because
// it goes to a file. Variables of the configuration take precedence.
const unbuffered = "PYTHONUNBUFFERED=1"

// environment returns the environment for a process of the round, whose directory is dir.
func (e *execution) environment(dir string) []string {
	started := e.clock.Load().redis
	env := append([]string{unbuffered}, allowedVariables(os.Environ(), e.s.cfg.Env)...)
	env = append(env,
		"TDF_NAMESPACE="+e.s.cfg.Namespace,
		"TDF_TASK_ID="+strconv.FormatInt(e.task.ID, 10),
		"TDF_ROUND="+strconv.Itoa(e.task.Round),
		"TDF_PROGRAM="+e.task.Program,
		"TDF_WORKER="+e.s.name,
		"TDF_SLOT="+strconv.Itoa(e.slot),
		"TDF_START="+started.String(),
		"TDF_TIMEOUT="+e.task.Timeout.String(),
		"TDF_END_BEFORE="+e.task.EndBefore.String(),
		"TDF_GROUP="+e.task.Group,
		"TDF_META="+e.task.Meta,
		dirVariable+dir,
	)
	if e.s.pool != nil {
		env = append(env, e.share.Environment()...)
	}
	return append(env, e.secrets.Env()...)
}

// checkTemporary warns about a TMPDIR that is no directory: programs get the variable, and few name it in their errors.
func (w *Worker) checkTemporary() {
	dir := os.Getenv("TMPDIR")
	if info, err := os.Stat(cmp.Or(dir, "/")); err != nil || !info.IsDir() {
		w.options.log.Warn("the environment variable TMPDIR names no directory", "TMPDIR", dir)
	}
}

// allowedVariables returns the variables of environ that a program gets. Their names are listed in inherited or in
// configured, or begin with LC_.
func allowedVariables(environ, configured []string) []string {
	var env []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(inherited, name) || slices.Contains(configured, name) || strings.HasPrefix(name, "LC_") {
			env = append(env, variable)
		}
	}
	return env
}
