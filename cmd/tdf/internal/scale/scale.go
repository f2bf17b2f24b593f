package scale

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	deploy "github.com/tdf-framework/tdf/deploy/slurm"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
	"github.com/tdf-framework/tdf/worker"
)

// Scale returns the command tdf scale.
func Scale(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use: "scale", Short: "Submit workers to a cluster while tasks wait",
		Long: "Submits workers to the scheduler of a cluster while tasks wait (docs/clusters.md).",
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSlurm(a))
	return c
}

// options are the flags of tdf scale slurm.
type options struct {
	file, queue, tags, worker, script string
	resources                         string
	most, slots                       int
	interval, idle                    time.Duration
	dryRun, once                      bool
	sbatch                            []string
}

func newSlurm(a *cli.App) *cobra.Command {
	o := options{}
	c := &cobra.Command{
		Use:   "slurm --worker-config FILE [flags] [-- OPTIONS of sbatch]",
		Short: "Submit workers as jobs of Slurm while tasks wait",
		Long: "Submits jobs of Slurm, each with one worker, while tasks wait that such a worker may claim now. A job ends " +
			"when its worker has had no task for the idle timeout, or before the time limit of the job.\n" +
			"It finds its jobs by their name, which it derives from the namespace, the queues and the tags, so at most --max " +
			"of them are pending or running, also after a restart. Run it once for each namespace, queue and tags.\n" +
			"If sbatch fails, or if three jobs in a row end without a worker, submitting pauses: for the interval at first, " +
			"then twice as long each time, up to half an hour. Ctrl-C ends the command, and its jobs continue.",
		Example: "  tdf scale slurm --max 40 --queue gpu --worker-config worker.cfg -- --gres=gpu:1 --time=8:00:00\n" +
			"  tdf scale slurm --max 10 --worker-config worker.cfg",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return cli.Usagef("unexpected argument %q for tdf scale slurm: the options of sbatch follow --", args[0])
			}
			return checkOptions(args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.sbatch = args
			return o.scale(c.Context(), a)
		},
	}
	f := c.Flags()
	f.StringVar(&o.file, "worker-config", "", "`FILE` configuration of the workers, on a file system of all nodes")
	f.IntVar(&o.most, "max", 1, "largest number of jobs that are pending or running")
	f.StringVar(&o.queue, "queue", "", "`NAME` queues that the workers serve (default: those of the configuration)")
	f.StringVar(&o.tags, "tags", "", "tags that the workers offer (default: those of the configuration)")
	f.StringVar(&o.resources, "resources", "",
		"`AMOUNTS` what a worker offers, to count the tasks that it could run: 'cpus=8 gpus=1' (default: its key resources; "+
			"for auto, one cpu)")
	f.IntVar(&o.slots, "slots", 0, "slots of a worker (default: its concurrency; 1 for auto)")
	cli.SpanVar(f, &o.interval, "interval", 30*time.Second, "time between two looks at the tasks and the jobs")
	cli.SpanVar(f, &o.idle, "idle-timeout", 5*time.Minute, "time without a task after which a worker ends")
	f.StringVar(&o.worker, "worker", "", "`PATH` tdf-worker on the nodes (default: the one beside tdf, else the one in $PATH)")
	f.StringVar(&o.script, "script", "", "`FILE` script of the jobs (default: deploy/slurm/tdf-worker.sbatch)")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the command and the number of jobs, and submit none")
	f.BoolVar(&o.once, "once", false, "submit the jobs that are missing now, and end")
	return c
}

func (o *options) scale(ctx context.Context, a *cli.App) error {
	switch {
	case o.file == "":
		return cli.Usagef("missing flag --worker-config: want the configuration file of the workers")
	case o.most < 1:
		return cli.Usagef("invalid value %d for --max: want a number from 1 up", o.most)
	case o.slots < 0 || o.slots > config.MaxSlots:
		return cli.Usagef("invalid value %d for --slots: want a number from 1 to %d, as [worker] concurrency", o.slots,
			config.MaxSlots)
	case o.interval < time.Second:
		return cli.Usagef("invalid value %v for --interval: want at least 1s", o.interval)
	}
	workers, err := o.workers(a)
	if err != nil {
		return err
	}
	tool, err := a.Tool()
	if err != nil {
		return err
	}
	each, namespace := workers.Each(), tool.Manager.Namespace
	i := slices.IndexFunc(each, func(w config.Worker) bool { return w.Namespace == namespace })
	if i < 0 {
		return cli.Usagef("the workers of %s serve namespace %s, and tdf uses %s: name the same with --config or --namespace",
			o.file, workers.Namespace, namespace)
	}
	workers = each[i]
	prefix, err := prefixOf(workers.API)
	if err != nil {
		return err
	}
	script, remove, err := o.scriptFile(a)
	if err != nil {
		return err
	}
	defer remove()
	return a.WithManagerOf(ctx, tool, func(m *cli.Client) error {
		s := &scaling{
			a: a, admin: m.Admin(), offer: offerOf(&workers), prefix: prefix, most: o.most,
			slots: cmp.Or(o.slots, workers.Concurrency, 1), health: health{interval: o.interval}, known: map[string]bool{},
			cluster: o.cluster(a, &workers, script),
		}
		switch {
		case o.dryRun:
			return s.dryRun(ctx)
		case o.once:
			return s.round(ctx)
		}
		return s.run(ctx, o.interval)
	})
}

// workers reads the configuration of the workers. The flags for queues and tags override it.
func (o *options) workers(a *cli.App) (config.Worker, error) {
	var set []config.Override
	if o.queue != "" {
		set = append(set, config.Override{Section: "worker", Name: "queues", Value: o.queue, Source: "--queue"})
	}
	if o.tags != "" {
		set = append(set, config.Override{Section: "worker", Name: "tags", Value: o.tags, Source: "--tags"})
	}
	if o.resources != "" {
		set = append(set, config.Override{Section: "worker", Name: "resources", Value: o.resources, Source: "--resources"})
	}
	tool, err := config.LoadTool(a.Path(o.file), a.Env, set...)
	if limit := jobTime(o.sbatch); limit > 0 { // the script passes on what is left of it
		tool.Worker.TimeLimit = limit
	}
	return tool.Worker, err
}

// prefixOf returns what the API puts before the names of the workers.
func prefixOf(api config.API) (string, error) {
	if api.URL == "" {
		return "", nil
	}
	token, err := secrets.Text(api.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the name of the workers' token: %w; put the file where this command can read it", err)
	}
	return access.NameIn(string(token)) + "/", nil
}

// offerOf returns which tasks a worker with this configuration may claim. [class.Offer.Matches] compares it with what
// tasks ask for.
func offerOf(cfg *config.Worker) class.Offer {
	return class.Offer{
		Queues: cfg.Queues, Tags: cfg.Tags, Group: cfg.Group, Programs: true, Resources: cfg.Resources.AtLeast(),
		TimeLeft: task.For(worker.TimeForPrograms(*cfg)),
	}
}

// cluster returns the Slurm to which the jobs go.
func (o *options) cluster(a *cli.App, workers *config.Worker, script string) *slurm {
	file := a.Path(o.file)
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	args := []string{file, "--idle-timeout", fmt.Sprint(o.idle.Seconds())}
	if o.queue != "" {
		args = append(args, "--queues", o.queue)
	}
	if o.tags != "" {
		args = append(args, "--tags", o.tags)
	}
	var queues []string
	offer := offerOf(workers)
	for _, share := range offer.Shares() {
		queues = append(queues, share.Queue)
	}
	tags := slices.Sorted(slices.Values(workers.Tags))
	name := jobName(workers.Namespace, strings.Join(queues, ","), strings.Join(tags, ","))
	return &slurm{a: a, name: name, options: o.sbatch, script: script, args: args, worker: o.workerProgram()}
}

// workerProgram returns the tdf-worker of the jobs.
func (o *options) workerProgram() string {
	const program = "tdf-worker"
	self, err := os.Executable()
	if o.worker != "" || err != nil {
		return cmp.Or(o.worker, program)
	}
	beside := filepath.Join(filepath.Dir(self), program)
	_, err = os.Stat(beside)
	if err != nil {
		return program
	}
	return beside
}

// scriptFile returns the path of the jobs' script. The caller must call remove. sbatch reads the script at once.
func (o *options) scriptFile(a *cli.App) (path string, remove func(), err error) {
	switch {
	case o.script != "":
		return a.Path(o.script), func() {}, nil
	case o.dryRun:
		return "deploy/slurm/tdf-worker.sbatch", func() {}, nil
	}
	dir, err := os.MkdirTemp("", "tdf-scale-*")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "tdf-worker.sbatch")
	return path, func() { os.RemoveAll(dir) }, os.WriteFile(path, []byte(deploy.Script), 0o600)
}
