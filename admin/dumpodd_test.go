package admin_test

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/redisstate"
)

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
	from := redisConfig(t, redistest.Shared(t))
	population(t, from)
	dump := dumped(t, newManager(t, from))
	first := int64(strings.Index(dump, "\n") + 1)
	for name, reader := range map[string]func(open func()) io.Reader{
		"pipe": func(open func()) io.Reader { return pipe{&meddled{strings.NewReader(dump), first, open}} },
		// The header's last id is lower than the highest id of the dump.
		"file": func(open func()) io.Reader {
			dump := strings.Replace(dump, `"last_id":12`, `"last_id":5`, 1)
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
		expect.Equal(t, restored.Tasks, 12, name)
		expect.Equal(t, restored.There, 0, name)
		expect.MustLen(t, opened, 1, name)
		expect.Equal(t, opened[0], 13, name)
		expect.Equal(t, expect.Result(target.Counts(t.Context())).Value(t).Total(), 13, name, "counts")
	}
}

// If a task of the dump has an id above the header's last id, another task may have taken this id. Load then fails.
// After the other task is removed, a second Load continues the first one.
func TestLoadMeetsAnotherTask(t *testing.T) {
	from, to := redisConfig(t, redistest.Shared(t)), redisConfig(t, redistest.Shared(t))
	population(t, from)
	dump := strings.Replace(dumped(t, newManager(t, from)), `"last_id":12`, `"last_id":5`, 1)
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
	expect.Equal(t, expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).Value(t).Tasks, 12)
	expect.Equal(t, body(dumped(t, target), to), body(dump, from))
}

// A dump may contain blank lines everywhere. If other text follows the last line of the dump, the load fails.
func TestLoadOfBlankLines(t *testing.T) {
	from := redisConfig(t, redistest.Shared(t))
	population(t, from)
	dump := dumped(t, newManager(t, from))
	spread := "\n" + strings.ReplaceAll(dump, "\n", "\r\n \n\n")
	for _, text := range []string{spread, dump + "\n", strings.TrimSpace(dump)} {
		to := redisConfig(t, redistest.Shared(t))
		target := newManager(t, to)
		_, err := admin.New(target).Load(t.Context(), pipe{strings.NewReader(dump + "\nx")})
		expect.Fails(t, err, "the dump continues")
		expect.Contains(t, err.Error(), "load the whole dump again")
		expect.Result(admin.New(target).Load(t.Context(), pipe{strings.NewReader(text)})).OK(t)
		again := dumped(t, target)
		expect.True(t, body(again, to) == body(dump, from), text, "got", body(again, to), "want", body(dump, from))
	}
}

// dumpWithWarnings returns a dump, and the warnings that Dump logged.
func dumpWithWarnings(t testing.TB, cfg config.Manager) (dump, log string) {
	t.Helper()
	var b bytes.Buffer
	m := newManager(t, cfg, testspace.Log(slog.New(slog.NewTextHandler(&b, nil))))
	return dumped(t, m), b.String()
}

// loadElsewhere loads a dump into another namespace, and checks that the new namespace gives an equal dump. It returns
// the configuration of the new namespace.
func loadElsewhere(t testing.TB, dump string, from config.Manager) config.Manager {
	t.Helper()
	to := redisConfig(t, redistest.Shared(t))
	target := newManager(t, to)
	expect.Result(admin.New(target).Load(t.Context(), strings.NewReader(dump))).OK(t, "loading", dump)
	expect.Equal(t, body(dumped(t, target), to), body(dump, from))
	return to
}

// A dump contains all stored programs that its tasks name. This includes a program that is not in the list of programs,
// because it was stored during the dump.
func TestDumpOfProgramsThatTasksName(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	m, c := newManager(t, cfg), client(t, cfg)
	listed := expect.Result(program.Put(t.Context(), m, []byte("listed"))).Value(t)
	stored := expect.Result(program.Put(t.Context(), m, []byte("stored"))).Value(t)
	c.ZRem(t.Context(), cfg.Namespace+":programs", strings.TrimPrefix(stored, "redis:"))
	absent := "redis:" + strings.Repeat("0a", 32)
	key := cfg.Namespace + ":program:" + strings.Repeat("0a", 32)
	c.Set(t.Context(), key, "absent", 0)
	for _, source := range []string{listed, stored, stored, absent, "redis:" + strings.ToUpper(stored[6:])} {
		expect.Result(m.Open(t.Context(), define("p", source, ""))).OK(t)
	}
	c.Del(t.Context(), key)
	dump, log := dumpWithWarnings(t, cfg)
	expect.Contains(t, dump, `{"end":{"programs":2,"tasks":5}}`)
	expect.Equal(t, strings.Count(dump, `{"program":`), 2, "dumped", dump)
	expect.Equal(t, strings.Count(log, "\n"), 1, "logged", log)
	expect.Contains(t, log, `"a program is not stored; it is left out" sha256=0a0a`)
	to := redisConfig(t, redistest.Shared(t))
	expect.Result(admin.New(newManager(t, to)).Load(t.Context(), strings.NewReader(dump))).OK(t)
	archive, err := connect(t, to).Program(t.Context(), strings.TrimPrefix(stored, "redis:"))
	expect.Equal(t, string(archive), "stored")
	expect.NoError(t, err)
}

// A dump can be loaded even if other clients wrote invalid ids and updates into Redis.
func TestDumpOfWhatOthersWrote(t *testing.T) {
	cfg := redisConfig(t, redistest.Shared(t))
	population(t, cfg)
	c := client(t, cfg)
	const foreign = ":task:9999999999999"
	c.HSet(t.Context(), cfg.Namespace+foreign, "state", "open", "program", "p", "source", "rsync:/p/run.sh")
	c.ZAdd(t.Context(), cfg.Namespace+":open", z("9999999999999"), z("no id"), z("-4"))
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: cfg.Namespace + ":updates:1", Values: []string{"time", "inf", "line", "hello"}})
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: cfg.Namespace + ":updates:2", ID: "1-0", Values: []string{"time", "1700000000.123456"}})
	c.XAdd(t.Context(), &redis.XAddArgs{Stream: cfg.Namespace + ":updates:2", ID: "7-3", Values: []string{"time", "nan", "other", "x"}})
	dump, log := dumpWithWarnings(t, cfg)
	expect.Contains(t, dump, `"tasks":12}`)
	expect.Contains(t, dump, `"time":"inf","line":"hello"`)
	expect.Contains(t, dump, `"time":1700000000.123456,`)
	expect.Equal(t, strings.Count(log, "\n"), 1, "logged", log)
	expect.Contains(t, log, "task 9999999999999: its id is not from 1 to 1099511627775")
	loadElsewhere(t, dump, cfg)

	c.Del(t.Context(), cfg.Namespace+foreign)
	for _, counter := range []int64{-7, redisstate.MaxID + 1} {
		c.Set(t.Context(), cfg.Namespace+":task_id", counter, 0)
		dump, log := dumpWithWarnings(t, cfg)
		expect.Equal(t, log, "", "logged")
		loadElsewhere(t, dump, cfg)
	}
}
