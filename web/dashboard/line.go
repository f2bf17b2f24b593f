package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A line is the filter of the list of tasks, as a user types it after tdf ls.
type line struct {
	selection.Filter
	flags  *pflag.FlagSet
	oldest bool
	limit  int
}

const oldestFirst = "oldest-first"

func newLine() *line {
	l := &line{flags: pflag.NewFlagSet("", pflag.ContinueOnError)}
	l.flags.SortFlags, l.flags.Usage = false, func() {}
	l.Flags(l.flags, false)
	l.flags.BoolVar(&l.oldest, oldestFirst, false, "")
	l.flags.IntVar(&l.limit, "limit", pageSizes[0], "")
	return l
}

// maxLine is the largest number of bytes of a line.
const maxLine = 8000

// addressOf returns the address that has the filter of a line, and the columns of the present address. The error says
// which word is wrong.
func addressOf(text string, present url.Values) (string, error) {
	l := newLine()
	if len(text) > maxLine {
		return "", lineError("it has more than %d bytes", maxLine)
	}
	words, err := tdf.SplitInput(text)
	if err != nil {
		return "", lineError("%v", err)
	}
	if len(words) > 1 && words[0] == "tdf" && words[1] == "ls" {
		words = words[2:]
	}
	if err := l.flags.Parse(words); errors.Is(err, pflag.ErrHelp) {
		return "", lineError("unknown flag: --help")
	} else if err != nil {
		return "", lineError("%v", err)
	}
	l.IDs = l.flags.Args()
	if !slices.Contains(pageSizes, l.limit) {
		return "", lineError("invalid value %d for --limit: want %s", l.limit,
			strings.Trim(strings.ReplaceAll(fmt.Sprint(pageSizes), " ", ", "), "[]"))
	}
	q, err := l.Query(time.Time{}) // only checks the spans
	q.Since, q.Before = time.Time{}, time.Time{}
	err = cmp.Or(err, q.Validate())
	if err != nil {
		return "", lineError("%v", err)
	}
	to := url.Values{"id": l.IDs}
	to["column"] = present["column"]
	if len(l.IDs) == 0 {
		to.Del("id")
	}
	l.flags.Visit(func(f *pflag.Flag) {
		if f.Name != oldestFirst {
			to[f.Name] = valuesOf(f)
		}
	})
	if l.oldest {
		to.Set("order", "oldest")
	}
	if len(to) == 1 && len(to["column"]) == 0 {
		return Base + "/tasks", nil
	}
	return Base + "/tasks?" + to.Encode(), nil
}

func lineError(what string, of ...any) error {
	return tdf.NewError(tdf.CodeInvalid, format.OneLine(fmt.Sprintf(what, of...), 500))
}

func valuesOf(f *pflag.Flag) (all []string) {
	all = []string{f.Value.String()}
	if many, ok := f.Value.(pflag.SliceValue); ok {
		all = many.GetSlice()
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// lineOf returns the line that has the filter of an address.
func lineOf(query url.Values) string {
	l := newLine()
	l.Filter = filterOf(query).Filter
	var words []string
	l.flags.VisitAll(func(f *pflag.Flag) {
		all := valuesOf(f)
		switch {
		case len(all) == 0 || f.Value.String() == f.DefValue:
		case f.Value.Type() == "stringArray": // a flag for each value
			for _, value := range all {
				words = append(words, "--"+f.Name, sweep.Quote(value))
			}
		default:
			words = append(words, "--"+f.Name, sweep.Quote(strings.Join(all, ",")))
		}
	})
	if n, _ := strconv.Atoi(query.Get("limit")); n != pageSizes[0] && slices.Contains(pageSizes, n) {
		words = append(words, "--limit", strconv.Itoa(n))
	}
	if query.Get("order") == "oldest" {
		words = append(words, "--"+oldestFirst)
	}
	for _, id := range l.IDs {
		words = append(words, sweep.Quote(id))
	}
	return strings.Join(words, " ")
}

// Bounds of the words that complete a line.
const (
	maxWords     = 200 // of each flag
	sampledTasks = 100 // of each state, in which to look for programs and owners
	wordsEvery   = time.Minute
)

// lineWords returns the flags of a line with the words that can follow them, as JSON. A flag with other values has an
// empty list, and one without a value null.
func lineWords(ctx context.Context, v *visit) (kind string, content []byte, err error) {
	key := strings.Join([]string{"words", v.owner, v.place().name, strconv.FormatBool(v.rights.Inspect)}, " ")
	words, err := recent(ctx, &v.dashboard.facts, key, wordsEvery,
		func() (map[string][]string, error) { return readWords(ctx, v) })
	if err != nil {
		return "", nil, err
	}
	content, err = json.Marshal(words)
	return "application/json", content, err
}

func readWords(ctx context.Context, v *visit) (map[string][]string, error) {
	words := map[string][]string{}
	newLine().flags.VisitAll(func(f *pflag.Flag) { words["--"+f.Name] = []string{} })
	words["--"+oldestFirst] = nil
	words["--state"], words["--outcome"] = selection.States(), selection.Outcomes()
	add := func(flag, word string) {
		all := words[flag]
		if word = sweep.Quote(word); len(all) < maxWords && len(word) < 200 && format.OneLine(word, 0) == word &&
			!slices.Contains(all, word) {
			words[flag] = append(all, word)
		}
	}
	for _, n := range pageSizes {
		add("--limit", strconv.Itoa(n))
	}
	of, prefix, samples := v.place(), "", []manager.Query{}
	for _, state := range tdf.States { // because a large campaign rarely fills the samples of all states
		samples = append(samples, manager.Query{States: []tdf.State{state}})
	}
	if v.owner != "" { // a search for the tasks of an owner may take a moment
		prefix, samples = v.owner+"/", []manager.Query{v.own(manager.Query{})}
	}
	groups, err := v.dashboard.shards.GroupPage(ctx, prefix, "", maxWords)
	if err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		add("--campaign", g.Name)
	}
	for _, q := range samples {
		page, err := of.manager.Page(ctx, q, "", sampledTasks)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tasks {
			add("--of", t.Program)
			add("--owner", t.Owner)
		}
	}
	if !v.rights.Inspect {
		return words, nil
	}
	workers, err := of.admin.Workers(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		add("--worker", w.Name)
	}
	queues, err := of.admin.Queues(ctx)
	for _, q := range queues {
		add("--queue", q.Queue)
	}
	return words, err
}
