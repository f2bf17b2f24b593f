package cmd_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

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
			p.add(name+" "+m.ID, "%s", r.quote(fmt.Sprint(m.Values)))
		}
	case "hash":
		r.writeHash(p, name, v)
	}
}

func (r *record) writeString(v value) string {
	if sum, of := strings.CutPrefix(v.name, "program:"); of {
		expect.Equal(r, fmt.Sprintf("%x", sha256.Sum256([]byte(v.text))), sum, "the archive … has the hash")
		return fmt.Sprintf("%d bytes of this SHA-256", len(v.text))
	}
	if strings.HasPrefix(v.name, "passed:") { // contains a score in the notation of Redis
		return r.quote(scores.ReplaceAllString(v.text, "T"))
	}
	return r.quote(v.text)
}

// writeSorted writes a sorted set. It keeps the order of the open tasks. It sorts the members of other sets by name,
// because these sets are ordered by time and two times may be equal.
func (r *record) writeSorted(v value, hashes map[string]map[string]string) string {
	of := map[string]string{"workers": "worker:"}[v.name]
	if of == "" {
		of = "task:"
	}
	if v.name != "open" {
		slices.SortFunc(v.sorted, func(a, b redis.Z) int { return byName(a.Member.(string), b.Member.(string)) })
	}
	var members []string
	for _, z := range v.sorted {
		member, score := z.Member.(string), strconv.FormatFloat(z.Score, 'f', -1, 64)
		if strings.HasPrefix(v.name, "group:") { // the score is 2^40 × the state's number + the id
			score = fmt.Sprintf("%d×2^40+%d", int64(z.Score)>>40, int64(z.Score)&(1<<40-1))
		} else if r.recent(z.Score) {
			score = r.moment(fmt.Sprintf("%.6f", z.Score), hashes[of+member])
		}
		members = append(members, r.named(member)+"="+score)
	}
	return strings.Join(members, " ")
}

func (r *record) writeHash(p *page, name string, v value) {
	of, _, _ := strings.Cut(v.name, ":")
	for _, field := range slices.SortedFunc(maps.Keys(v.hash), byName) {
		switch {
		case of == "calls", of == "task" && strings.HasSuffix(field, ":max_rss"):
		case of == "task" && field == "log":
			r.writeLog(p, name, v.hash)
		case of == "task":
			p.add(name+" "+field, "%s", r.quote(ofTask(field, v.hash)))
		case of == "worker":
			p.add(name+" "+field, "%s", r.quote(r.ofWorker(field, v.hash[field])))
		default:
			p.add(name+" "+field, "%s", r.quote(v.hash[field]))
		}
	}
}

var (
	cost  = regexp.MustCompile(`:(seconds|cpu_seconds|pid)$`)
	count = regexp.MustCompile(`^\d+(\.\d{6})?$`)
)

func ofTask(field string, h map[string]string) string {
	text := h[field]
	switch {
	case cost.MatchString(field):
		return count.ReplaceAllString(text, "N")
	case strings.HasSuffix(field, ":error"):
		return withoutTexts(text)
	case strings.HasSuffix(field, ":error_bytes") && withoutTexts(h[strings.TrimSuffix(field, "_bytes")]) == "(text)":
		return "(length of a text)"
	}
	return text
}

var pause = regexp.MustCompile(`(?m)^\d+(\.\d+)?\t([^\t]*)\t.*$`)

func (r *record) ofWorker(field, text string) string {
	switch {
	case text == "":
		return ""
	case field == "host" && text == r.host:
		return "H"
	case field == "version":
		return "V"
	case field == "pid", field == "process":
		return "N"
	case field == "pauses":
		return pause.ReplaceAllString(text, "N\t$2\t(text)")
	case field == "drain":
		return "(text)"
	}
	return text
}

// withLog returns the properties of a task. It adds the time of each line of the task's log as "log 1", "log 2" and so on.
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
			p.add(fmt.Sprintf("%s log %d", name, i+1), "%s %s %s", r.moment(at, h), r.user.ReplaceAllString(who, "U@H"), verbOf(text))
		}
	}
}

// verbs maps the beginning of a text in a task's log to the verb for the record. The record contains other texts unchanged.
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
	{regexp.MustCompile(`^(cancelled|expired|archived|changed)\b`), ""}, // the verb is the matched word
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

// withoutTexts returns a round's stderr without the texts of TDF. It keeps the lines of this test's programs, which begin with
// "err: ".
func withoutTexts(stderr string) string {
	lines := strings.SplitAfter(stderr, "\n")
	for i, line := range lines {
		if line != "" && !strings.HasPrefix(line, "err: ") {
			lines[i] = "(text)"
		}
	}
	return strings.Join(lines, "")
}

var (
	moments = regexp.MustCompile(`\b\d{10}\.\d{6}\b`)
	scores  = regexp.MustCompile(`\b\d{10}\.\d+\b`)
	random  = regexp.MustCompile(`\b[A-Z2-7]{26}\b`)
)

// quote quotes a text, and replaces the parts that differ between two runs.
func (r *record) quote(text string) string {
	text = r.user.ReplaceAllString(r.named(text), "U@H")
	return strconv.Quote(moments.ReplaceAllStringFunc(text, func(at string) string { return r.moment(at, nil) }))
}

func (r *record) named(text string) string {
	return random.ReplaceAllStringFunc(text, func(id string) string {
		if r.ids[id] == "" {
			r.ids[id] = fmt.Sprintf("C%d", len(r.ids)+1)
		}
		return r.ids[id]
	})
}

// moment returns the notation of a time for the record. A time during this run becomes "@" and the name of a property with
// the same time. If no property has this time, the time becomes T. Fixed times stay unchanged.
func (r *record) moment(at string, h map[string]string) string {
	seconds, err := strconv.ParseFloat(at, 64)
	if err != nil || moments.FindString(at) != at || !r.recent(seconds) {
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
	return "@" + slices.MinFunc(equal, byName)
}

// recent reports whether a time belongs to this run of the test. It returns false for the fixed times of the test.
func (r *record) recent(seconds float64) bool {
	away := seconds - float64(r.begun.Unix())
	return away > -86400 && away < 30*86400
}
