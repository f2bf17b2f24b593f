package redisstate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// A Record is a task as Redis stores it: all properties of the task, and the updates of its program.
type Record struct {
	ID      int64
	Hash    tdf.Hash
	Updates []Update // in ascending order
}

// Validate checks whether the record can be a task: its id, its properties, and the order of its updates.
func (r *Record) Validate() error {
	if r.ID < 1 || r.ID > index.MaxID {
		return fmt.Errorf("task %d: its id is not from 1 to %d", r.ID, index.MaxID)
	}
	if len(r.Hash) == 0 {
		return fmt.Errorf("task %d: it has no properties", r.ID)
	}
	last := Update{}
	for _, u := range r.Updates {
		if u.Round < last.Round || u.Number < 0 || u.Round == last.Round && u.Number <= last.Number {
			return fmt.Errorf("task %d: update %d-%d cannot follow update %d-%d", r.ID, u.Round, u.Number, last.Round,
				last.Number)
		}
		last = u
	}
	return nil
}

// linkNames are the names of the properties of a round that count links.
var linkNames = []string{tdf.RoundLinked, tdf.RoundReleased, tdf.RoundWaits, tdf.RoundUnmet}

// withoutLinks returns the properties without those that link the task to other tasks. These links belong to keys that
// a dump does not have. Without them, the server links a waiting task again. If the task has waited in its present
// round, and waits no longer, the number of links stays: it says that the round was not put off (see
// [tdf.Task.Rescore]).
func (r *Record) withoutLinks() tdf.Hash {
	h := maps.Clone(r.Hash)
	maps.DeleteFunc(h, func(name, _ string) bool {
		_, ofRound, _ := strings.Cut(name, ":")
		return name == tdf.FieldDependents || name == tdf.FieldEndings || slices.Contains(linkNames, ofRound)
	})
	round := cmp.Or(r.Hash["round"], "0") + ":"
	linked, waited := r.Hash[round+tdf.RoundLinked]
	if waited && r.Hash["state"] == string(tdf.Open) && r.Hash[tdf.FieldPlace] != tdf.WaitingPlace {
		h[round+tdf.RoundLinked] = linked
		h[round+tdf.RoundReleased] = linked // its dependencies no longer count this task
	}
	return h
}

func (r *Record) size() int {
	bytes := hashSize(r.Hash)
	for _, u := range r.Updates {
		bytes += len(u.Line)
	}
	return bytes
}

// Records reads tasks, a few MiB at once. It calls the function each for every task that exists, in the order of the
// ids in the call. It reads all properties of a small task at one moment. It reads the updates a little later, but
// leaves out those of rounds that had not begun.
func (s *Store) Records(ctx context.Context, ids []int64, each func(Record) error) error {
	for page := range slices.Chunk(ids, hashesAtOnce) {
		reported, err := s.haveUpdates(ctx, page)
		if err != nil {
			return err
		}
		archived, err := s.archivedAt(ctx, page)
		if err != nil {
			return err
		}
		err = s.eachHash(ctx, page, math.MaxInt, anyLength, func(id int64, h tdf.Hash, _ map[string]int) (err error) {
			if len(h) == 0 {
				return nil
			}
			if at, is := archived[id]; is {
				h.Archive(at)
			}
			r := Record{ID: id, Hash: h}
			if reported[id] {
				if r.Updates, err = s.allUpdates(ctx, id); err != nil {
					return err
				}
				r.leaveOutLaterUpdates()
			}
			return each(r)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// leaveOutLaterUpdates removes the updates of rounds that had not begun when the properties were read. After a load,
// Redis would refuse the updates that these rounds then report.
func (r *Record) leaveOutLaterUpdates() {
	begun := r.Hash.Round()
	if r.Hash["state"] == string(tdf.Open) {
		begun--
	}
	r.Updates = slices.DeleteFunc(r.Updates, func(u Update) bool { return u.Round > begun })
}

// haveUpdates returns, for each task, whether it has updates.
func (s *Store) haveUpdates(ctx context.Context, ids []int64) (map[int64]bool, error) {
	replies, err := conn.AskEach(ctx, s.Conn, "read updates", ids, func(p redis.Pipeliner, id int64) *redis.IntCmd {
		return p.XLen(ctx, s.Keys.UpdatesPrefix()+strconv.FormatInt(id, 10))
	})
	reported := map[int64]bool{}
	for i, r := range replies {
		reported[ids[i]] = r.Val() > 0
	}
	return reported, err
}

func (s *Store) allUpdates(ctx context.Context, id int64) ([]Update, error) {
	const page = 1000
	var all []Update
	for after := (Update{}); ; after = all[len(all)-1] {
		updates, err := s.Updates(ctx, id, after, page)
		all = append(all, updates...)
		if err != nil || len(updates) < page {
			return all, err
		}
	}
}

// BeginRestore marks the namespace with the name of a dump, until EndRestore is called. It reserves the ids up to the
// given last id of the dump, so that new tasks get higher ids. It returns the mark that the namespace then has. If the
// restore of another dump has not ended, BeginRestore changes nothing, and returns the mark of that dump.
func (s *Store) BeginRestore(ctx context.Context, mark string, last int64) (found string, err error) {
	err = s.Pipeline(ctx, "begin the load", func(p redis.Pipeliner) { p.SetNX(ctx, s.Keys.Loading(), mark, 0) })
	if err != nil {
		return "", err
	}
	if found, err = s.RestoreUnderWay(ctx); err != nil || found != mark {
		return found, err
	}
	_, err = s.restore(ctx, last, nil)
	return found, err
}

// RestoreUnderWay returns the mark of a restore that is under way, or "".
func (s *Store) RestoreUnderWay(ctx context.Context) (mark string, err error) {
	return conn.Ask(ctx, s.Conn, "read which dump is being loaded", func(r redis.Cmdable) *redis.StringCmd {
		return r.Get(ctx, s.Keys.Loading())
	})
}

// EndRestore removes the mark of BeginRestore.
func (s *Store) EndRestore(ctx context.Context) error {
	return s.Pipeline(ctx, "end the load", func(p redis.Pipeliner) { p.Del(ctx, s.Keys.Loading()) })
}
