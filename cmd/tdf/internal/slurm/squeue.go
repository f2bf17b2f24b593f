package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
)

// A filter selects jobs.
type filter struct {
	refs                 []ref
	users, names, states []string
}

// add adds the options that set the filter. The argument is the short name of --name.
func (f *filter) add(flags *pflag.FlagSet, name string) {
	flags.StringSliceVarP(&f.names, "name", name, nil, "")
	flags.StringSliceVarP(&f.users, "user", "u", nil, "")
	flags.BoolFunc("me", "", func(string) error { f.users = []string{userName()}; return nil })
	without(flags, "account/A", "")
}

func (f *filter) setRefs(value string) (err error) {
	f.refs, err = parseRefs(value)
	return err
}

// setStates reads a list of states or their codes.
func (f *filter) setStates(value string) error {
	f.states = strings.Split(strings.ToUpper(value), ",")
	known := strings.Fields(otherStates)
	for state, short := range shortStates {
		known = append(known, state)
		for i, name := range f.states {
			if name == short {
				f.states[i] = state
			}
		}
	}
	for _, name := range f.states {
		if !slices.Contains(known, name) { // otherwise, a script would conclude that no job runs
			return errors.New("invalid job state specified: " + name)
		}
	}
	return nil
}

// otherStates are the states of Slurm that no job of TDF has, with their codes.
const otherStates = "ALL BF BOOT_FAIL CF CONFIGURING OOM OUT_OF_MEMORY PR PREEMPTED RD " +
	"RESV_DEL_HOLD RF REQUEUE_FED RH REQUEUE_HOLD RQ REQUEUED RS RESIZING RV REVOKED SI SIGNALING SE SPECIAL_EXIT SO " +
	"STAGE_OUT ST STOPPED S SUSPENDED"

// matches reports whether a job passes the filter.
func (f *filter) matches(v *view) bool {
	has := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return has(f.names, v.Name) && (has(f.users, v.User) || slices.Contains(f.users, strconv.Itoa(v.UID))) &&
		(has(f.states, v.state()) || slices.Contains(f.states, "ALL"))
}

// letters are the columns of squeue by the letters of --format.
var letters = map[byte][2]string{
	'a': {"ACCOUNT", "Account"}, 'A': {"JOBID", "JobIDRaw"}, 'b': {"TRES_PER_NODE", "gres"},
	'B': {"EXEC_HOST", "node"}, 'C': {"CPUS", "ReqCPUS"}, 'D': {"NODES", "NNodes"}, 'e': {"END_TIME", "End"},
	'E': {"DEPENDENCY", "dependency"}, 'F': {"ARRAY_JOB_ID", "ArrayJobID"}, 'i': {"JOBID", "JobID"},
	'j': {"NAME", "JobName"}, 'k': {"COMMENT", "Comment"}, 'K': {"ARRAY_TASK_ID", "ArrayTaskID"},
	'l': {"TIME_LIMIT", "limit"}, 'L': {"TIME_LEFT", "left"}, 'm': {"MIN_MEMORY", "ReqMem"},
	'M': {"TIME", "ran"}, 'N': {"NODELIST", "node"}, 'o': {"COMMAND", "command"},
	'p': {"PRIORITY", "Priority"}, 'P': {"PARTITION", "Partition"}, 'q': {"QOS", "QOS"}, 'Q': {"PRIORITY", "Priority"},
	'r': {"REASON", "Reason"}, 'R': {"NODELIST(REASON)", "where"}, 'S': {"START_TIME", "Start"},
	't': {"ST", "code"}, 'T': {"STATE", "State"}, 'u': {"USER", "User"}, 'U': {"UID", "UID"},
	'V': {"SUBMIT_TIME", "Submit"}, 'Z': {"WORK_DIR", "WorkDir"},
}

// The formats of squeue without --format.
const (
	usualFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	longFormat  = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
)

// squeue is the command squeue.
func squeue(ctx context.Context, a *cli.App, args []string) error {
	f := &filter{}
	flags := newFlags()
	f.add(flags, "n")
	flags.FuncP("jobs", "j", "", f.setRefs)
	flags.FuncP("states", "t", "", f.setStates)
	layout := flags.StringP("format", "o", "", "")
	noHeader, each := flags.BoolP("noheader", "h", false, ""), flags.BoolP("array", "r", false, "")
	isLong := flags.BoolP("long", "l", false, "")
	without(flags, "partition/p qos/q", "all/a")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return fmt.Errorf("unrecognized option: %s", rest[0])
	}
	if *isLong {
		*layout = cmp.Or(*layout, longFormat)
	}
	*layout = cmp.Or(*layout, usualFormat)
	header, err := row(*layout, nil)
	if err != nil {
		return err
	}
	return a.WithManager(ctx, func(m *cli.Client) error {
		all, err := f.queue(ctx, m)
		if err != nil {
			return err
		}
		if !*each {
			all = condense(all)
		}
		if !*noHeader {
			fmt.Fprintln(a.Stdout, header)
		}
		for _, v := range all {
			line, _ := row(*layout, v.fields())
			fmt.Fprintln(a.Stdout, format.Printable(line))
		}
		return nil
	})
}

// keptInQueue is how long squeue shows finished jobs with --states, like MinJobAge of Slurm.
const keptInQueue = 5 * time.Minute

// queue returns the jobs that squeue shows: those that have not finished, and with --states those that have just
// finished.
func (f *filter) queue(ctx context.Context, m *cli.Client) (all []*view, err error) {
	age := keptInQueue
	if len(f.states) == 0 {
		f.states, age = []string{pending, running, completing}, 0
	}
	if f.refs == nil {
		now, err := m.Now(ctx)
		if err != nil {
			return nil, err
		}
		all, err = between(ctx, m, now.Add(-age), time.Time{})
		if err != nil {
			return nil, err
		}
	} else {
		var unknown []ref
		all, unknown, err = resolve(ctx, m, f.refs)
		if err != nil {
			return nil, err
		}
		if len(f.refs) == 1 && len(unknown) == 1 {
			return nil, errors.New("invalid job id specified")
		}
	}
	paused, err := m.Pauses().All(ctx)
	for _, v := range all {
		v.held = slices.ContainsFunc(paused, func(p manager.Pause) bool { return p.Group == v.t.Group })
	}
	return slices.DeleteFunc(all, func(v *view) bool { return !f.matches(v) }), err
}

// between returns the jobs that have not finished, or have finished since a time, and were submitted before another
// one, ordered by id.
func between(ctx context.Context, m *cli.Client, since, before time.Time) ([]*view, error) {
	all, err := list(ctx, m, manager.Query{States: task.UnfinishedStates})
	if err != nil {
		return nil, err
	}
	done, err := list(ctx, m, manager.Query{States: task.FinishedStates, Since: since})
	all = append(all, done...)
	slices.SortStableFunc(all, func(a, b *view) int { return cmp.Compare(a.t.ID, b.t.ID) })
	all = slices.CompactFunc(all, func(a, b *view) bool { return a.t.ID == b.t.ID }) // one may have finished meanwhile
	return slices.DeleteFunc(all, func(v *view) bool { return !before.IsZero() && v.t.Opened.After(before) }), err
}

// row returns the line of a job in a format such as "%.18i %j". Without fields, it returns the header.
func row(layout string, fields map[string]string) (string, error) {
	var line strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' {
			line.WriteByte(layout[i])
			continue
		}
		start := i + 1
		i = start
		for i < len(layout) && (layout[i] == '.' || layout[i] >= '0' && layout[i] <= '9') {
			i++
		}
		if i == len(layout) || letters[layout[i]][0] == "" {
			return "", fmt.Errorf("invalid job format specification: %s", layout[start-1:min(i+1, len(layout))])
		}
		value, name := letters[layout[i]][0], letters[layout[i]][1]
		switch {
		case fields[name] == "Unknown":
			value = "N/A"
		case name == "node" && fields != nil:
			value = fields[name]
		case fields != nil:
			value = cmp.Or(fields[name], "(null)")
		}
		size, right := strings.CutPrefix(layout[start:i], ".")
		width, _ := strconv.Atoi(size)
		line.WriteString(pad(value, width, right))
	}
	return line.String(), nil
}

// pad cuts or fills a text to a width; 0 means any width.
func pad(text string, width int, right bool) string {
	n := utf8.RuneCountInString(text)
	switch {
	case width == 0:
		return text
	case n > width:
		return string([]rune(text)[:width])
	case right:
		return strings.Repeat(" ", width-n) + text
	}
	return text + strings.Repeat(" ", width-n)
}
