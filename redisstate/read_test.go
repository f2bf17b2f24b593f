package redisstate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// load is a hook that measures replies of Redis.
type load struct {
	mu            sync.Mutex
	fields, bytes int      // the largest numbers of properties and of bytes in one reply
	whole         []string // the commands that read a whole hash
	names         int      // number of values in all replies
}

func (l *load) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *load) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		err := next(ctx, c)
		l.see(c)
		return err
	}
}

func (l *load) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		for _, c := range commands {
			l.see(c)
		}
		return err
	}
}

func (l *load) see(c redis.Cmder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Name() == "hgetall" {
		l.whole = append(l.whole, fmt.Sprint(c.Args()...))
	}
	if reply, ok := c.(*redis.SliceCmd); ok {
		l.add(reply.Val())
	}
	if reply, ok := c.(*redis.ScanCmd); ok {
		values, _ := reply.Val()
		some := make([]any, len(values))
		for i, v := range values {
			some[i] = v
		}
		l.add(some)
	}
	if reply, ok := c.(*redis.Cmd); ok { // a reply of fields.lua
		for i, answer := range conn.List(reply.Val()) {
			if _, ofNames := conn.List(reply.Val())[0].(string); ofNames && i > 0 {
				continue // a reply of names.lua has no values; with the embedded Redis, it has all names at once
			}
			l.add(conn.List(answer))
		}
	}
}

func (l *load) add(values []any) {
	bytes := 0
	for _, v := range values {
		bytes += len(conn.Text(v))
	}
	l.fields, l.bytes = max(l.fields, len(values)), max(l.bytes, bytes)
	l.names += len(values)
}

// rounds returns a copy of the task h in which the task has n rounds. Each round has all properties that a round can
// have.
func rounds(h task.Hash, n int) task.Hash {
	h = maps.Clone(h)
	h["round"] = fmt.Sprint(n - 1)
	for i := range n {
		for _, name := range redisstate.RoundFacts {
			h[task.RoundField(i, name)] = fmt.Sprint(1000 + i)
		}
		for _, name := range redisstate.NamesOf(redisstate.RoundProperties, redisstate.Unbounded) {
			h[task.RoundField(i, name)] = fmt.Sprint(name, " of ", i)
		}
	}
	return h
}

var plain = task.Hash{
	"id": "1", "state": "failed", "round": "0", "program": "p", "source": "rsync:/p/run.sh", "input": "some input", "meta": "{}",
	"log": "1 a: b", "checkpoint": "c", "outcome": "failed", "not_on": "v\nw", "max_fails": "3", "0:worker": "w", "0:executed": "7",
}

func with(h task.Hash, more task.Hash) task.Hash {
	h = maps.Clone(h)
	maps.Copy(h, more)
	return h
}

// leaveOutFiles removes the files of rounds, which are read only by those who ask for them.
func leaveOutFiles(t *task.Task) {
	for _, r := range t.Rounds {
		r.Packed = ""
	}
}

// A whole task that is read from Redis equals the stored task.
func TestReadWhole(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for name, h := range map[string]task.Hash{
			"one round":      plain,
			"an original's":  with(plain, task.Hash{"0:output": "", "0:error": "", "1:open": "8", "round": "1"}),
			"half committed": with(plain, task.Hash{"0:output": ""}),
			"many rounds":    rounds(plain, 67),
			"invalid":        with(plain, task.Hash{"max_fails": "many", "source": ""}),
		} {
			want, wantErr := task.ParseTask(1, h)
			leaveOutFiles(want)
			must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Task(1)).Err())
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(h)).Err())
			for _, ids := range [][]int64{{1}, {2, 1}} {
				all := expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(t)
				got := all[len(ids)-1]
				diff := cmp.Diff(want, got.Task)
				expect.Equal(t, diff, "", name)
				expect.Equal(t, fmt.Sprint(got.Invalid), fmt.Sprint(wantErr), name, diff)
			}
		}
		for _, fields := range []redisstate.Fields{redisstate.Head, redisstate.Facts, redisstate.Rules, redisstate.Rules | redisstate.Facts, redisstate.Rules | redisstate.Lists, redisstate.Whole} {
			expect.Result(s.ReadOne(t.Context(), 99, redisstate.Want{Fields: fields})).FailsWith(t, task.ErrNoTask, "no task")
		}
	})
}

// If a task is removed while it is read, the error says that the task does not exist. The task is not reported as
// invalid, even if it has moved several times before.
func TestReadOfATaskThatIsRemovedMeanwhile(t *testing.T) {
	s := newStore(t)
	moves := 0
	s.Conn.Redis.AddHook(observer(func(c redis.Cmder) {
		if !mentions(c, redisstate.HeadFields) {
			return
		}
		if moves > 0 {
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "outcome", moves).Err())
		} else {
			must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Task(1)).Err())
		}
		moves--
	}))
	for before := range redisstate.ReadTries {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(rounds(plain, 50))).Err())
		moves = before
		expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Whole})).FailsWith(t, task.ErrNoTask, "after", before, "moves")
	}
}

// A large task is read with many short commands, so that other clients of Redis are not delayed.
func TestReadingALargeTaskDelaysNoClient(t *testing.T) {
	s := newStore(t)
	many := rounds(plain, 300)
	large := rounds(plain, 12)
	for i := range 12 {
		large[task.RoundField(i, "output")] = strings.Repeat("x", 1<<20)
	}
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(many)).Err())
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(2), map[string]string(large)).Err())
	l := &load{}
	s.Conn.Redis.AddHook(l)
	for id, rounds := range map[int64]int{1: 300, 2: 12} {
		x := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Whole})).Value(t)
		expect.MustLen(t, x.Task.Rounds, rounds, "task", id)
		expect.MustTrue(t, x.Task.Rounds.At(rounds-1).Tail != "", "task", id)
		expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(rounds)})).OK(t)
	}
	expect.Compare(t, l.fields, ">=", 500)
	expect.Compare(t, l.fields, "<=", redisstate.NamesAtOnce)
	expect.Len(t, l.whole, 0)
	l.names, l.bytes = 0, 0
	x := expect.Result(s.ReadOne(t.Context(), 2, redisstate.Want{Fields: redisstate.Rules | redisstate.Facts, Rounds: redisstate.LastRounds(2)})).Value(t)
	if r := x.Task.Current(); r.Worker != "1011" || !r.HasError || r.Error != "" || !r.Committed || x.Task.Rounds.At(10).LastOutput != 1010 || x.Task.Rounds.At(9).LastOutput != 0 {
		t.Errorf("the last two rounds: %+v", x.Task)
	}
	x = expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.OneRound(17), Texts: redisstate.SameTexts(redisstate.TextsOf{17, task.TextOutput})})).Value(t)
	r := x.Task.Rounds.At(17)
	expect.Equal(t, r.Output, "output of 17")
	expect.Equal(t, r.LastOutput, 1017)
	expect.Compare(t, l.names, "<=", 300)
	expect.Compare(t, l.bytes, "<=", 1000)
}

// A task with many long outputs is read in pieces, too.
func TestReadingMuchOutputDelaysNoClient(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	large := rounds(plain, 12)
	for i := range 12 {
		large[task.RoundField(i, "output")] = strings.Repeat("x", 1<<20)
	}
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(large)).Err())
	must(t, s.Conn.Redis.ConfigResetStat(t.Context()).Err())
	x := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Whole})).Value(t)
	expect.MustLen(t, x.Task.Rounds.At(11).Output, 1<<20)
	reads := commandCalls(t, s, "hmget")
	pieces := 12 << 20 / redisstate.ReadAtOnce
	expect.Compare(t, reads, ">", pieces)
	expect.Equal(t, commandCalls(t, s, "hgetall"), 0, reads, "commands, want more than", pieces, "short commands, and no HGETALL")
}

// If a task has a high round number but few rounds, reading it does not read thousands of missing properties.
func TestInventedRounds(t *testing.T) {
	s := newStore(t)
	many := 100
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(with(plain, task.Hash{"round": "99999", "99999:open": "5"}))).Err())
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(2), map[string]string(rounds(plain, many+1))).Err())
	l := &load{}
	s.Conn.Redis.AddHook(l)
	tasks := expect.Result(s.Read(t.Context(), []int64{1, 2}, redisstate.Want{Fields: redisstate.Facts, Rounds: redisstate.LastRounds(10)})).Value(t)
	x := tasks[0].Task
	expect.Equal(t, x.Round, 99999)
	expect.Equal(t, x.Current().Entered[task.Open], 5)
	expect.Len(t, x.Rounds, 1)
	if x := tasks[1].Task; x.Round != many || x.Current().LastOutput != task.Time(1000+many) || len(x.Rounds) != 10 {
		t.Errorf("%+v", x)
	}
	whole := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Whole})).Value(t)
	if x := whole.Task; len(x.Rounds) != 2 || x.Rounds.At(0).Worker != "w" || x.Input != "some input" {
		t.Errorf("%+v", x)
	}
	expect.True(t, l.names <= 1000, "the replies had", l.names, "values")
}

// A task with an impossible round number is invalid, and is read as a task in round 0.
func TestInvalidRound(t *testing.T) {
	s := newStore(t)
	for _, round := range []string{"9223372036854775807", "100000", "-1", "1e9", "many"} {
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(with(plain, task.Hash{"round": round}))).Err())
		for _, fields := range []redisstate.Fields{redisstate.Rules, redisstate.Facts, redisstate.Rules | redisstate.Facts, redisstate.Whole} {
			x, err := s.ReadOne(t.Context(), 1, redisstate.Want{Fields: fields, Rounds: redisstate.LastRounds(2)})
			if err != nil || x.Task.Round != 0 || x.Task.Current().Worker != "w" || x.Invalid == nil || !strings.HasPrefix(x.Invalid.Error(), "round: ") {
				t.Errorf("round %s, fields %b: %+v, %v", round, fields, x, err)
			}
		}
	}
}

// Redis does not send values that are too long.
func TestLongValuesAreNotRead(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		huge := plain
		for _, name := range slices.Concat(redisstate.FactFields, []string{"0:worker", "0:claim", "0:exit", "0:progress"}) {
			if name != "state" && name != "round" {
				huge = with(huge, task.Hash{name: strings.Repeat("x", redisstate.LongestField+1)})
			}
		}
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(huge)).Err())
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(2), map[string]string(plain)).Err())
		l := &load{}
		s.Conn.Redis.AddHook(l)
		for _, want := range []redisstate.Want{{Fields: redisstate.Rules | redisstate.Lists}, {Fields: redisstate.Facts, Rounds: redisstate.LastRounds(2)}, {Fields: redisstate.Rules | redisstate.Facts}, {Fields: redisstate.Whole}} {
			all := expect.Result(s.Read(t.Context(), []int64{1, 2}, want)).Value(t)
			expect.Fails(t, all[0].Invalid, "at most ")
			expect.Equal(t, all[1].Task.Outcome, "failed")
		}
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), "input", strings.Repeat("x", 1<<20), "0:output", "out").Err())
		all := expect.Result(s.Read(t.Context(), []int64{1, 2}, redisstate.Want{Texts: redisstate.SameTexts(redisstate.TextsOf{redisstate.OfTask, task.TextInput | task.TextMeta}, redisstate.TextsOf{0, task.TextOutput})})).Value(t)
		x, y := all[0].Task, all[1].Task
		expect.Equal(t, x.Input, "(1048576 bytes, too long to be valid)")
		expect.Equal(t, x.Meta, "{}")
		expect.Equal(t, x.Current().Output, "out")
		expect.Equal(t, y.Input, "some input")
		expect.True(t, l.bytes <= 1000, "the longest reply had", l.bytes, "bytes")
	})
}

// No single command reads all properties of a task with very many properties.
func TestManyPropertiesDelayNoClient(t *testing.T) {
	s := newStore(t)
	h := rounds(plain, 250)
	for i := range redisstate.FewNames {
		h[fmt.Sprint("unknown ", i)] = "x"
	}
	must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(1), map[string]string(h)).Err())
	want, _ := task.ParseTask(1, h)
	leaveOutFiles(want)
	l := &load{}
	s.Conn.Redis.AddHook(l)
	for _, ids := range [][]int64{{1}, {2, 1}} {
		all := expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).Value(t)
		diff := cmp.Diff(want, all[len(ids)-1].Task)
		expect.Equal(t, diff, "")
		if all[0].ID == 2 {
			expect.Equal(t, all[0].Task, nil, diff)
		}
	}
	for _, command := range l.whole {
		expect.True(t, strings.HasSuffix(command, ":2"), command)
	}
}

// MaxBytes limits how many whole tasks are read at once. At least one task is read.
func TestWholeTasksAreBoundedInBytes(t *testing.T) {
	s := newStore(t)
	const large = 1 << 20
	ids := make([]int64, 40)
	for i := range ids {
		ids[i] = int64(i + 1)
		h := with(plain, task.Hash{"0:output": strings.Repeat("x", large)})
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), map[string]string(h)).Err())
	}
	for _, most := range []int{1, 3*large + large/2, 9 * large} {
		for rest := ids; len(rest) > 0; {
			stored := expect.Result(s.Read(t.Context(), rest, redisstate.Want{Fields: redisstate.Whole, MaxBytes: most})).Value(t)
			// If Redis does not report sizes, a few tasks are read before their sizes are known.
			n := len(stored)
			expect.MustTrue(t, n >= 1, n, stored[max(0, n-1)].ID, most)
			if n > max(1, most/large) {
				expect.MustTrue(t, n <= redisstate.HashesUnseen, n, stored[max(0, n-1)].ID, most)
			}
			expect.MustEqual(t, stored[n-1].ID, rest[n-1], n, most)
			expect.MustTrue(t, stored[n-1].Task != nil, n, stored[max(0, n-1)].ID, most)
			isRedis := infoOf(t, s)["redis_version"] != ""
			if isRedis {
				expect.Compare(t, len(stored), "<=", max(1, most/large), most, "bytes")
			}
			rest = rest[len(stored):]
		}
	}
}

// To read a small task takes two commands: the first measures the task, and the second reads it.
func TestASmallTaskIsReadWithTwoCommands(t *testing.T) {
	t.Parallel()
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	const tasks = 20
	ids := make([]int64, tasks)
	for i := range ids {
		ids[i] = int64(i + 1)
		must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(ids[i]), map[string]string(plain)).Err())
	}
	must(t, s.Conn.Redis.ConfigResetStat(t.Context()).Err())
	expect.Result(s.Read(t.Context(), ids, redisstate.Want{Fields: redisstate.Whole})).OK(t)
	m, h, l := commandCalls(t, s, "memory|usage"), commandCalls(t, s, "hgetall"), commandCalls(t, s, "hlen")
	expect.Equal(t, m, tasks, h, "HLEN", l, "times")
	expect.Equal(t, h, tasks, "MEMORY USAGE", m, l, "times")
	expect.Equal(t, l, 0, "MEMORY USAGE", m, "HGETALL", h)
}

// A read with the fields Rules does not read the definition of a running or executed task. So the missing definition
// does not make the task invalid.
func TestRulesOfARunningTaskAreValid(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"), define("c"))
	claims := mustClaim(t, s, 2)
	m, err := rules.Execute(claims[0].Task, claims[0].ID, rules.Result{Exit: "0"})
	mustApply(t, s, m, err)
	for id, state := range map[int64]task.State{1: task.Executed, 2: task.Running, 3: task.Open} {
		for _, fields := range []redisstate.Fields{redisstate.Rules, redisstate.Rules | redisstate.Lists, redisstate.Rules | redisstate.Facts} {
			x := expect.Result(s.ReadOne(t.Context(), id, redisstate.Want{Fields: fields})).Value(t)
			expect.Equal(t, x.Task.State, state, "task", id, "fields", fields)
			expect.NoError(t, x.Invalid, "task", id, "fields", fields)
		}
	}
}

// Result reads all that the Move of a result needs, in the first round and in a later one.
func TestReadResult(t *testing.T) {
	s := newStore(t)
	d := placed("q", 3)
	d.Group, d.LimitKey, d.FailOn, d.EndBefore, d.Timeout = "g", "db", task.FailOnAny, 4e9, 60
	mustOpen(t, s, d)
	for round := range 2 {
		c := claimFor(t, s, 1, offerOf("q")).Claims[0]
		whole := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Whole})).Value(t)
		read := expect.Result(s.ReadOne(t.Context(), 1, redisstate.Want{Fields: redisstate.Result})).Value(t)
		result := rules.Result{Exit: "0", Started: whole.Task.Current().Entered[task.Running].Add(1), Seconds: 2}
		want := expect.Result(rules.Execute(whole.Task, c.ID, result)).Value(t)
		got := expect.Result(rules.Execute(read.Task, c.ID, result)).Value(t)
		expect.True(t, cmp.Equal(got, want), cmp.Diff(want, got))
		expect.Compare(t, got.Opened, ">", 0)
		expect.Equal(t, read.Task.Round, round)
		mustApply(t, s, expect.Result(rules.Release(whole.Task, "again")).Value(t), nil)
	}
}
