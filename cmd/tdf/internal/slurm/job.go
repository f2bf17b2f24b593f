package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

// A job is what a call of sbatch or srun asks for.
type job struct {
	a *cli.App

	script string   // text
	args   []string // of the script
	wrap   string

	name, command      string
	from, dir          string // where sbatch was called, and where the job runs; absolute
	output, errors, in string // patterns of files
	append             bool
	array              *array
	cpus, gpus         int
	memory, perCPU     int64 // bytes
	limit              time.Duration
	signal             string // that the script gets signalBefore its time limit, such as USR2; "" for none
	signalBefore       time.Duration
	dependency, export string
	tags               []string
	once               bool // the job does not run again after its worker was lost
	ntasks             bool
	partition, account string
	qos, comment       string

	hold, testOnly, parsable, quiet, wait bool
	step                                  bool // the job is a command of srun, whose output goes to the terminal
}

// flags returns the options of sbatch, which set the fields of j.
func (j *job) flags() *pflag.FlagSet {
	f := newFlags()
	f.FuncP("array", "a", "", func(v string) (err error) { j.array, err = parseArray(v); return err })
	f.FuncP("constraint", "C", "", j.setConstraint)
	f.FuncP("cpus-per-task", "c", "", j.setCPUs)
	f.Func("export", "", func(v string) error { j.export = v; return nil })
	f.FuncP("gpus", "G", "", j.setGPUs)
	f.Func("gpus-per-node", "", j.setGPUs)
	f.Func("gpus-per-task", "", j.setGPUs)
	f.Func("gres", "", j.setGres)
	f.Func("kill-on-invalid-dep", "", only("yes", "TDF cancels a job whose dependency cannot be met any more"))
	f.Func("mail-type", "", only("NONE",
		"TDF sends no mail to the user of a job; the section [notify] of the server sends "+
			"a notice when a job has ended (docs/notifications.md)"))
	f.Func("mem", "", func(v string) (err error) { j.memory, err = parseMemory(v); return err })
	f.Func("mem-per-cpu", "", func(v string) (err error) { j.perCPU, err = parseMemory(v); return err })
	f.FuncP("nodes", "N", "", one)
	f.FuncP("ntasks", "n", "", func(v string) error { j.ntasks = true; return one(v) })
	f.Func("ntasks-per-node", "", one)
	f.Func("open-mode", "", j.setOpenMode)
	f.BoolFunc("requeue", "", func(string) error { j.once = false; return nil })
	f.Func("signal", "", j.setSignal)
	f.FuncP("time", "t", "", func(v string) (err error) { j.limit, err = parseTime(v); return err })
	for name, to := range map[string]*string{
		"account/A": &j.account, "chdir/D": &j.dir, "comment": &j.comment, "dependency/d": &j.dependency,
		"error/e": &j.errors, "input/i": &j.in, "job-name/J": &j.name, "output/o": &j.output, "partition/p": &j.partition,
		"qos/q": &j.qos, "wrap": &j.wrap,
	} {
		long, short, _ := strings.Cut(name, "/")
		f.StringVarP(to, long, short, *to, "")
	}
	for name, to := range map[string]*bool{
		"hold/H": &j.hold, "no-requeue": &j.once, "parsable": &j.parsable, "quiet/Q": &j.quiet, "test-only": &j.testOnly,
		"wait/W": &j.wait,
	} {
		long, short, _ := strings.Cut(name, "/")
		f.BoolVarP(to, long, short, *to, "")
	}
	without(f, "acctg-freq distribution/m hint mail-user priority time-min wckey",
		"ignore-pbs nice no-kill/k overcommit/O oversubscribe/s")
	for name := range strings.FieldsSeq(refused) {
		long, short, _ := strings.Cut(name, "/")
		f.FuncP(long, short, "", func(string) error { return errors.New("TDF cannot do this; leave the option out") })
		f.Lookup(long).NoOptDefVal = "yes"
	}
	return f
}

// refused are options that change where or how a job runs, and that TDF does not have.
const refused = `batch bb bbf begin/b cluster-constraint clusters/M container contiguous core-spec/S cores-per-socket
	cpu-freq cpus-per-gpu deadline delay-boot exclude/x exclusive export-file extra-node-info/B get-user-env
	gid gpu-bind gpu-freq gpus-per-socket gres-flags licenses/L mcs-label mem-bind mem-per-gpu mincpus
	network nodefile/F nodelist/w ntasks-per-core ntasks-per-gpu ntasks-per-socket power prefer profile
	propagate reboot reservation sockets-per-node spread-job switches thread-spec threads-per-core
	tmp uid use-min-nodes wait-all-nodes`

// setFromEnvironment sets the options that variables such as SBATCH_TIMELIMIT stand for.
func setFromEnvironment(a *cli.App, f *pflag.FlagSet) error {
	others := map[string]string{"array-inx": "array", "mem-per-node": "mem", "timelimit": "time"}
	for _, variable := range a.Env {
		key, value, _ := strings.Cut(variable, "=")
		name, begins := strings.CutPrefix(key, "SBATCH_")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		flag := f.Lookup(cmp.Or(others[name], name))
		if !begins || flag == nil {
			continue
		}
		if flag.Value.Type() == "bool" && (value == "" || value == "yes") {
			value = "true"
		}
		err := f.Set(flag.Name, value)
		if err != nil {
			return fmt.Errorf("the variable %s: %w", key, err)
		}
	}
	return nil
}

func only(allowed, why string) func(string) error {
	return func(value string) error {
		if !strings.EqualFold(value, allowed) {
			return errors.New(why)
		}
		return nil
	}
}

// one refuses numbers above one.
func one(value string) error {
	if value != "1" && value != "1-1" {
		return errors.New("TDF runs a job as one process on one machine, so only 1 is possible; use a job array, or submit " +
			"the MPI program to a Slurm")
	}
	return nil
}

// setConstraint asks for workers with tags.
func (j *job) setConstraint(value string) error {
	if strings.ContainsAny(value, "|[]*(),") {
		return errors.New("want names of tags of workers, such as gpu&ssd")
	}
	j.tags = strings.Split(value, "&")
	return nil
}

func (j *job) setCPUs(value string) error {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil || n == 0 {
		return errors.New("want a whole number above 0")
	}
	j.cpus = int(n)
	return nil
}

func (j *job) setGPUs(value string) error {
	n, err := strconv.ParseUint(value, 10, 16)
	if err != nil {
		return errors.New("want a number of GPUs; TDF knows no types of GPUs: give the workers a tag for the type, and ask " +
			"for it with --constraint")
	}
	j.gpus = int(n)
	return nil
}

func (j *job) setGres(value string) error {
	kind, count, counted := strings.Cut(value, ":")
	if kind != "gpu" {
		return errors.New("TDF knows only the generic resource gpu")
	}
	if !counted {
		count = "1"
	}
	return j.setGPUs(count)
}

func (j *job) setOpenMode(value string) error {
	j.append = value == "append"
	if !j.append && value != "truncate" {
		return errors.New("want append or truncate")
	}
	return nil
}

// setSignal reads B:SIGNAL or B:SIGNAL@SECONDS.
func (j *job) setSignal(value string) error {
	name, isScript := strings.CutPrefix(strings.ToUpper(value), "B:")
	if !isScript {
		return errors.New("TDF signals the script, and not its steps: want B:SIGNAL or B:SIGNAL@SECONDS")
	}
	name, before, timed := strings.Cut(name, "@")
	if !timed {
		before = "60"
	}
	seconds, err := strconv.ParseUint(before, 10, 16)
	n, _ := strconv.Atoi(name)
	number := cmp.Or(syscall.Signal(n), unix.SignalNum("SIG"+strings.TrimPrefix(name, "SIG")))
	j.signal = strings.TrimPrefix(unix.SignalName(number), "SIG")
	if j.signal == "" || err != nil {
		return errors.New("invalid signal: want such as B:USR2 or B:10@30")
	}
	j.signalBefore = time.Duration(seconds) * time.Second
	return nil
}

// complete checks the options, and sets what they leave out.
func (j *job) complete() error {
	var err error
	j.from, err = filepath.Abs(j.a.Path("."))
	if err != nil {
		return fmt.Errorf("find the current directory: %w", err)
	}
	if !filepath.IsAbs(j.dir) {
		j.dir = filepath.Join(j.from, j.dir)
	}
	if j.memory > 0 && j.perCPU > 0 {
		return errors.New("--mem and --mem-per-cpu are mutually exclusive")
	}
	if strings.ContainsFunc(j.name, unicode.IsControl) {
		return fmt.Errorf("invalid job name %.100q: TDF allows no control characters, because squeue prints "+
			"a line for each job", j.name)
	}
	for _, pattern := range []string{j.output, j.errors} {
		if strings.Contains(pattern, "%x") && strings.Contains(j.name, "/") {
			return fmt.Errorf("invalid job name %.100q: with a slash, %%x in a file name would lead to another "+
				"directory", j.name)
		}
	}
	for _, text := range []string{j.dir, j.output, j.errors, j.in} {
		if strings.ContainsRune(text, 0) || strings.Contains(text, "\n") {
			return fmt.Errorf("invalid path %.100q: it has a line break", text)
		}
	}
	if j.output == "" && !j.step {
		j.output = "slurm-%j.out"
		if j.array != nil {
			j.output = "slurm-%A_%a.out"
		}
	}
	for _, path := range []*string{&j.output, &j.errors, &j.in} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(j.dir, *path)
		}
	}
	return nil
}

// resources returns the request of the tasks. A job that asks for one core and nothing else has none, so that workers
// without resources run it.
func (j *job) resources() string {
	var all []string
	if j.cpus > 1 || j.gpus > 0 || j.bytes() > 0 {
		all = append(all, fmt.Sprintf("cpus=%d", max(j.cpus, 1)))
	}
	if j.gpus > 0 {
		all = append(all, fmt.Sprintf("gpus=%d", j.gpus))
	}
	if j.bytes() > 0 {
		all = append(all, fmt.Sprintf("memory=%d", j.bytes()))
	}
	return strings.Join(all, " ")
}

// bytes returns the memory that the job asks for.
func (j *job) bytes() int64 { return max(j.memory, j.perCPU*int64(max(j.cpus, 1))) }

// record returns what the meta of the tasks says.
func (j *job) record() record {
	return record{
		Name: j.name, User: userName(), UID: os.Getuid(), Dir: j.dir, Command: j.command,
		StdOut: j.output, StdErr: cmp.Or(j.errors, j.output), StdIn: cmp.Or(j.in, os.DevNull),
		Partition: j.partition, Account: j.account, QOS: j.qos, Comment: j.comment, Dependency: j.dependency,
		CPUs: max(j.cpus, 1), GPUs: j.gpus, Memory: j.bytes(), Once: j.once,
	}
}

func userName() string {
	u, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Getuid())
	}
	return u.Username
}

// exported returns the variables of the caller that the job gets: those of --export, and as in Slurm, SLURM_*.
func (j *job) exported() (all []string, err error) {
	wanted := strings.Split(cmp.Or(j.export, "ALL"), ",")
	given := map[string]bool{}
	for _, w := range wanted {
		name, _, sets := strings.Cut(w, "=")
		switch {
		case !isName(name):
			return nil, fmt.Errorf("--export %s: want ALL, NONE, or names of variables, with or without =VALUE", j.export)
		case sets:
			given[name] = true
			all = append(all, w)
		}
	}
	for _, variable := range j.a.Env {
		name, _, _ := strings.Cut(variable, "=")
		wants := slices.Contains(wanted, "ALL") && !strings.HasPrefix(name, "TDF_") && name != "_" && name != "PWD" ||
			slices.Contains(wanted, name) || strings.HasPrefix(name, "SLURM_")
		if wants && !given[name] {
			all = append(all, variable)
		}
	}
	return all, nil
}

// isName reports whether a shell can export a variable.
func isName(name string) bool {
	ok := func(r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	}
	return name != "" && (name[0] < '0' || name[0] > '9') && strings.Trim(name, "_") != "" &&
		!strings.ContainsFunc(name, func(r rune) bool { return !ok(r) })
}
