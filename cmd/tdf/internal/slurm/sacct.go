package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/manager"
)

// The fields of sacct without --format, and with --brief.
const (
	usualFields = "jobid,jobname,partition,account,alloccpus,state,exitcode"
	briefFields = "jobid,state,exitcode"
)

// A report holds the options of sacct.
type report struct {
	filter
	layout, delimiter, since, before        string
	parsable, parsable2, noHeader, onlyJobs bool
	everyone, each                          bool
	columns                                 []reportColumn
}

type reportColumn struct {
	name  string
	width int // negative for text at the left
}

func (r *report) flags() *pflag.FlagSet {
	f := newFlags()
	r.add(f, "")
	f.FuncP("jobs", "j", "", r.setRefs)
	f.FuncP("state", "s", "", r.setStates)
	f.StringVarP(&r.layout, "format", "o", usualFields, "")
	f.FuncP("clusters", "M", "", ownCluster)
	f.BoolFuncP("brief", "b", "", func(string) error { r.layout = briefFields; return nil })
	f.StringVar(&r.delimiter, "delimiter", "|", "")
	f.StringVarP(&r.since, "starttime", "S", "", "")
	f.StringVarP(&r.before, "endtime", "E", "", "")
	for name, to := range map[string]*bool{
		"parsable/p": &r.parsable, "parsable2/P": &r.parsable2, "noheader/n": &r.noHeader, "allocations/X": &r.onlyJobs,
		"allusers/a": &r.everyone, "array": &r.each,
	} {
		long, short, _ := strings.Cut(name, "/")
		f.BoolVarP(to, long, short, false, "")
	}
	without(f, "partition/r qos/q", "duplicates/D allclusters/L")
	return f
}

// sacct is the command sacct.
func sacct(ctx context.Context, a *cli.App, args []string) error {
	r := &report{}
	rest, err := parse(r.flags(), args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("invalid argument %s", rest[0])
	}
	if err == nil {
		err = r.setColumns()
	}
	if err != nil {
		return err
	}
	return a.WithManager(ctx, func(m *cli.Client) error {
		all, err := r.jobs(ctx, m)
		if err != nil {
			return err
		}
		if !r.each {
			all = condense(all)
		}
		r.print(a, all)
		return nil
	})
}

// setColumns reads --format: names with an optional width, such as jobname%30 or state%-10.
func (r *report) setColumns() (err error) {
	none := view{t: &manager.Task{Definition: manager.Definition{Priority: new(0)}}, last: &manager.Round{}}
	known := slices.Collect(maps.Keys(none.fields()))
	for part := range strings.SplitSeq(r.layout, ",") {
		name, size, sized := strings.Cut(part, "%")
		at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) && k[0] < 'a' })
		if at < 0 {
			return fmt.Errorf("invalid field requested: %q", name)
		}
		c := reportColumn{known[at], 10}
		if sized {
			c.width, err = strconv.Atoi(size)
		}
		if err != nil {
			return err
		}
		r.columns = append(r.columns, c)
	}
	return nil
}

// jobs returns the jobs of the report.
func (r *report) jobs(ctx context.Context, m *cli.Client) (all []*view, err error) {
	if r.refs != nil {
		all, _, err = resolve(ctx, m, r.refs)
	} else {
		if r.users == nil && !r.everyone {
			r.users = []string{userName()}
		}
		now := time.Now()
		since, err1 := parseMoment(r.since, now, time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()))
		before, err2 := parseMoment(r.before, now, time.Time{})
		err = errors.Join(err1, err2)
		if err == nil {
			all, err = between(ctx, m, since, before)
		}
	}
	return slices.DeleteFunc(all, func(v *view) bool { return !r.matches(v) }), err
}

// parseMoment reads a time, such as 2030-01-31, 2030-01-31T12:00:00, now-2days or now.
func parseMoment(value string, now, preset time.Time) (time.Time, error) {
	if value == "" {
		return preset, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		t, err := time.ParseInLocation(layout, value, now.Location())
		if err == nil {
			return t, nil
		}
	}
	n, unit := 0, ""
	_, err := fmt.Sscanf(value+" ", "now-%d%s", &n, &unit)
	spans := map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}
	span := spans[strings.TrimSuffix(unit, "s")]
	switch {
	case value == "now":
		return now, nil
	case err != nil || span == 0:
		return preset, fmt.Errorf("invalid time %s: want now, now-2days, YYYY-MM-DD, or YYYY-MM-DDTHH:MM[:SS]", value)
	}
	return now.Add(-time.Duration(n) * span), nil
}

// print prints the jobs: a line for each, and one for its step batch if it has run.
func (r *report) print(a *cli.App, all []*view) {
	header, rule := map[string]string{}, map[string]string{}
	for _, c := range r.columns {
		header[c.name], rule[c.name] = c.name, strings.Repeat("-", max(c.width, -c.width))
	}
	if !r.noHeader {
		r.line(a, header)
	}
	if !r.noHeader && !r.parsable && !r.parsable2 {
		r.line(a, rule)
	}
	for _, v := range all {
		r.line(a, v.fields())
		if v.hasRun() && !r.onlyJobs {
			step := *v
			step.batch = true
			r.line(a, step.fields())
		}
	}
}

// line prints the columns of a line.
func (r *report) line(a *cli.App, fields map[string]string) {
	var line strings.Builder
	for i, c := range r.columns {
		value := fields[c.name]
		switch {
		case r.parsable2 && i > 0:
			value = r.delimiter + value
		case r.parsable:
			value += r.delimiter
		case !r.parsable2:
			value = pad(value, max(c.width, -c.width), c.width > 0) + " "
		}
		line.WriteString(value)
	}
	fmt.Fprintln(a.Stdout, format.Printable(line.String()))
}
