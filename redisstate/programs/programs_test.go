package programs

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// putProgram stores an archive, and returns its SHA-256.
func putProgram(t *testing.T, s *Archives, archive string) string {
	t.Helper()
	source := expect.Result(s.PutProgram(t.Context(), []byte(archive))).Value(t)
	return strings.TrimPrefix(source, "redis:")
}

// lastUse returns the score of a program in programs_used, or -1.
func lastUse(t *testing.T, s *Archives, sum string) float64 {
	t.Helper()
	score, err := s.Conn.Redis.ZScore(t.Context(), s.Conn.Keys.ProgramsUsed(), sum).Result()
	if err == redis.Nil {
		return -1
	}
	expect.NoError(t, err)
	return score
}

// age sets the last use of programs to the given time.
func age(t *testing.T, s *Archives, at float64, sums ...string) {
	t.Helper()
	for _, sum := range sums {
		expect.NoError(t, s.Conn.Redis.ZAdd(t.Context(), s.Conn.Keys.ProgramsUsed(), redis.Z{Score: at, Member: sum}).Err())
	}
}

func TestPrograms(t *testing.T) {
	s := New(conntest.New(t))
	source := expect.Result(s.PutProgram(t.Context(), []byte("an archive\x00\xff"))).Value(t)
	sum := strings.TrimPrefix(source, "redis:")
	expect.Equal(t, string(expect.Result(s.Program(t.Context(), sum)).Value(t)), "an archive\x00\xff")
	expect.Result(s.HasProgram(t.Context(), sum)).Is(t, true)
	expect.Result(s.HasProgram(t.Context(), strings.Repeat("0", 64))).Is(t, false)
	got, err := s.Program(t.Context(), strings.Repeat("0", 64))
	expect.Equal(t, got, nil)
	expect.NoError(t, err)
	expect.Result(s.PutProgram(t.Context(), make([]byte, MaxBytes+1))).Fails(t, "", "a program over the limit was stored")
}

// RemoveUnused removes programs whose last use was before the given time, all traces of them, and no others.
func TestRemoveUnused(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := New(c)
		old, edge, fresh, kept := putProgram(t, s, "old"), putProgram(t, s, "edge"), putProgram(t, s, "fresh"), putProgram(t, s, "pinned")
		expect.NoError(t, s.PinPrograms(t.Context(), kept))
		age(t, s, 99, old)
		age(t, s, 100, edge)
		expect.Result(s.RemoveUnused(t.Context(), 100, 10)).Is(t, []string{old}, "removed")
		expect.Len(t, expect.Result(s.RemoveUnused(t.Context(), 0, 10)).Value(t), 0, "removed")
		programs := expect.Result(s.Programs(t.Context())).Value(t)
		for _, p := range programs {
			expect.NotEqual(t, p.SHA256, old)
			expect.Equal(t, p.Pinned, p.SHA256 == kept)
			if !p.Pinned {
				expect.NotEqual(t, p.LastUse, 0)
			}
		}
		stored, err := s.HasProgram(t.Context(), old)
		expect.True(t, !stored, len(programs), "programs", err)
		expect.NoError(t, err)
		expect.Len(t, programs, 3)
		expect.Equal(t, lastUse(t, s, old), -1)
		expect.NoError(t, s.UnpinPrograms(t.Context(), kept))
		use := lastUse(t, s, kept)
		expect.Compare(t, use, ">=", lastUse(t, s, fresh))
		expect.True(t, !math.IsInf(use, 1), "after unpin", use)
		removed, err := s.RemoveProgram(t.Context(), edge, 9e9, 0)
		expect.True(t, removed, edge, "is still there", err)
		expect.NoError(t, err, edge)
		expect.Equal(t, lastUse(t, s, edge), -1, "a removed program has a last use")
		expect.Fails(t, s.PinPrograms(t.Context(), strings.Repeat("0", 64)), "", "a program that is not stored was pinned")
	})
}

// One call removes a bounded number of programs, and the next calls remove the others.
func TestRemoveUnusedIsBounded(t *testing.T) {
	s := New(conntest.New(t))
	for i := range 25 {
		age(t, s, 1, putProgram(t, s, fmt.Sprint(i)))
	}
	for _, want := range []int{10, 10, 5, 0} {
		expect.Len(t, expect.Result(s.RemoveUnused(t.Context(), 100, 10)).Value(t), want, "removed … programs")
	}
}

// A server that has chosen a program before its last use was renewed can no longer remove it.
func TestUseAfterAServerHasChosen(t *testing.T) {
	conntest.OnEach(t, func(t *testing.T, c *conn.Conn) {
		s := New(c)
		sum := putProgram(t, s, "archive")
		age(t, s, 50, sum)
		expect.NoError(t, s.UsePrograms(t.Context(), 150, sum)) // after the server has chosen it
		expect.Result(s.removeUnused(t.Context(), 100, []string{sum})).Is(t, nil)
		age(t, s, 50, sum)
		expect.Result(s.removeUnused(t.Context(), 100, []string{sum})).Is(t, []string{sum})
	})
}

// A use does not unpin a program, does not make a last use older, and adds no program that is not stored.
func TestUseKeepsThePin(t *testing.T) {
	s := New(conntest.New(t))
	sum, missing := putProgram(t, s, "archive"), strings.Repeat("1", 64)
	before := lastUse(t, s, sum)
	expect.NoError(t, s.UsePrograms(t.Context(), 5, sum, missing))
	expect.Equal(t, lastUse(t, s, sum), before)
	expect.Equal(t, lastUse(t, s, missing), -1)
	expect.NoError(t, s.PinPrograms(t.Context(), sum))
	putProgram(t, s, "archive")
	expect.NoError(t, s.UsePrograms(t.Context(), 9e9, sum))
	expect.True(t, math.IsInf(lastUse(t, s, sum), 1), "the pin is gone")
}

// Entries without a program do no harm.
func TestUseWithoutAProgram(t *testing.T) {
	s := New(conntest.New(t))
	expect.Result(s.HasPrograms(t.Context())).Is(t, false)
	age(t, s, 1, "ghost", "a\x00b:*")
	expect.Result(s.HasPrograms(t.Context())).Is(t, true)
	expect.Len(t, expect.Result(s.RemoveUnused(t.Context(), 100, 10)).Value(t), 0, "removed")
	expect.Equal(t, lastUse(t, s, "ghost"), -1, "an entry without a program stays")
}
