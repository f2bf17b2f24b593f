package cmd_test

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A record is a text that describes the changes in a namespace, step by step. For each step, it lists the new, changed and
// removed properties. It replaces values that differ between two runs of the test:
//
//	T           a time during the test, to the microsecond
//	@0:running  a time that is equal to the property 0:running of the same task or worker
//	N           a duration, a cost or a process id
//	C1, C2, …   random ids of claims and clients, in the order in which they appear
//	U@H, H, V   user@host, the host, and the version of TDF
//	(text)      a text for people that TDF wrote
//
// For a line of a task's log, the record contains only the verb of the transition. It leaves out two values:
//   - the memory of a round, because it is not always known
//   - the last calls of a client, because their number depends on how often the client asked for tasks
//
// The record contains everything else unchanged: the output of programs, the names and types of keys, all other values, and
// whether a key expires.
type record struct {
	*testing.T
	rdb   *redis.Client
	host  string
	user  *regexp.Regexp
	begun time.Time
	ids   map[string]string // maps each random id to its name in the record
	last  page
	text  strings.Builder
}

// A page contains the properties of a namespace at one time: their names in order, and the value of each name.
type page struct {
	names  []string
	values map[string]string
}

func (p *page) add(name, format string, args ...any) {
	p.names = append(p.names, name)
	p.values[name] = fmt.Sprintf(format, args...)
}

func newRecord(t *testing.T, rdb *redis.Client) *record {
	t.Helper()
	host := expect.Result(os.Hostname()).Value(t)
	user := regexp.MustCompile(`[^\s"]+@` + regexp.QuoteMeta(host))
	return &record{T: t, rdb: rdb, host: host, user: user, begun: time.Now(), ids: map[string]string{}}
}

// note adds a step to the record. The step lists all changes since the previous step.
func (r *record) note(title string, now page) {
	fmt.Fprintf(&r.text, "\n== %s\n", title)
	r.differences(r.last, now)
	r.last = now
}

// differences writes the names of removed properties. For new and changed properties, it writes the names and the values. If a
// whole key was removed, differences writes only the key.
func (r *record) differences(before, now page) {
	for _, name := range before.names {
		key, _, property := strings.Cut(name, " ")
		_, was := before.values[name]
		_, stays := now.values[name]
		if _, keyStays := now.values[key]; was && !stays && (keyStays || !property) {
			fmt.Fprintf(&r.text, "- %s\n", name)
		}
	}
	for _, name := range now.names {
		if was, known := before.values[name]; !known || was != now.values[name] {
			fmt.Fprintf(&r.text, "%s: %s\n", name, now.values[name])
		}
	}
}

// A value is a key of Redis with its whole content.
type value struct {
	name, kind string
	expires    bool
	text       string
	hash       map[string]string
	list       []string
	sorted     []redis.Z
	stream     []redis.XMessage
}

// snapshot reads a namespace atomically. It skips wake lists from which processes take tokens, because these lists can
// change at any time.
func (r *record) snapshot(namespace string, taken map[string]*process) page {
	r.Helper()
	now := page{values: map[string]string{}}
	values := r.read(namespace)
	hashes := map[string]map[string]string{}
	for _, v := range values {
		hashes[v.name] = withLog(v.hash)
	}
	var clients []value // written last, so that their random ids already have names in the record
	for _, v := range values {
		switch {
		case strings.HasPrefix(v.name, "activity"), strings.HasPrefix(v.name, "counted:"), strings.HasPrefix(v.name, "timeline:"), strings.HasPrefix(v.name, "history:"): // processes write them a second later
		case v.name == "replication_id": // random
		case strings.HasPrefix(v.name, "calls:"):
			clients = append(clients, v)
		case taken[v.name] == nil:
			r.write(&now, v, hashes)
		}
	}
	slices.SortFunc(clients, func(a, b value) int { return byName(r.named(a.name), r.named(b.name)) })
	for _, v := range clients {
		r.write(&now, v, hashes)
	}
	return now
}

func (r *record) read(namespace string) []value {
	r.Helper()
	ctx := r.Context()
	keys, err := r.rdb.Keys(ctx, namespace+":*").Result()
	must(r, err)
	slices.SortFunc(keys, func(a, b string) int { return byName(a[len(namespace)+1:], b[len(namespace)+1:]) })
	kinds := make([]*redis.StatusCmd, len(keys))
	_, err = r.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			kinds[i] = p.Type(ctx, key)
		}
		return nil
	})
	must(r, err)
	reads := make([]func() value, len(keys))
	_, err = r.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			reads[i] = r.readKey(p, key, kinds[i].Val())
		}
		return nil
	})
	must(r, err)
	values := make([]value, len(keys))
	for i, key := range keys {
		values[i] = reads[i]()
		values[i].name, values[i].kind = strings.TrimPrefix(key, namespace+":"), kinds[i].Val()
	}
	return values
}

var number = regexp.MustCompile(`\d+`)

// byName compares two names for sorting. Tasks come first. Numbers within the names are compared by value.
func byName(a, b string) int {
	sortable := func(name string) string {
		if strings.HasPrefix(name, "task:") {
			name = " " + name
		}
		return number.ReplaceAllStringFunc(name, func(s string) string { return fmt.Sprintf("%020s", s) })
	}
	return cmp.Compare(sortable(a), sortable(b))
}

func (r *record) readKey(p redis.Pipeliner, key, kind string) func() value {
	ctx := r.Context()
	ttl := p.TTL(ctx, key)
	var get func(v *value)
	switch kind {
	case "string":
		c := p.Get(ctx, key)
		get = func(v *value) { v.text = c.Val() }
	case "hash":
		c := p.HGetAll(ctx, key)
		get = func(v *value) { v.hash = c.Val() }
	case "list":
		c := p.LRange(ctx, key, 0, -1)
		get = func(v *value) { v.list = c.Val() }
	case "set":
		c := p.SMembers(ctx, key)
		get = func(v *value) { v.list = slices.Sorted(slices.Values(c.Val())) }
	case "zset":
		c := p.ZRangeWithScores(ctx, key, 0, -1)
		get = func(v *value) { v.sorted = c.Val() }
	case "stream":
		c := p.XRange(ctx, key, "-", "+")
		get = func(v *value) { v.stream = c.Val() }
	default:
		r.Fatalf("the key %s is a %q", key, kind)
	}
	return func() value {
		v := value{expires: ttl.Val() > 0}
		get(&v)
		return v
	}
}
