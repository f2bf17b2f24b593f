package slurm

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// scriptName is the name of the batch script beside run.sh, as in Slurm's spool directory.
const scriptName = "slurm_script"

// pack packs the program of the job: its script, and a run.sh that sets up what Slurm sets up.
func (j *job) pack(afterNotOK [][]int64) (program.Packed, error) {
	var none program.Packed
	environment, err := j.exported()
	if err != nil {
		return none, err
	}
	temporary, err := os.MkdirTemp("", "tdf-sbatch-*")
	if err != nil {
		return none, err
	}
	defer os.RemoveAll(temporary)
	dir := filepath.Join(temporary, program.NameAfter(j.name))
	err = os.Mkdir(dir, 0o700)
	if err != nil {
		return none, err
	}
	for name, text := range map[string]string{
		"run.sh": j.wrapper(environment, afterNotOK), scriptName: j.script, ".tdfshared": "",
	} {
		err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700)
		if err != nil {
			return none, err
		}
	}
	return program.Pack(dir)
}

// wrapper returns the run.sh. Its arguments are the id of the array and the index of the element, or none. The id is 0
// for the first element of the array, whose own id it is.
func (j *job) wrapper(environment []string, afterNotOK [][]int64) string {
	var w strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	line("#!/bin/sh\n# Written by sbatch of TDF.")
	line("_tdf_script=$PWD/%s", scriptName) // the caller may export a variable script
	line(`fail() { echo "sbatch: error: $1" >&2; exit 1; }`)
	exports(line, environment)
	j.variables(line)
	line("cd %s 2>/dev/null || { echo \"$SLURMD_NODENAME has no directory\" %[1]s >\"$TDF_DIR/unfit\"; exit 1; }",
		sweep.Quote(j.dir))
	for _, ids := range afterNotOK {
		line("grep -Eqs '^[{]\"id\":(%s),\"outcome\":\"(failed|timed_out|expired|cancelled)\"' \"$TDF_DIR/after\" || {\n"+
			"\techo '0 %s' >\"$TDF_DIR/progress\"; fail 'the dependency afternotok is not met'; }", alternatives(ids), neverMet)
	}
	if j.in != "" {
		line("[ -r %s ] || fail 'cannot read the file of --input'\nexec <%[1]s", j.path(j.in))
	}
	if j.output != "" {
		j.redirect(line)
	}
	var odd []string
	for _, variable := range environment {
		name, _, _ := strings.Cut(variable, "=")
		if !isName(name) || slices.Contains(ofShell, name) { // such as a function of bash, which sh does not export
			odd = append(odd, sweep.Quote(variable))
		}
	}
	if j.signal != "" && j.limit > 0 { // the process is no child of the script, which may wait for all of its children
		line("( (sleep %.0f; kill -s %s $$) & ) >/dev/null 2>&1", max(0, j.limit-j.signalBefore).Seconds(), j.signal)
	}
	start := `"$_tdf_script"`
	if len(odd) > 0 {
		start = "env " + strings.Join(odd, " ") + " " + start
	}
	for _, arg := range j.args {
		start += " " + sweep.Quote(arg)
	}
	line("exec %s", start)
	return w.String()
}

func alternatives(ids []int64) string {
	var all []string
	for _, id := range ids {
		all = append(all, strconv.FormatInt(id, 10))
	}
	return strings.Join(all, "|")
}

// ofShell are variables that a shell does not let a script set.
var ofShell = strings.Fields("BASHOPTS BASH_VERSINFO EUID PPID SHELLOPTS UID")

// assigned are variables that a worker sets for the share of a job. They keep its values.
var assigned = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}

// exports writes the environment of the caller.
func exports(line func(string, ...any), environment []string) {
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case slices.Contains(assigned, name):
			line("[ -n \"${%s+x}\" ] || export %[1]s=%s", name, sweep.Quote(value))
		case isName(name) && !slices.Contains(ofShell, name):
			line("export %s=%s", name, sweep.Quote(value))
		}
	}
}

// variables writes the variables of Slurm.
func (j *job) variables(line func(string, ...any)) {
	set := func(name, value string) {
		if value != "" {
			line("export %s=%s", name, sweep.Quote(value))
		}
	}
	line("SLURMD_NODENAME=$(uname -n); export SLURMD_NODENAME=\"${SLURMD_NODENAME%%%%.*}\"")
	line(`export SLURM_JOB_ID="$TDF_TASK_ID" SLURM_JOBID="$TDF_TASK_ID" SLURM_TASK_PID=$$`)
	line(`export SLURM_JOB_NODELIST="$SLURMD_NODENAME" SLURM_NODELIST="$SLURMD_NODENAME"`)
	line(`[ "$TDF_ROUND" = 0 ] || export SLURM_RESTART_COUNT="$TDF_ROUND"`)
	host, _ := os.Hostname()
	cpus := strconv.Itoa(max(j.cpus, 1))
	for _, v := range [][2]string{
		{"SLURM_JOB_NAME", j.name},
		{"SLURM_JOB_USER", userName()},
		{"SLURM_JOB_UID", strconv.Itoa(os.Getuid())},
		{"SLURM_JOB_ACCOUNT", j.account},
		{"SLURM_JOB_QOS", j.qos},
		{"SLURM_JOB_PARTITION", cmp.Or(j.partition, partition)},
		{"SLURM_CLUSTER_NAME", cluster},
		{"SLURM_SUBMIT_DIR", j.from},
		{"SLURM_SUBMIT_HOST", host},
		{"SLURM_JOB_DEPENDENCY", j.dependency},
		{"SLURM_JOB_NUM_NODES", "1"},
		{"SLURM_NNODES", "1"},
		{"SLURM_TASKS_PER_NODE", "1"},
		{"SLURM_JOB_CPUS_PER_NODE", cpus},
		{"SLURM_CPUS_ON_NODE", cpus},
		{"SLURM_NODEID", "0"},
		{"SLURM_PROCID", "0"},
		{"SLURM_LOCALID", "0"},
		{"SLURM_GTIDS", "0"},
		{"SLURM_PRIO_PROCESS", "0"},
		{"ENVIRONMENT", "BATCH"},
		{"SLURM_EXPORT_ENV", j.export},
	} {
		set(v[0], v[1])
	}
	if j.cpus > 0 {
		set("SLURM_CPUS_PER_TASK", cpus)
	}
	if j.ntasks {
		line("export SLURM_NTASKS=1 SLURM_NPROCS=1")
	}
	if j.memory > 0 {
		set("SLURM_MEM_PER_NODE", strconv.FormatInt(j.memory>>20, 10))
	}
	if j.perCPU > 0 {
		set("SLURM_MEM_PER_CPU", strconv.FormatInt(j.perCPU>>20, 10))
	}
	if j.gpus > 0 {
		set("SLURM_GPUS_ON_NODE", strconv.Itoa(j.gpus))
		line("export SLURM_JOB_GPUS=\"$CUDA_VISIBLE_DEVICES\"")
	}
	if j.array == nil {
		return
	}
	line(`[ "$1" != 0 ] || set -- "$TDF_TASK_ID" "$2"`)
	all := j.array.indexes
	line("export SLURM_ARRAY_JOB_ID=\"$1\" SLURM_ARRAY_TASK_ID=\"$2\" SLURM_ARRAY_TASK_COUNT=%d SLURM_ARRAY_TASK_MIN=%d "+
		"SLURM_ARRAY_TASK_MAX=%d SLURM_ARRAY_TASK_STEP=%d", len(all), all[0], all[len(all)-1], j.array.step)
}

// redirect writes the outputs of the script to its files.
func (j *job) redirect(line func(string, ...any)) {
	to := ">"
	if j.append {
		to = ">>"
	}
	line("_tdf_out=%s", j.path(j.output))
	line("cannot() { echo \"sbatch: error: cannot write the file of $1\" >&2; kill -53 $$; }") // 53 as in Slurm
	line("{ true %s\"$_tdf_out\"; } 2>/dev/null || cannot \"--output: $_tdf_out\"", to)
	err := "2>&1"
	if j.errors != "" && j.errors != j.output {
		line("_tdf_err=%s", j.path(j.errors))
		line("{ true %s\"$_tdf_err\"; } 2>/dev/null || cannot \"--error: $_tdf_err\"", to)
		err = "2" + to + "\"$_tdf_err\""
	}
	line("exec %s\"$_tdf_out\" %s", to, err)
}

// path returns the word of a shell for the pattern of a file name.
func (j *job) path(pattern string) string {
	return expand(pattern, sweep.Quote, func(verb byte, width int) string {
		number := map[byte]string{
			'j': "$SLURM_JOB_ID", 'A': "${SLURM_ARRAY_JOB_ID-$SLURM_JOB_ID}", 'n': "0", 't': "0",
			'a': fmt.Sprintf("${SLURM_ARRAY_TASK_ID-%d}", noElement),
		}[verb]
		switch {
		case number != "" && width > 0:
			return fmt.Sprintf("\"$(printf %%0%dd \"%s\")\"", width, number)
		case number != "":
			return `"` + number + `"`
		}
		return map[byte]string{
			'J': `"$SLURM_JOB_ID.batch"`, 'N': `"$SLURMD_NODENAME"`, 's': "batch", 'u': sweep.Quote(userName()),
			'x': sweep.Quote(j.name),
		}[verb]
	})
}
