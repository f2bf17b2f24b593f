package redisstate_test

import (
	"fmt"
	"strconv"
	"strings"
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

func TestCountsAndListsByGroup(t *testing.T) {
	s := newStore(t)
	inGroup := func(group string) task.Properties {
		d := define("x")
		d.Group = group
		return d
	}
	mustOpen(t, s, inGroup("a"), inGroup("b"), inGroup("a"), inGroup(""), inGroup("a b:c"))
	c := mustClaim(t, s, 2)
	mustExecute(t, s, c[1], rules.Result{Exit: "0"})
	mustSettle(t, s, 2)
	for _, look := range []struct {
		groups []string
		want   string
	}{
		{nil, "open 3 running 1 succeeded 1"},
		{[]string{"a"}, "open 1 running 1"},
		{[]string{"b"}, "succeeded 1"},
		{[]string{"b", "a"}, "open 1 running 1 succeeded 1"},
		{[]string{"a b:c"}, "open 1"},
		{[]string{"nobody"}, ""},
	} {
		counts := expect.Result(s.Counts(t.Context(), look.groups...)).Value(t)
		expect.Equal(t, cmp.Diff(look.want, counts.String()), "", "groups", look.groups)
	}
	ids, err := s.List(t.Context(), task.Open, "a", 0, 10)
	expect.NoError(t, err)
	expect.Equal(t, fmt.Sprint(ids), "[3]")
	ids, err = s.List(t.Context(), task.Open, "", 1, 1)
	expect.NoError(t, err)
	expect.Equal(t, fmt.Sprint(ids), "[4]")
}

func TestLargeBatchesAreSplit(t *testing.T) {
	s := newStore(t)
	definitions := make([]task.Properties, 2500)
	for i := range definitions {
		definitions[i] = define(fmt.Sprint(i))
	}
	for i := range 60 { // 7.5 MB
		definitions[i].Input = strings.Repeat("x", task.MaxInput)
	}
	ids := mustOpen(t, s, definitions...)
	expect.MustLen(t, ids, 2500)
	expect.Equal(t, ids[2499], 2500)
	expect.Equal(t, read(t, s, 2500).Input, "2499", "the last task's input")
	mustClaim(t, s, 60) // the tasks with large inputs
	claims := mustClaim(t, s, 1000)
	moves := make([]rules.Move, len(claims))
	for i, c := range claims {
		moves[i], _ = rules.Execute(c.Task, c.ID, rules.Result{Output: strings.Repeat("o", 10_000), Exit: "0"})
	}
	outcomes := expect.Result(s.Execute(t.Context(), "w", moves...)).Value(t)
	expect.MustLen(t, outcomes, 1000)
	for i, o := range outcomes {
		must(t, o.Err, "result", i)
	}
}

func TestOpenRefusesAllOrNothing(t *testing.T) {
	s := newStore(t)
	bad := define("'x")
	before := dump(t, s)
	ids, err := s.Open(t.Context(), "manager", define("a"), bad)
	expect.MustTrue(t, err != nil, ids, err)
	expect.Equal(t, err.Error(), "task 2 of 2: input: a quote is not closed")
	expect.Len(t, ids, 0)
	expect.Equal(t, changed(t, before, dump(t, s)), "")
}

// A list without numbers is no answer to Counts. A manager that believed it would end, because no task seems to be unfinished.
func TestCountsDoNotBelieveAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.Shared(t))
	s := connect(t, proxy.Addr, redistest.Namespace(t))
	mustOpen(t, s, define("a"))
	for _, groups := range [][]string{{"g"}, nil} {
		wrong := 1
		proxy.Alter(func(reply []byte) []byte {
			if wrong == 0 || reply[0] != '*' && reply[0] != '-' {
				return reply
			}
			wrong--
			return []byte("*0\r\n")
		})
		expect.Equal(t, expect.Result(s.Counts(t.Context(), groups...)).Value(t)[task.Open], int64(1-len(groups)))
		expect.Equal(t, wrong, 0)
	}
}

func TestMemoryOf(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		ids := mustOpen(t, s, define("x"))
		isRedis := infoOf(t, s)["redis_version"] != ""
		sizes := expect.Result(s.MemoryOf(t.Context(), append(ids, 99))).Value(t)
		expect.MustLen(t, sizes, 2)
		expect.MustEqual(t, sizes[0] > 100, isRedis)
		expect.Equal(t, sizes[1], 0)
	})
}

func infoOf(t *testing.T, s *redisstate.Store) conn.Info {
	t.Helper()
	return expect.Result(s.Conn.Info(t.Context())).Value(t)
}

func TestBetween(t *testing.T) {
	s := newStore(t)
	for list, scores := range map[task.State][]float64{
		task.Open: {1000, 900.5, 100000000000}, task.Failed: {1000}, task.Succeeded: {2000, 2001},
	} {
		for i, score := range scores {
			must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.List(list), redis.Z{Score: score, Member: string(list) + strconv.Itoa(i)}).Err())
		}
	}
	expect.Result(s.Between(t.Context(), 1000, 2000, task.Failed, task.Succeeded)).Is(t, 2, "Between counts … failed and succeeded tasks")
	expect.Result(s.Between(t.Context(), 950, task.Never, task.Open)).Is(t, 2, "Between counts … open tasks")
}
