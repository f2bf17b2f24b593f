package redisstate

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// Most properties of a task do not exist, and to look each of them up takes Redis more time than all that exist. So
// Read reads all of a small task. Of a larger one, it first reads the names of the properties, because a list of tasks
// must not read 64 MiB of output to show a state. A command delays other clients if it reads all names of a huge task.
const (
	smallTask  = 8 << 10   // how much memory a small task takes in Redis at most, in bytes
	mediumTask = 256 << 10 // and how much a task whose names are read
)

// readSized reads tasks of which Redis reports that they are not huge. It puts the facts that are wanted into the
// hashes, and all properties of small tasks into want.small. For the tasks that it has read, want.sized is true.
func (s *Store) readSized(ctx context.Context, ids []int64, hashes []task.Hash, want *Want) error {
	sizes, known, err := s.memory(ctx, ids)
	if err != nil || !known {
		return err
	}
	want.sized, want.small = make([]bool, len(ids)), make([]task.Hash, len(ids))
	var small, medium []int
	var bytes int64
	for i, size := range sizes {
		switch {
		case size == 0: // the task does not exist
			want.sized[i] = true
		case size <= smallTask:
			small, bytes = append(small, i), bytes+size
		case size <= mediumTask:
			medium = append(medium, i)
		}
	}
	if err := pool.Take(ctx, bytes); err != nil {
		return err
	}
	for some := range slices.Chunk(small, readAtOnce/smallTask) {
		if err := s.readSmall(ctx, ids, some, hashes, want); err != nil {
			return err
		}
	}
	for len(medium) > 0 {
		n := conn.Batch(len(medium), conn.Bound{Limit: readAtOnce, Amount: func(i int) int { return int(sizes[medium[i]]) }})
		if err := s.readNamed(ctx, ids, medium[:n], hashes, want); err != nil {
			return err
		}
		medium = medium[n:]
	}
	return nil
}

// readSmall reads some of the tasks, each with one command.
func (s *Store) readSmall(ctx context.Context, ids []int64, some []int, hashes []task.Hash, want *Want) error {
	replies, err := conn.AskEach(ctx, s.Conn, readTasks, some,
		func(p redis.Pipeliner, i int) *redis.MapStringStringCmd { return p.HGetAll(ctx, s.Keys.Task(ids[i])) })
	for k, r := range replies {
		i, all := some[k], task.Hash(r.Val())
		isFact, facts := want.isFact(all.Round()), make(task.Hash, len(all))
		want.sized[i] = true
		for name, value := range all {
			want.sized[i] = want.sized[i] && isValidLength(name, value)
			if isFact(name) {
				facts[name] = value
			}
		}
		if want.sized[i] {
			want.small[i], hashes[i] = all, facts
		}
	}
	return err
}

// readNamed reads the facts of some of the tasks, each with one command, after the names of their properties.
func (s *Store) readNamed(ctx context.Context, ids []int64, some []int, hashes []task.Hash, want *Want) error {
	keys, rounds := make([]*redis.StringSliceCmd, len(some)), make([]*redis.StringCmd, len(some))
	err := s.Conn.Pipeline(ctx, readTasks, func(p redis.Pipeliner) {
		for k, i := range some {
			keys[k], rounds[k] = p.HKeys(ctx, s.Keys.Task(ids[i])), p.HGet(ctx, s.Keys.Task(ids[i]), "round")
		}
	})
	if err != nil {
		return err
	}
	names := make([][]string, len(some))
	var asked []int // indexes of names
	for k := range some {
		isFact := want.isFact(task.Hash{"round": rounds[k].Val()}.Round())
		names[k] = slices.DeleteFunc(keys[k].Val(), func(name string) bool { return !isFact(name) })
		if len(names[k]) > 0 {
			asked = append(asked, k)
		}
	}
	replies, err := conn.AskEach(ctx, s.Conn, readTasks, asked, func(p redis.Pipeliner, k int) *redis.SliceCmd {
		return p.HMGet(ctx, s.Keys.Task(ids[some[k]]), names[k]...)
	})
	for at, r := range replies {
		k := asked[at]
		i, facts := some[k], task.Hash{}
		want.sized[i] = true
		for j, v := range r.Val() {
			if value, exists := v.(string); exists {
				facts[names[k][j]] = value
				want.sized[i] = want.sized[i] && isValidLength(names[k][j], value)
			}
		}
		if want.sized[i] {
			hashes[i] = facts
		}
	}
	return err
}

// isSized reports whether readSized has read a task.
func (w *Want) isSized(i int) bool { return w.sized != nil && w.sized[i] }

// isFact returns a function that reports whether the property with a name is a fact that is wanted of a task in the
// given round.
func (w *Want) isFact(round int) func(name string) bool {
	from, to := w.Rounds.numbers(round)
	return func(name string) bool {
		in, of, known := groupsOf(name)
		return known && in&(Head|Source|Facts) != 0 && (of == OfTask || of >= from && of < to)
	}
}

func isValidLength(name, value string) bool {
	if len(value) <= longestFact {
		return true
	}
	most := validLength(name)
	return most == unknownProperty || len(value) <= most
}
