package admin_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testlog"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/index"
	"github.com/tdf-framework/tdf/redisstate/programs"
)

// The golden dump has tasks in all states, texts that are not valid UTF-8, and keys of each kind.
//
//go:embed testdata/dump.jsonl
var golden string

const header = `{"dump":{"format":1,"schema":1,"namespace":"x","time":1,"last_id":3}}` + "\n"

func must(t *testing.T, err error) {
	t.Helper()
	expect.NoError(t, err)
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
func body(dump, namespace string) string {
	_, rest, _ := strings.Cut(dump, "\n")
	return strings.ReplaceAll(rest, namespace, "NAMESPACE")
}

// load loads a dump into a new namespace.
func load(t testing.TB, dump io.Reader) (config.Manager, admin.Loaded, error) {
	t.Helper()
	cfg := redisConfig(t, redistest.Shared(t))
	done, err := admin.New(newManager(t, cfg)).Load(t.Context(), dump)
	return cfg, done, err
}

// A loaded dump gives an equal dump. The namespace obeys what the dump says.
func TestGoldenDump(t *testing.T) {
	onEachRedis(t, func(t *testing.T, m *manager.Manager, s *redisstate.Store) {
		done := expect.Result(admin.New(m).Load(t.Context(), strings.NewReader(golden))).Value(t)
		expect.Equal(t, done, admin.Loaded{Dumped: admin.Dumped{Programs: 2, Tasks: 10, Values: 9}})
		expect.Equal(t, body(dumped(t, m), s.Keys.Namespace()), body(golden, "NAMESPACE"))
		expect.Len(t, expect.Result(s.Check(t.Context())).Value(t), 0, "findings")
		counts := expect.Result(m.Counts(t.Context())).Value(t)
		expect.Equal(t, counts.String(), "open 2 running 1 executed 2 succeeded 1 failed 1 expired 1 archived 2")
		expect.Equal(t, s.Redis.TTL(t.Context(), s.Keys.Definitions("NAME")).Val(), -1, "the definitions expire after")
		expect.Len(t, expect.Result(s.Definitions(t.Context(), "NAME", 2)).Value(t), 2)
		claim := redisstate.ClaimParams{Worker: "w", Most: 9, Lease: 3600}
		expect.Len(t, expect.Result(s.Claim(t.Context(), claim)).Value(t).Claims, 0, "of a paused group")
		must(t, m.Resume(t.Context(), tdf.Pausable{Group: "closed"}))
		expect.Len(t, expect.Result(s.Claim(t.Context(), claim)).Value(t).Claims, 1)
		d := define("p", "rsync:/p/run.sh", "")
		expect.Equal(t, expect.Result(m.Open(t.Context(), d)).Value(t)[0].ID, 11, "the next task")
		d.Group = "closed"
		expect.Result(m.Open(t.Context(), d)).FailsWith(t, tdf.ErrGroupClosed)
		expect.Result(admin.New(m).Load(t.Context(), strings.NewReader(golden))).FailsWith(t, admin.ErrOccupied)
	})
}

// If the reader fails, Load returns the reader's error, and not a DumpError.
func TestLoadEndsWithTheErrorOfTheReader(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, begin := range map[string]string{"at once": "", "in a task": header + `{"key":`} {
		_, _, err := load(t, io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken)))
		expect.FailsWith(t, err, broken, name)
		expect.True(t, !errors.As(err, new(*admin.DumpError)), name, "got", err, err)
	}
}

// A pipe is a reader that cannot seek.
type pipe struct{ io.Reader }

// An interrupted load can be continued only with the same dump.
func TestLoadGoesOn(t *testing.T) {
	lines := strings.SplitAfter(golden, "\n")
	to, _, err := load(t, pipe{strings.NewReader(strings.Join(lines[:9], ""))})
	target := newManager(t, to)
	wrong := new(admin.DumpError)
	expect.MustTrue(t, errors.As(err, &wrong), "interrupted", err)
	expect.MustEqual(t, wrong.Line, 10)
	expect.Contains(t, err.Error(), "load the whole dump again")
	other := strings.Replace(golden, `"last_id":10`, `"last_id":13`, 1)
	if _, err := admin.New(target).Load(t.Context(), strings.NewReader(other)); !errors.Is(err, admin.ErrOccupied) ||
		!strings.Contains(err.Error(), "another dump") {
		t.Errorf("another dump: %v", err)
	}
	first := redisstate.Record{ID: 1, Hash: tdf.Hash{"0:open": "1700062802.392883", "group": "campaign <&> \u2028"}}
	expect.Result(connect(t, to).Restore(t.Context(), first)).Is(t, 1)
	restored := expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(golden))).Value(t)
	expect.Equal(t, restored.Tasks, 10)
	expect.Equal(t, restored.There, 1)
	expect.Equal(t, client(t, to).Exists(t.Context(), to.Namespace+":loading").Val(), 0, "the load is still marked as under way")
}

func TestLoadRefusesWhatIsNoDump(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	target := newManager(t, cfg)
	const task = `{"key":"task:1","hash":{"state":"open"}}` + "\n"
	const first = `{"round":0,"number":1,"line":"x"}`
	const end = `{"end":{"programs":0,"tasks":1}}` + "\n"
	var marks strings.Builder
	for i := range redisstate.FieldsPerCall + 1 {
		fmt.Fprintf(&marks, `"g%d":"closed 5",`, i)
	}
	for problem, text := range map[string]string{
		"line 1: the dump is cut off":                            "",
		"line 1: the line does not belong to a dump: invalid":    "\x00\xff\n",
		"line 1: the line does not belong to a dump: want":       "{}\n",
		"line 1: only the first line":                            task,
		"line 2: only the first line":                            header + header,
		"line 1: the dump has format 2 and layout version 1, ":   strings.Replace(header, `"format":1`, `"format":2`, 1),
		"line 2: \"k\" in limits: invalid value":                 header + `{"key":"limits","hash":{"k":"at_most=-1"}}`,
		"line 2: a dump has no key \"worker:w\"":                 header + `{"key":"worker:w","hash":{"a":"b"}}`,
		"line 2: a dump has no key \"tokens\"":                   header + `{"key":"tokens","hash":{"a":"b"}}`,
		"line 2: a dump has no key \"task:01\"":                  header + strings.Replace(task, "task:1", "task:01", 1),
		"line 2: definitions \"a b\", chunk \"0\": invalid name": header + `{"key":"definitions:a b","hash":{"0":""}}`,
		"line 2: definitions \"x\", chunk \"-1\": invalid name":  header + `{"key":"definitions:x","hash":{"-1":""}}`,
		"line 2: definitions \"x\", chunk \"01\": invalid name":  header + `{"key":"definitions:x","hash":{"01":""}}`,
		"line 2: definitions x, chunk 0: read stored":            header + `{"key":"definitions:x","hash":{"0":"base64:AAAA"}}`,
		"line 2: the line does not belong to a dump: illegal":    header + `{"key":"limits","hash":{"k":"base64:#"}}`,
		"line 2: groups has 501 fields":                          header + `{"key":"groups","hash":{` + strings.TrimSuffix(marks.String(), ",") + `}}`,
		"line 3: the last line counts 0 tasks, 0 programs and":   header + `{"key":"limits","hash":{"k":"at_most=1"}}` + "\n" + `{"end":{"programs":0,"tasks":0}}`,
		"line 1: the dump has format 1 and layout version 99,":   strings.Replace(header, `"schema":1`, `"schema":99`, 1),
		"line 1: the dump's last id -1":                          strings.Replace(header, `"last_id":3`, `"last_id":-1`, 1),
		"line 1: the line does not belong to a dump: json: un":   strings.Replace(header, `"time"`, `"date"`, 1),
		"line 3: the dump is cut off":                            header + task,
		"line 2: the line does not belong to a dump: unexpect":   header + task[:20],
		"line 2: the line does not belong to a dump: it":         header + strings.TrimSpace(task) + task,
		"line 2: the last line counts 1":                         header + end,
		"line 4: the last line counts 1":                         header + task + strings.Replace(task, ":1", ":2", 1) + end,
		"line 4: the dump continues":                             header + task + end + "x",
		"line 6: the dump continues":                             header + task + end + "\n \r\n" + "{}\n\n",
		"line 1: the dump's last id 1099511627776":               strings.Replace(header, `"last_id":3`, `"last_id":1099511627776`, 1),
		"line 2: task 0: its id":                                 header + strings.Replace(task, ":1", ":0", 1) + end,
		"line 2: task 1: it has no properties":                   header + `{"key":"task:1","hash":{}}` + "\n" + end,
		"line 2: task 1: update 0-1":                             header + strings.Replace(task, `"hash"`, `"updates":[`+first+`,`+first+`],"hash"`, 1) + end,
		"line 2: the SHA-256 of the archive of program \"00\"":   header + `{"key":"program:00","text":"AAAA"}`,
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

// A dump has only fields that TDF writes.
func TestLoadRefusesFields(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, field := range [][3]string{
		{"settings", "max_tasks", "0"},
		{"settings", "other", "1"},
		{"paused", "queue=a;b", "5 me"},
		{"paused", "queue=", "5 me"},
		{"paused", "group=\x00", "5 me"},
		{"paused", "", "5 me"},
		{"paused", "namespace", "me"},
		{"paused", "namespace", "inf me"},
		{"paused", "namespace", "-1 me"},
		{"paused", "namespace", "5 " + long},
		{"limits", "", "at_most=1"},
		{"limits", "k", ""},
		{"limits", "k", " at_most=1"},
		{"limits", "a\nb", "at_most=1"},
		{"groups", "", "closed 5"},
		{"groups", "a", "open 5"},
		{"groups", "a", "closed"},
		{"groups", "a", "closed nan"},
		{"groups", "\xff", "closed 5"},
		{"pipelines", "a/b", ""},
		{"pipelines", "a/b", "stored 5 5 x"},
		{"pipelines", "", "opened"},
		{"pipelines", long, "opened"},
		{"pipelines", "a/b", "opening 1 " + long},
	} {
		hash := expect.Result(json.Marshal(map[string]string{field[1]: field[2]})).Value(t)
		_, done, err := load(t, strings.NewReader(fmt.Sprintf("%s{\"key\":%q,\"hash\":%s}\n", header, field[0], hash)))
		expect.MustTrue(t, errors.As(err, new(*admin.DumpError)), field, err)
		expect.Compare(t, len(err.Error()), "<=", 1000)
		expect.Equal(t, done, admin.Loaded{})
	}
}

func z(member string) redis.Z { return redis.Z{Member: member} }

// A meddled reader calls the function in its field meddle once: before the first Read that begins at or after the
// position in its field offset.
type meddled struct {
	*strings.Reader
	offset int64
	meddle func()
}

func (m *meddled) Read(p []byte) (int, error) {
	at, _ := m.Seek(0, io.SeekCurrent)
	if m.meddle != nil && at >= m.offset {
		m.meddle()
		m.meddle = nil
	}
	return m.Reader.Read(p[:min(len(p), 300)])
}

// Seek subtracts 1<<40 from the field offset when it rewinds the reader. If a test sets the field to 1<<40 + n, Read calls
// meddle at byte n, but only after the reader was rewound.
func (m *meddled) Seek(to int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		m.offset -= 1 << 40
	}
	return m.Reader.Seek(to, whence)
}

// If a task is opened during a load, its id differs from all ids of the dump.
func TestLoadWhileTasksAreOpened(t *testing.T) {
	first := int64(strings.Index(golden, "\n") + 1)
	for name, reader := range map[string]func(open func()) io.Reader{
		"pipe": func(open func()) io.Reader { return pipe{&meddled{strings.NewReader(golden), first, open}} },
		// The header's last id is lower than the highest id of the dump.
		"file": func(open func()) io.Reader {
			dump := strings.Replace(golden, `"last_id":10`, `"last_id":5`, 1)
			return &meddled{strings.NewReader(dump), first + 1<<40, open}
		},
	} {
		to := redisConfig(t, redistest.Shared(t))
		target := newManager(t, to)
		var opened []int64
		restored, err := admin.New(target).Load(t.Context(), reader(func() {
			var err error
			opened, err = testspace.IDs(target.Open(t.Context(), define("new", "rsync:/p/run.sh", "")))
			expect.True(t, err == nil, err)
		}))
		expect.NoError(t, err, name)
		expect.Equal(t, restored.Tasks, 10, name)
		expect.Equal(t, restored.There, 0, name)
		expect.MustLen(t, opened, 1, name)
		expect.Equal(t, opened[0], 11, name)
		expect.Equal(t, expect.Result(target.Counts(t.Context())).Value(t).Total(), 11, name, "counts")
	}
}

// If a task of the dump has an id above the header's last id, another task may have taken this id. Load then fails.
// After the other task is removed, a second Load continues the first one.
func TestLoadMeetsAnotherTask(t *testing.T) {
	to := redisConfig(t, redistest.Shared(t))
	dump := strings.Replace(golden, `"last_id":10`, `"last_id":5`, 1)
	target := newManager(t, to)
	first := int64(strings.Index(dump, "\n") + 1)
	_, err := admin.New(target).Load(t.Context(), pipe{&meddled{strings.NewReader(dump), first, func() {
		expect.Result(testspace.IDs(target.Open(t.Context(), define("new", "rsync:/p/run.sh", "")))).OK(t)
	}}})
	expect.FailsWith(t, err, redisstate.ErrIDTaken)
	expect.Contains(t, err.Error(), "task 6: another task has this id")
	expect.Equal(t, expect.Result(target.Get(t.Context(), 6)).Value(t).Program, "new", "task 6")
	expect.Result(target.Cancel(t.Context(), manager.ByIDs(6)...)).OK(t)
	expect.MustEqual(t, expect.Result(target.Remove(t.Context(), manager.Ref{ID: 6})).Value(t).Done, 1)
	expect.Equal(t, expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).Value(t).Tasks, 10)
	expect.Equal(t, body(dumped(t, target), to.Namespace), body(golden, "NAMESPACE"))
}

// A dump may contain blank lines everywhere. If other text follows the last line of the dump, the load fails.
func TestLoadOfBlankLines(t *testing.T) {
	spread := "\n" + strings.ReplaceAll(golden, "\n", "\r\n \n\n")
	for _, text := range []string{spread, golden + "\n", strings.TrimSpace(golden)} {
		to, _, err := load(t, pipe{strings.NewReader(golden + "\nx")})
		expect.Fails(t, err, "the dump continues")
		expect.Contains(t, err.Error(), "load the whole dump again")
		target := newManager(t, to)
		expect.Result(admin.New(target).Load(t.Context(), pipe{strings.NewReader(text)})).OK(t)
		expect.Equal(t, body(dumped(t, target), to.Namespace), body(golden, "NAMESPACE"))
	}
}

// A dump leaves out what a load would refuse, and says so. It has the programs that its tasks name, even if they were
// stored during the dump.
func TestDumpLeavesOut(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, c := newManager(t, cfg), client(t, cfg)
	key := func(name string) string { return cfg.Namespace + ":" + name }
	large := make([]byte, programs.MaxBytes+1)
	tooLarge, absent := fmt.Sprintf("%x", sha256.Sum256(large)), strings.Repeat("0a", 32)
	named := strings.TrimPrefix(expect.Result(program.Put(t.Context(), m, []byte("named"))).Value(t), "redis:")
	c.Set(t.Context(), key("program:"+absent), "absent", 0)
	for _, sum := range []string{named, named, strings.ToUpper(named), absent} {
		expect.Result(m.Open(t.Context(), define("p", "redis:"+sum, ""))).OK(t)
	}
	c.Del(t.Context(), key("program:"+absent), key("programs"))
	c.Set(t.Context(), key("program:abc"), "x", 0)
	c.Set(t.Context(), key("program:"+tooLarge), large, 0)
	c.HSet(t.Context(), key("program:of another kind"), "x", "y")
	c.ZAdd(t.Context(), key("programs"), z("abc"), z("of another kind"), z(tooLarge))
	c.HSet(t.Context(), key("task:9999999999999"), "state", "open")
	c.ZAdd(t.Context(), key("open"), z("9999999999999"), z("no id"), z("-4"))
	c.HSet(t.Context(), key("groups"), "late", "closed 9999999999")
	c.HSet(t.Context(), key("limits"), "odd", "odd", "even", "at_most=2")
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: key("updates:1"), ID: "0-1", Values: []string{"time", "inf", "line", "hello"}})
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: key("updates:1"), ID: "1-1", Values: []string{"time", "5"}})
	c.HSet(t.Context(), key("task:1"), "state", "running", "0:claim", "x")
	for _, counter := range []int64{-7, index.MaxID + 1} {
		c.Set(t.Context(), key("task_id"), counter, 0)
		var log testlog.Buffer
		dump := dumped(t, newManager(t, cfg, testspace.Log(slog.New(slog.NewTextHandler(&log, nil)))))
		expect.Contains(t, dump, `{"end":{"programs":1,"tasks":4,"values":1}}`)
		expect.Contains(t, dump, `"updates":[{"round":0,"number":1,"time":0,"line":"hello"}]`)
		for _, why := range []string{
			`program \"abc\" differs from the name`, "program of another kind is not stored", "program " + tooLarge + " has",
			"program " + absent + " is not stored", "task 9999999999999: its id is not from 1 to 1099511627775",
			`\"late\" was closed during the dump`, `\"odd\" in limits: invalid value \"odd\"`,
		} {
			expect.Contains(t, log.String(), why)
		}
		expect.Equal(t, strings.Count(log.String(), "\n"), 7, log.String())
		to, done, err := load(t, strings.NewReader(dump))
		expect.NoError(t, err)
		expect.Equal(t, done.Dumped, admin.Dumped{Programs: 1, Tasks: 4, Values: 1})
		expect.Equal(t, string(expect.Result(connect(t, to).Program(t.Context(), named)).Value(t)), "named")
	}
	c.Del(t.Context(), key("program:"+tooLarge))
}

// Load changes no value that the namespace already has, and says so, but not for each of very many. It closes no group
// without tasks.
func TestLoadKeepsOtherValues(t *testing.T) {
	var log testlog.Buffer
	cfg := redisConfig(t, redistest.Shared(t))
	m := newManager(t, cfg, testspace.Log(slog.New(slog.NewTextHandler(&log, nil))))
	must(t, m.SetLimit(t.Context(), "db", tdf.Limit{AtMost: 7}))
	must(t, m.SetLimit(t.Context(), "web", tdf.Limit{AtMost: 2, Starts: 3, Per: 1.5}))
	var gone strings.Builder
	for i := range 200 {
		fmt.Fprintf(&gone, `,"g%d":"closed 5"`, i)
	}
	dump := strings.Replace(golden, `"groups","hash":{`, `"groups","hash":{"gone":"closed 5"`+gone.String()+`,`, 1)
	dump = strings.Replace(dump, `"values":9`, `"values":210`, 1)
	done := expect.Result(admin.New(m).Load(t.Context(), strings.NewReader(dump))).Value(t)
	expect.Equal(t, done, admin.Loaded{Dumped: admin.Dumped{Programs: 2, Tasks: 10, Values: 8}, Kept: 202})
	for _, want := range []string{
		`key=limits name=db value="at_most=3" why="the namespace has another value, which it keeps"`,
		`key=groups name=g0 value="closed 5" why="the group has no tasks, so it is not closed"`,
	} {
		expect.Contains(t, log.String(), want)
	}
	expect.Equal(t, strings.Count(log.String(), "\n"), 20)
	expect.Equal(t, expect.Result(m.Limits(t.Context())).Value(t)[0].AtMost, 7)
}

// finish claims the open tasks and lets them succeed.
func finish(t *testing.T, s *redisstate.Store) {
	t.Helper()
	claimed := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 100, Lease: 3600})).Value(t)
	for _, c := range claimed.Claims {
		move, err := c.Task.Execute(c.ID, tdf.Result{Output: "out", Exit: "0"})
		apply(t, s, move, err)
		decide(t, s, c.Task.ID)
	}
}

// A pipeline continues after a load. It opens no task twice.
func TestPipelineAfterALoad(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	twoStages := func(m *manager.Manager, starts *int) *manager.Pipeline {
		p := m.Pipeline("p")
		p.Start("a", func(_ context.Context, a *manager.Stage) error {
			*starts++
			for i := range 3 {
				a.Open(define("p", "rsync:/p/run.sh", fmt.Sprint(i)))
			}
			return nil
		})
		p.After("a", "b", func(_ context.Context, b *manager.Stage) error {
			b.Open(define("p", "rsync:/p/run.sh", "b"), define("p", "rsync:/p/run.sh", "b"))
			return nil
		})
		return p
	}
	run := func(p *manager.Pipeline, m *manager.Manager, until func() bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		expect.Eventually(t, "the pipeline moves", until)
		cancel()
		<-ended
	}
	count := func(m *manager.Manager, group string) int64 {
		counts := expect.Result(m.Counts(t.Context(), group)).Value(t)
		return counts.Total()
	}
	source, target := newManager(t, from), newManager(t, to)
	starts := 0
	run(twoStages(source, &starts), source, func() bool {
		s, err := source.GroupStatus(t.Context(), "p/a")
		return err == nil && s.Closed
	})
	dump := dumped(t, source)
	expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).OK(t)
	starts = 0
	finish(t, connect(t, to))
	run(twoStages(target, &starts), target, func() bool { return count(target, "p/b") > 0 })
	if a, b := count(target, "p/a"), count(target, "p/b"); a != 3 || b != 2 || starts != 0 {
		t.Errorf("%d and %d tasks, %d starts; want 3, 2 and none", a, b, starts)
	}
}
