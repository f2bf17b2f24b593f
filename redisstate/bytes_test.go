package redisstate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf"
)

// A property that is short in every valid task is not read where it is long, whatever its name is.
func TestOnlyTextsAreReadAtAnyLength(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		long := strings.Repeat("x", longestField+1)
		short := []string{"input", "meta", "source", "program", "group", "0:worker", "0:progress", "output", "logs"}
		texts := []string{"log", tdf.FieldCheckpoint, "0:output", "17:error", "0:tail", "0:result"}
		for _, name := range slices.Concat(short, texts) {
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), name, long).Err())
		}
		read, err := s.Texts(t.Context(), []TextsOf{{1, slices.Concat(short, texts)}}, 1<<30)
		must(t, err)
		for i, name := range slices.Concat(short, texts) {
			want := long
			if i < len(short) {
				want = fmt.Sprintf("(%d bytes, too long to be valid)", len(long))
			}
			if read[0][i] != want {
				t.Errorf("%s: %d bytes, %.40q", name, len(read[0][i]), read[0][i])
			}
		}
	})
}

// However long all properties of many rounds are, one answer of Redis is short.
func TestLongFactsOfManyRounds(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		h := rounds(plain, roundsAtOnce)
		for _, name := range slices.Concat(headFields[2:], bodyFields) {
			h[name] = strings.Repeat("x", longestField)
		}
		for i := range roundsAtOnce {
			for _, name := range roundFacts {
				h[tdf.RoundField(i, name)] = strings.Repeat("x", longestField)
			}
		}
		for name, value := range h {
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), name, value).Err())
		}
		l := &load{}
		s.rdb.AddHook(l)
		if task, err := s.Task(t.Context(), 1); task == nil || err == nil {
			t.Errorf("read %v, %v", task, err)
		}
		if _, err := s.Glance(t.Context(), []int64{1}, roundsAtOnce, func(*tdf.Task) bool { return true }); err != nil {
			t.Error(err)
		}
		if l.bytes > 2*readAtOnce {
			t.Errorf("one answer had %d bytes", l.bytes)
		}
		for _, name := range roundFacts { // as long as they may be
			h[tdf.RoundField(3, name)] = strings.Repeat("1", longestFact)
			must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), tdf.RoundField(3, name), h[tdf.RoundField(3, name)]).Err())
		}
		if round, err := s.Round(t.Context(), 1, 3); err != nil || round.Worker != h["3:worker"] {
			t.Errorf("read %v, %v", round, err)
		}
	})
}

// A task with very many properties is read in answers of few MiB, however long they are.
func TestManyLongPropertiesAreReadInPieces(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		h := rounds(plain, 2)
		for i := range fewNames {
			h[fmt.Sprint("unknown ", i)] = "x"
		}
		for i := range 20 {
			h[fmt.Sprint("long ", i)] = strings.Repeat("x", 3<<20)
		}
		must(t, s.rdb.HSet(t.Context(), s.keys.Task(1), map[string]string(h)).Err())
		l := &load{}
		s.rdb.AddHook(l)
		must(t, s.Records(t.Context(), []int64{1}, func(r Record) error {
			if diff := cmp.Diff(len(h), len(r.Hash)); diff != "" || r.Hash["long 19"] != h["long 19"] {
				t.Errorf("not all were read (-want +got):\n%s", diff)
			}
			return nil
		}))
		if l.bytes > readAtOnce {
			t.Errorf("one answer had %d bytes", l.bytes)
		}
	})
}
