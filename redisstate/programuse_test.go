package redisstate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/programs"
	"github.com/tdf-framework/tdf/redisstate/stages"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

// putProgram stores an archive, and returns its SHA-256.
func putProgram(t *testing.T, s *redisstate.Store, archive string) string {
	t.Helper()
	source := expect.Result(s.Programs.PutProgram(t.Context(), []byte(archive))).Value(t)
	return strings.TrimPrefix(source, "redis:")
}

// lastUse returns the score of a program in programs_used, or -1.
func lastUse(t *testing.T, s *redisstate.Store, sum string) float64 {
	t.Helper()
	score, err := s.Conn.Redis.ZScore(t.Context(), s.Keys.ProgramsUsed(), sum).Result()
	if err == redis.Nil {
		return -1
	}
	must(t, err)
	return score
}

// age sets the last use of programs to the given time.
func age(t *testing.T, s *redisstate.Store, at float64, sums ...string) {
	t.Helper()
	for _, sum := range sums {
		must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.ProgramsUsed(), redis.Z{Score: at, Member: sum}).Err())
	}
	s.Programs = programs.New(s.Conn) // it has not renewed the last use yet
}

// Each of these calls renews the last use of a program.
func TestUsesOfPrograms(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		sum := putProgram(t, s, "archive")
		source := "redis:" + sum
		named := define("x")
		named.Source = source
		finished := put(t, s, task.Failed)
		ids := mustOpen(t, s, define("a"), define("b"))
		for name, use := range map[string]func() error{
			"push":        func() error { _, err := s.Programs.PutProgram(t.Context(), []byte("archive")); return err },
			"open":        func() error { _, err := s.Open(t.Context(), "m", named); return err },
			"open unique": func() error { _, err := s.OpenAll(t.Context(), "m", "", named); return err },
			"change": func() error {
				mustChange(t, s, ids[1], task.Changes{Source: &source, Input: new(fmt.Sprint(lastUse(t, s, sum)))})
				return nil
			},
			"retry": func() error {
				m, err := rules.ReopenWith(read(t, s, finished), task.Changes{Source: &source})
				mustApply(t, s, m, err)
				return nil
			},
			"definitions": func() error { return stages.Of(s).StoreDefinitions(t.Context(), "d", 0, []task.Properties{named}) },
			"unpin":       func() error { return s.Programs.UnpinPrograms(t.Context(), sum) },
		} {
			age(t, s, 50, sum)
			must(t, use())
			expect.True(t, lastUse(t, s, sum) >= 1e9, name, "the last use is", lastUse(t, s, sum))
		}
	})
}

// A client renews a program's last use once, and not for each call.
func TestUsesAreRenewedOnce(t *testing.T) {
	s := newStore(t)
	sum := putProgram(t, s, "archive")
	named := define("x")
	named.Source = "redis:" + sum
	mustOpen(t, s, named)
	must(t, s.Conn.Redis.ZAdd(t.Context(), s.Keys.ProgramsUsed(), redis.Z{Score: 7, Member: sum}).Err())
	mustOpen(t, s, named)
	mustOpen(t, s, define("y"))
	expect.Equal(t, lastUse(t, s, sum), 7, "the last use was renewed twice")
	expect.Equal(t, s.Conn.Redis.ZCard(t.Context(), s.Keys.ProgramsUsed()).Val(), 1, "programs have a last use")
}

// Clients push and open tasks while servers remove all that they may. No task loses its program.
func TestRemoveUnusedRacesWithOpens(t *testing.T) {
	s := newStore(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	remover := connect(t, s.Conn.Addr, s.Keys.Namespace())
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := remover.Programs.RemoveUnused(t.Context(), 100, 10); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 50 {
		archive := fmt.Sprint("archive ", i%5)
		sum := putProgram(t, s, archive)
		age(t, s, 1, sum)
		if i%2 == 0 {
			sum = putProgram(t, s, archive) // the archive is stored again, or still there
		}
		named := define("x")
		named.Source = "redis:" + sum
		_, err := s.Open(t.Context(), "m", named)
		if i%2 > 0 && errors.Is(err, programs.ErrNoProgram) {
			continue // it was removed before
		}
		must(t, err)
		stored := expect.Result(s.Programs.HasProgram(t.Context(), sum)).Value(t)
		expect.True(t, stored, "step", i, "stored", stored, "last use", lastUse(t, s, sum))
		expect.NotEqual(t, lastUse(t, s, sum), 0, "step", i)
	}
	close(stop)
	all.Wait()
}

// If a program is removed before a task that needs it is opened, no task is opened, although this client has just used the program.
func TestOpenAfterAProgramWasRemoved(t *testing.T) {
	s := newStore(t)
	sum := putProgram(t, s, "archive")
	d := define("x")
	d.Source = "redis:" + sum
	mustOpen(t, s, d)
	must(t, s.Conn.Redis.Del(t.Context(), s.Keys.Program(sum)).Err())
	opened, err := s.OpenAll(t.Context(), "m", "", define("y"), d)
	expect.FailsWith(t, err, programs.ErrNoProgram)
	expect.Equal(t, task.CodeOf(err), task.CodeNotFound)
	expect.Len(t, opened, 0)
	expect.Equal(t, s.Conn.Redis.ZCard(t.Context(), s.Keys.List(task.Open)).Val(), 1, "tasks are open")
	putProgram(t, s, "archive")
	mustOpen(t, s, d)
}

// RemoveProgram keeps a program that a client has used, or that a new task names, since the caller looked for tasks that need
// it.
func TestRemoveProgramBesideOpen(t *testing.T) {
	s := newStore(t)
	finished, open := put(t, s, task.Failed), mustOpen(t, s, define("x"))[0]
	for name, c := range map[string]struct {
		change  func(sum string)
		removed bool
	}{
		"nothing happened":       {func(string) {}, true},
		"pinned before":          {func(sum string) { must(t, s.Programs.PinPrograms(t.Context(), sum)) }, true},
		"tasks of others opened": {func(string) { mustOpen(t, s, slices.Repeat([]task.Properties{define("x")}, 2100)...) }, true},
		"a task of it opened": {func(sum string) {
			mustOpen(t, s, slices.Repeat([]task.Properties{define("x")}, 1500)...)
			d := define("x")
			d.Source = "redis:" + sum
			mustOpen(t, s, d)
		}, false},
		"a task of it retried": {func(sum string) {
			must(t, s.Conn.Redis.HSet(t.Context(), s.Keys.Task(finished), "source", "redis:"+sum).Err())
			m, err := rules.Reopen(read(t, s, finished))
			mustApply(t, s, m, err)
		}, false},
		"a task that got it": {func(sum string) {
			mustChange(t, s, open, task.Changes{Source: new("redis:" + sum)})
		}, false},
		"a stage that opens tasks of it": {func(sum string) {
			to := task.StageRecord{Phase: task.StageStored, Chunks: 2, Stored: "X", Programs: strings.Repeat("1", 64) + "," + sum}
			outcomes := expect.Result(s.Apply(t.Context(), "m", redisstate.Unit{Stage: stageChange(task.StageRecord{}, to)})).Value(t)
			expect.NoError(t, outcomes[0].Err)
		}, false},
		"used": {func(sum string) {
			now := expect.Result(s.Now(t.Context())).Value(t)
			must(t, s.Programs.UsePrograms(t.Context(), now.Add(1), sum))
		}, false},
	} {
		sum := putProgram(t, s, name)
		must(t, s.Programs.NamePrograms(t.Context(), map[string]bool{sum: true})) // this client does not renew the last use again
		since := expect.Result(s.Now(t.Context())).Value(t)
		last := expect.Result(walk.LastID(t.Context(), s.Conn)).Value(t)
		c.change(sum)
		removed, err := s.Programs.RemoveProgram(t.Context(), sum, since, last)
		stored, err2 := s.Programs.HasProgram(t.Context(), sum)
		expect.Equal(t, removed, c.removed, name)
		expect.NoError(t, err, name)
		expect.NotEqual(t, stored, removed, name)
		expect.NoError(t, err2, name)
	}
}

func TestStoredPrograms(t *testing.T) {
	s := newStore(t)
	other := connect(t, s.Conn.Addr, s.Keys.Namespace()+"*") // as a pattern, this name would match the first namespace
	mustOpen(t, s, define("x"))
	for _, archive := range []string{"one", "three"} {
		expect.Result(s.Programs.PutProgram(t.Context(), []byte(archive))).OK(t)
	}
	stored := expect.Result(s.Programs.Programs(t.Context())).Value(t)
	expect.MustLen(t, stored, 2)
	expect.MustEqual(t, stored[0].Bytes+stored[1].Bytes, 8)
	expect.Len(t, stored[0].SHA256, 64)
	expect.Len(t, expect.Result(other.Programs.Programs(t.Context())).Value(t), 0, "another namespace")
}
