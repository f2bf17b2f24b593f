package admin_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
)

// population opens tasks and brings them into all states. It also writes some invalid tasks.
func population(t testing.TB, cfg config.Manager) {
	t.Helper()
	ctx, s, m := t.Context(), connect(t, cfg), newManager(t, cfg)
	expect.Result(program.Put(ctx, m, []byte("an archive \x00\xff"))).OK(t)
	d := define("p", "https://example.org/run.sh", "")
	d.Group, d.Meta = "campaign <&> \u2028", `{"a":1}`
	for i := range 12 {
		d.Input = fmt.Sprint("--n ", i)
		if i == 11 {
			d.StartAfter = time.Unix(9e9, 0)
		}
		expect.Result(m.Open(ctx, d)).OK(t)
	}
	claimed := expect.Result(s.Claim(ctx, redisstate.ClaimRequest{Worker: "w", Most: 8, Lease: 3600})).Value(t)
	expect.MustLen(t, claimed.Claims, 8)
	for i, c := range claimed.Claims[:6] {
		result := tdf.Result{Output: "\xff\x00 out", Exit: "0"}
		if i%2 == 1 {
			result.Error = "wrong\n"
		}
		move, err := c.Task.Execute(c.ID, result)
		apply(t, s, move, err)
		if i < 4 {
			decide(t, s, c.Task.ID)
		}
	}
	expect.Result(m.Cancel(ctx, manager.ByIDs(9)...)).OK(t)
	expect.MustEqual(t, expect.Result(m.Archive(ctx, manager.ByIDs(1, 2)...)).Value(t).Done, 2)
	client(t, cfg).HSet(ctx, cfg.Namespace+":task:3", "odd \xfe name", "odd \xfe value", "", "no name")
}

// decide settles the task with this id.
func decide(t testing.TB, s *redisstate.Store, id int64) {
	t.Helper()
	seen := expect.Result(s.Read(t.Context(), []int64{id}, redisstate.Want{Fields: redisstate.Rules})).Value(t)
	move, ok := seen[0].Task.Settle(0, seen[0].Invalid)
	expect.MustTrue(t, ok, "nothing to settle", seen[0].Task)
	apply(t, s, move, nil)
}

func dumped(t testing.TB, m *manager.Manager) string {
	t.Helper()
	var b bytes.Buffer
	expect.Result(admin.New(m).Dump(t.Context(), &b)).OK(t)
	return b.String()
}

// body returns a dump without its first line and without the name of its namespace.
func body(dump string, cfg config.Manager) string {
	_, rest, _ := strings.Cut(dump, "\n")
	return strings.ReplaceAll(rest, cfg.Namespace, "NAMESPACE")
}

// If a dump is loaded into another namespace, that namespace has the same tasks.
func TestDumpAndRestore(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	population(t, from)
	source, target := newManager(t, from), newManager(t, to)
	dump := dumped(t, source)
	restored, err := admin.New(target).Load(t.Context(), strings.NewReader(dump))
	want := (admin.Loaded{Dumped: admin.Dumped{Programs: 1, Tasks: 12}})
	expect.MustEqual(t, restored, want)
	expect.NoError(t, err)
	expect.Equal(t, body(dumped(t, target), to), body(dump, from))
	before := expect.Result(source.Counts(t.Context())).Value(t)
	expect.Equal(t, expect.Result(target.Counts(t.Context())).Value(t).String(), before.String(), "counts")
	expect.Len(t, expect.Result(connect(t, to).Check(t.Context())).Value(t), 0, "findings")
	expect.Equal(t, expect.Result(target.Open(t.Context(), define("p", "https://example.org/run.sh", ""))).Value(t)[0].ID, 13, "the next task")
	expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).FailsWith(t, admin.ErrOccupied, "loading the same dump again")
}

// If the reader fails, Load returns the reader's error, and not a DumpError.
func TestLoadEndsWithTheErrorOfTheReader(t *testing.T) {
	target := newManager(t, redisConfig(t, redistest.Shared(t)))
	const header = `{"dump":{"format":1,"schema":1,"namespace":"x","time":1,"last_id":3}}` + "\n"
	broken := errors.New("the disk is broken")
	for name, begin := range map[string]string{"at once": "", "in a task": header + `{"task":`} {
		_, err := admin.New(target).Load(t.Context(), io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken)))
		expect.FailsWith(t, err, broken, name)
		expect.True(t, !errors.As(err, new(*admin.DumpError)), name, "got", err, err)
	}
}

// A pipe is a reader that cannot seek.
type pipe struct{ io.Reader }

// An interrupted load can be continued only with the same dump.
func TestLoadGoesOn(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	population(t, from)
	dump := dumped(t, newManager(t, from))
	lines := strings.SplitAfter(dump, "\n")
	target := newManager(t, to)

	_, err := admin.New(target).Load(t.Context(), pipe{strings.NewReader(strings.Join(lines[:9], ""))})
	wrong := new(admin.DumpError)
	expect.MustTrue(t, errors.As(err, &wrong), "interrupted", err)
	expect.MustEqual(t, wrong.Line, 10)
	expect.Contains(t, err.Error(), "load the whole dump again")
	other := strings.Replace(dump, `"last_id":12`, `"last_id":13`, 1)
	if _, err := admin.New(target).Load(t.Context(), strings.NewReader(other)); !errors.Is(err, admin.ErrOccupied) ||
		!strings.Contains(err.Error(), "another dump") {
		t.Errorf("another dump: %v", err)
	}
	first := func(r redisstate.Record) error {
		_, err := connect(t, to).Restore(t.Context(), r)
		return err
	}
	expect.NoError(t, connect(t, from).Records(t.Context(), []int64{1}, first))
	restored := expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).Value(t)
	expect.Equal(t, restored.Tasks, 12)
	expect.Equal(t, restored.There, 1)
	expect.Equal(t, client(t, to).Exists(t.Context(), to.Namespace+":loading").Val(), 0, "the load is still marked as under way")
}

func TestLoadRefusesWhatIsNoDump(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	target := newManager(t, cfg)
	const header = `{"dump":{"format":1,"schema":1,"namespace":"x","time":1,"last_id":3}}` + "\n"
	const task = `{"task":{"id":1,"hash":{"state":"open"}}}` + "\n"
	const end = `{"end":{"programs":0,"tasks":1}}` + "\n"
	for problem, text := range map[string]string{
		"line 1: the dump is cut off":                          "",
		"line 1: the line does not belong to a dump: invalid":  "\x00\xff\n",
		"line 1: the line does not belong to a dump: want":     "{}\n",
		"line 1: only the first line":                          task,
		"line 2: only the first line":                          header + header,
		"line 1: the dump names no format":                     strings.Replace(header, `"format":1`, `"format":0`, 1),
		"line 1: the dump has format 3, and this":              strings.Replace(header, `"format":1`, `"format":3`, 1),
		"line 2: limit \"\": limit_key: is empty":              header + `{"value":{"kind":"limit","name":"","text":"at_most=1"}}` + "\n",
		"line 2: limit \"k\": invalid value":                   header + `{"value":{"kind":"limit","name":"k","text":"at_most=-1"}}` + "\n",
		"line 2: worker \"w\": unknown kind":                   header + `{"value":{"kind":"worker","name":"w","text":""}}` + "\n",
		"line 2: definitions \"a b\", chunk 0: invalid name":   header + `{"definitions":{"name":"a b","chunk":0,"data":""}}` + "\n",
		"line 2: definitions \"x\", chunk -1: invalid name":    header + `{"definitions":{"name":"x","chunk":-1,"data":""}}` + "\n",
		"line 2: definitions x, chunk 0: read stored":          header + `{"definitions":{"name":"x","chunk":0,"data":"AAAA"}}` + "\n",
		"line 3: the last line counts 0 tasks, 0 programs and": header + `{"value":{"kind":"limit","name":"k","text":"at_most=1"}}` + "\n" + `{"end":{"programs":0,"tasks":0}}` + "\n",
		"line 1: the dump has layout version 99":               strings.Replace(header, `"schema":1`, `"schema":99`, 1),
		"line 1: the dump's last id -1":                        strings.Replace(header, `"last_id":3`, `"last_id":-1`, 1),
		"line 1: the line does not belong to a dump: json: un": strings.Replace(header, `"time"`, `"date"`, 1),
		"line 3: the dump is cut off":                          header + task,
		"line 2: the line does not belong to a dump: unexpect": header + task[:20],
		"line 2: the line does not belong to a dump: it":       header + strings.TrimSpace(task) + task,
		"line 2: the last line counts 1":                       header + end,
		"line 4: the last line counts 1":                       header + task + strings.Replace(task, ":1,", ":2,", 1) + end,
		"line 4: the dump continues":                           header + task + end + "x",
		"line 6: the dump continues":                           header + task + end + "\n \r\n" + "{}\n\n",
		"line 1: the dump's last id 1099511627776":             strings.Replace(header, `"last_id":3`, `"last_id":1099511627776`, 1),
		"line 2: task 0: its id":                               header + strings.Replace(task, ":1,", ":0,", 1) + end,
		"line 2: task 1: it has no properties":                 header + `{"task":{"id":1,"hash":{}}}` + "\n" + end,
		"line 2: task 1: update 0-0":                           header + strings.Replace(task, `"hash"`, `"updates":[{"round":0,"number":0,"line":"x"}],"hash"`, 1) + end,
		"line 2: the SHA-256 of the archive of program \"00\"": header + `{"program":{"sha256":"00","archive":"AAAA"}}` + "\n",
	} {
		for _, r := range []io.Reader{strings.NewReader(text), pipe{strings.NewReader(text)}} {
			_, err := admin.New(target).Load(t.Context(), r)
			expect.MustTrue(t, errors.As(err, new(*admin.DumpError)), problem, err)
			expect.True(t, strings.HasPrefix(err.Error(), problem), problem, err)
			c := client(t, cfg)
			if n := c.Exists(t.Context(), cfg.Namespace+":loading", cfg.Namespace+":open").Val(); n != 0 {
				_, again := r.(io.Seeker)
				expect.True(t, !again, problem, "the load wrote something")
				c.Del(t.Context(), cfg.Namespace+":loading", cfg.Namespace+":task:1", cfg.Namespace+":task:2", cfg.Namespace+":open", cfg.Namespace+":limits")
			}
		}
	}
}

// A dump omits a stored program whose archive does not match the SHA-256 in its name, because no worker would run the
// program. It also omits a program that is too large, because Load could not store the program.
func TestDumpLeavesOutBrokenPrograms(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	c := client(t, cfg)
	large := make([]byte, redisstate.MaxProgram+1)
	sum := fmt.Sprintf("%x", sha256.Sum256(large))
	c.Set(t.Context(), cfg.Namespace+":program:abc", "x", 0)
	c.Set(t.Context(), cfg.Namespace+":program:"+sum, large, 0)
	c.HSet(t.Context(), cfg.Namespace+":program:of another kind", "x", "y")
	c.ZAdd(t.Context(), cfg.Namespace+":programs", z("abc"), z("of another kind"), z("gone"), z(sum))
	dump, log := dumpWithWarnings(t, cfg)
	expect.Contains(t, dump, `{"end":{"programs":0,"tasks":0}}`, "dumped")
	for _, want := range []string{
		`differs from the SHA-256 in its name; it is left out" sha256=abc`, `is not stored; it is left out" sha256="of another kind"`,
		`is not stored; it is left out" sha256=gone`, `is too large; it is left out" sha256=` + sum,
	} {
		expect.Contains(t, log, want, "is not logged")
	}
	c.Del(t.Context(), cfg.Namespace+":program:"+sum)
}
