package cmd_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A record is the canonical text of a namespace, step by step: for each step the properties that are new, changed or
// gone. Only what differs from one run to the next is replaced:
//
//	T           a moment of the test, to the microsecond
//	@0:running  a moment that is equal to that property of the same task or worker
//	N           a duration, a cost, a process id
//	C1, C2, …   random ids of claims and clients, in the order in which they appear
//	U@H, H, V   the user and the host, the release
//	(text)      a text that TDF wrote for people
//
// Texts of a task's log are replaced by the verb of their transition. Everything else is exact: what a program printed, the
// names and types of keys, all other values, and whether a key expires.
type record struct {
	*testing.T
	rdb   *redis.Client
	host  string
	begun time.Time
	ids   map[string]string // what random ids are called
	last  page
	text  strings.Builder
}

// A page is a namespace at one moment: properties by name, in their order.
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
	host, err := os.Hostname()
	must(t, err)
	return &record{T: t, rdb: rdb, host: host, begun: time.Now(), ids: map[string]string{}}
}

// note adds a step: what has changed since the one before.
func (r *record) note(title string, now page) {
	fmt.Fprintf(&r.text, "\n== %s\n", title)
	r.differences(r.last, now)
	r.last = now
}

// differences names what is gone, and what is there with its value. Of a key that is gone it names no properties.
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

// A value is a key with all that it holds, as it was at the moment of the snapshot.
type value struct {
	name, kind string
	expires    bool
	text       string
	hash       map[string]string
	list       []string
	sorted     []redis.Z
	stream     []redis.XMessage
}

// snapshot reads a namespace as it is at one moment, without the wake tokens that components take meanwhile.
func (r *record) snapshot(namespace string, taken map[string]*process) page {
	r.Helper()
	now := page{values: map[string]string{}}
	values := r.read(namespace)
	hashes := map[string]map[string]string{}
	for _, v := range values {
		hashes[v.name] = withLog(v.hash)
	}
	var clients []value // their random ids have names when all else has been written
	for _, v := range values {
		switch {
		case strings.HasPrefix(v.name, "calls:"):
			clients = append(clients, v)
		case taken[v.name] == nil:
			r.write(&now, v, hashes)
		}
	}
	slices.SortFunc(clients, func(a, b value) int { return cmp.Compare(sortable(":"+r.named(a.name)), sortable(":"+r.named(b.name))) })
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
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(sortable(a), sortable(b)) })
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

// sortable puts tasks first, and numbers in their order.
func sortable(key string) string {
	_, name, _ := strings.Cut(key, ":")
	if strings.HasPrefix(name, "task:") {
		name = " " + name
	}
	return number.ReplaceAllStringFunc(name, func(s string) string { return fmt.Sprintf("%020s", s) })
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

func (r *record) write(p *page, v value, hashes map[string]map[string]string) {
	name := r.named(v.name)
	kind := v.kind
	if v.expires {
		kind += ", expires"
	}
	p.add(name, "%s", kind)
	switch v.kind {
	case "string":
		p.add(name+" =", "%s", r.writeString(v))
	case "list", "set":
		p.add(name+" =", "%q", v.list)
	case "zset":
		p.add(name+" =", "%s", r.writeSorted(v, hashes))
	case "stream":
		for _, m := range v.stream {
			p.add(name+" "+m.ID, "%s", r.quote(fmt.Sprint(m.Values), nil))
		}
	case "hash":
		r.writeHash(p, name, v)
	}
}

func (r *record) writeString(v value) string {
	if sum, of := strings.CutPrefix(v.name, "program:"); of {
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(v.text))); got != sum {
			r.Errorf("the archive %s has the hash %s", sum, got)
		}
		return fmt.Sprintf("%d bytes of this SHA-256", len(v.text))
	}
	if strings.HasPrefix(v.name, "passed:") { // with a score as Redis prints it
		return r.quote(scores.ReplaceAllString(v.text, "T"), nil)
	}
	return r.quote(v.text, nil)
}

// writeSorted keeps the order of the queue. That of the other lists is one of moments, which may be equal.
func (r *record) writeSorted(v value, hashes map[string]map[string]string) string {
	of := map[string]string{"workers": "worker:"}[v.name]
	if of == "" {
		of = "task:"
	}
	if v.name != "open" {
		slices.SortFunc(v.sorted, func(a, b redis.Z) int {
			return cmp.Compare(sortable(":"+a.Member.(string)), sortable(":"+b.Member.(string)))
		})
	}
	var members []string
	for _, z := range v.sorted {
		member, score := z.Member.(string), strconv.FormatFloat(z.Score, 'f', -1, 64)
		if strings.HasPrefix(v.name, "group:") { // 2^40 × the state's number + id
			score = fmt.Sprintf("%d×2^40+%d", int64(z.Score)>>40, int64(z.Score)&(1<<40-1))
		} else if r.recent(z.Score) {
			score = r.moment(fmt.Sprintf("%.6f", z.Score), hashes[of+member])
		}
		members = append(members, r.named(member)+"="+score)
	}
	return strings.Join(members, " ")
}

// optional are properties of a round that may be missing: a small program's memory cannot be told from its worker's.
var optional = regexp.MustCompile(`^\d+:max_rss$`)

var costs = regexp.MustCompile(`^(\d+:(seconds|cpu_seconds|pid)|pid|process)$`)

func (r *record) writeHash(p *page, name string, v value) {
	of, _, _ := strings.Cut(v.name, ":")
	if of == "calls" { // how many calls there were depends on how often a worker looked for tasks
		return
	}
	fields := make([]string, 0, len(v.hash))
	for field := range v.hash {
		fields = append(fields, field)
	}
	slices.SortFunc(fields, func(a, b string) int { return cmp.Compare(sortable(":"+a), sortable(":"+b)) })
	for _, field := range fields {
		text := v.hash[field]
		switch {
		case optional.MatchString(field):
			continue
		case costs.MatchString(field):
			text = map[bool]string{true: "N", false: ""}[text != ""]
		case of == "task" && field == "log":
			r.writeLog(p, name, v.hash)
			continue
		case of == "task" && strings.HasSuffix(field, ":error"):
			text = withoutTexts(text)
		case of == "task" && strings.HasSuffix(field, ":error_bytes") && withoutTexts(v.hash[strings.TrimSuffix(field, "_bytes")]) == "(text)":
			text = "(length of a text)"
		case of == "worker":
			text = r.ofWorker(field, text)
		}
		p.add(name+" "+field, "%s", r.quote(text, nil))
	}
}

// withLog adds the moments of a task's log to its properties.
func withLog(h map[string]string) map[string]string {
	all := maps.Clone(h)
	for i, line := range strings.Split(h["log"], "\n") {
		if at, _, found := strings.Cut(line, " "); found {
			all[fmt.Sprintf("log %d", i+1)] = at
		}
	}
	return all
}

func (r *record) writeLog(p *page, name string, h map[string]string) {
	for i, line := range strings.Split(h["log"], "\n") {
		at, rest, _ := strings.Cut(line, " ")
		who, text, _ := strings.Cut(rest, ": ")
		if line != "" {
			at = moments.ReplaceAllStringFunc(at, func(at string) string { return r.moment(at, h) })
			p.add(fmt.Sprintf("%s log %d", name, i+1), "%s %s %s", at, r.people(who), verbOf(text))
		}
	}
}

// verbs of a log's texts, by how they begin. Another text is recorded as it is.
var verbs = []struct {
	begin *regexp.Regexp
	verb  string
}{
	{regexp.MustCompile(`^(open again by hand|reopened|retried)\b`), "REOPEN"},
	{regexp.MustCompile(`^open: `), "RESCORE"},
	{regexp.MustCompile(`^open$`), "OPEN"},
	{regexp.MustCompile(`^(running|claimed)$`), "CLAIM"},
	{regexp.MustCompile(`^running: `), "RESCORE"},
	{regexp.MustCompile(`^executed$`), "EXECUTE"},
	{regexp.MustCompile(`^succeeded$`), "SUCCEED"},
	{regexp.MustCompile(`^failed: `), "REJECT"},
	{regexp.MustCompile(`^failed\b`), "FAIL"},
	{regexp.MustCompile(`^timed out\b`), "TIME OUT"},
	{regexp.MustCompile(`^(cancelled|expired|archived|changed)\b`), ""}, // said with the word itself
	{regexp.MustCompile(`^lost\b`), "LOSE"},
	{regexp.MustCompile(`^(given back|released|requeued)\b`), "RELEASE"},
	{regexp.MustCompile(`^(put back|moved back|mended|repaired|executed, but|running, but|inconsistent|the index)\b`), "REPAIR"},
}

func verbOf(text string) string {
	for _, v := range verbs {
		if word := v.begin.FindString(text); word != "" {
			return cmp.Or(v.verb, strings.ToUpper(word))
		}
	}
	return strconv.Quote(text)
}

// withoutTexts keeps the lines of a round's error that the programs of this test printed: all of them begin alike.
func withoutTexts(stderr string) string {
	lines := strings.SplitAfter(stderr, "\n")
	for i, line := range lines {
		if line != "" && !strings.HasPrefix(line, "err: ") {
			lines[i] = "(text)"
		}
	}
	return strings.Join(lines, "")
}

var pause = regexp.MustCompile(`(?m)^\d+(\.\d+)?\t([^\t]*)\t.*$`)

func (r *record) ofWorker(field, text string) string {
	switch {
	case field == "host" && text == r.host:
		return "H"
	case field == "version" && text != "":
		return "V"
	case field == "pauses":
		return pause.ReplaceAllString(text, "N\t$2\t(text)")
	case field == "avoids" && text != "", field == "drain":
		return "(text)"
	}
	return text
}

var (
	moments = regexp.MustCompile(`\b\d{10}\.\d{6}\b`)
	scores  = regexp.MustCompile(`\b\d{10}\.\d+\b`)
	random  = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// quote is a text without what differs from run to run.
func (r *record) quote(text string, h map[string]string) string {
	text = r.people(r.named(text))
	return strconv.Quote(moments.ReplaceAllStringFunc(text, func(at string) string { return r.moment(at, h) }))
}

func (r *record) named(text string) string {
	return random.ReplaceAllStringFunc(text, func(id string) string {
		if r.ids[id] == "" {
			r.ids[id] = fmt.Sprintf("C%d", len(r.ids)+1)
		}
		return r.ids[id]
	})
}

func (r *record) people(text string) string {
	return regexp.MustCompile(`[^\s"]+@`+regexp.QuoteMeta(r.host)).ReplaceAllString(text, "U@H")
}

// moment names a moment of the test by the property that it is equal to; other moments stay as they are.
func (r *record) moment(at string, h map[string]string) string {
	seconds, err := strconv.ParseFloat(at, 64)
	must(r, err)
	if !r.recent(seconds) {
		return at
	}
	var equal []string
	for field, value := range h {
		if value == at {
			equal = append(equal, field)
		}
	}
	if len(equal) == 0 {
		return "T"
	}
	return "@" + slices.MinFunc(equal, func(a, b string) int { return cmp.Compare(sortable(":"+a), sortable(":"+b)) })
}

// recent tells the moments of this run from those that the test has made up.
func (r *record) recent(seconds float64) bool {
	away := seconds - float64(r.begun.Unix())
	return away > -86400 && away < 30*86400
}
