package redisstate

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Limits for reading whole tasks. The limit readAtOnce applies as well.
const (
	hashesAtOnce = 500
	hashesUnseen = 16   // number of tasks read at once if Redis does not report their sizes
	smallHash    = 1000 // number of properties that one command can return without delaying other clients
	// a smaller task needs no count of its properties: each takes more than 50 bytes in a hash table
	smallBytes = 50 * smallHash
	// number of properties whose names one command can return without delaying other clients
	fewNames = 5000
)

// wholeHashes reads all properties of tasks: of the first tasks, as many as the maximum number of bytes allows, but of
// at least one. It leaves out properties that are too long. If a task is large, wholeHashes also leaves out properties
// with unknown names. It always leaves out the texts of the rounds before the round from, and the files of all rounds.
func (s *Store) wholeHashes(ctx context.Context, ids []int64, most, from int) (hashes []task.Hash, tooLong []error,
	err error,
) {
	tooLong = make([]error, len(ids))
	limit := func(name string) int {
		if isTextBefore(from, name) || isFiles(name) {
			return unknownProperty
		}
		return validLength(name)
	}
	left := most
	for page := range slices.Chunk(ids, hashesAtOnce) {
		sizes, err := s.hashSizes(ctx, page)
		if err != nil {
			return nil, nil, err
		}
		for len(page) > 0 {
			if left < most && sizes[0] > left {
				return hashes, tooLong, nil
			}
			n := conn.Fitting(sizes, min(readAtOnce, left))
			if err := pool.Take(ctx, bytesOfSmall(sizes[:n])); err != nil {
				return nil, nil, err
			}
			read, lengths, err := s.hashes(ctx, page[:n], sizes[:n], limit)
			if err != nil {
				return nil, nil, err
			}
			for i, h := range read {
				left -= hashSize(h)
				tooLong[len(hashes)] = firstTooLong(lengths[i], limit)
				hashes = append(hashes, h)
			}
			page, sizes = page[n:], sizes[n:]
		}
	}
	return hashes, tooLong, nil
}

// firstTooLong returns an error for the first property, by name, that is longer than its limit.
func firstTooLong(lengths map[string]int, limit func(string) int) error {
	for _, name := range slices.Sorted(maps.Keys(lengths)) {
		if limit(name) != unknownProperty {
			return tooLongError(name, int64(lengths[name]))
		}
	}
	return nil
}

// bytesOfSmall returns the bytes that hashes reads at one moment. A large task is charged in pieces, by readLong.
func bytesOfSmall(sizes []int) (n int64) {
	for _, size := range sizes {
		if size <= readAtOnce {
			n += int64(size)
		}
	}
	return n
}

// hashSizes returns, for each task, how many of the readAtOnce bytes it uses.
func (s *Store) hashSizes(ctx context.Context, ids []int64) ([]int, error) {
	bytes, known, err := s.memory(ctx, ids)
	if err != nil {
		return nil, err
	}
	var counted []int64
	sizes := make([]int, len(ids))
	for i, id := range ids {
		sizes[i] = int(bytes[i])
		if !known {
			sizes[i] = readAtOnce / hashesUnseen
		}
		if sizes[i] > smallBytes {
			counted = append(counted, id)
		}
	}
	counts, fetching, err := s.fieldCounts(ctx, counted)
	if err != nil {
		return nil, err
	}
	for i := range sizes {
		if sizes[i] <= smallBytes {
			continue
		}
		if counts[0] > smallHash || counts[0] > 0 && !known && len(ids) == 1 || fetching[0] {
			sizes[i] = readAtOnce + 1
		}
		counts, fetching = counts[1:], fetching[1:]
	}
	return sizes, nil
}

// hashSize returns the bytes of all properties of a task.
func hashSize(h task.Hash) int {
	bytes := 0
	for name, value := range h {
		bytes += len(name) + len(value)
	}
	return bytes
}

// fieldCounts returns how many properties each task has, and whether it may have brought back files. Such a task is
// read in pieces, without the files.
func (s *Store) fieldCounts(ctx context.Context, ids []int64) (counts []int64, fetching []bool, err error) {
	replies, err := conn.AskEach(ctx, s.Conn, readTasks, ids, func(p redis.Pipeliner, id int64) *redis.IntCmd {
		return p.HLen(ctx, s.Keys.Task(id))
	})
	if err != nil {
		return nil, nil, err
	}
	with, err := conn.AskEach(ctx, s.Conn, readTasks, ids, func(p redis.Pipeliner, id int64) *redis.BoolCmd {
		return p.HExists(ctx, s.Keys.Task(id), "fetch")
	})
	counts, fetching = make([]int64, len(ids)), make([]bool, len(ids))
	for i := range with {
		counts[i], fetching[i] = replies[i].Val(), with[i].Val()
	}
	return counts, fetching, err
}

// hashes reads several small tasks, or one large task. It gets the size of each task from hashSizes.
func (s *Store) hashes(ctx context.Context, ids []int64, sizes []int, limit func(string) int) ([]task.Hash,
	[]map[string]int, error,
) {
	if sizes[0] > readAtOnce {
		h, tooLong, err := s.largeHash(ctx, ids[0], limit)
		return []task.Hash{h}, []map[string]int{tooLong}, err
	}
	replies, err := conn.AskEach(ctx, s.Conn, readTasks, ids,
		func(p redis.Pipeliner, id int64) *redis.MapStringStringCmd {
			return p.HGetAll(ctx, s.Keys.Task(id))
		})
	hashes, tooLong := make([]task.Hash, len(ids)), make([]map[string]int, len(ids))
	for i, r := range replies {
		hashes[i], tooLong[i] = r.Val(), map[string]int{}
		for name, value := range hashes[i] {
			if len(value) > limit(name) {
				tooLong[i][name] = len(value)
				delete(hashes[i], name)
			}
		}
	}
	return hashes, tooLong, err
}

// readTries is the maximum number of times that a large task is read. The task is read again if it moved during the
// read.
const readTries = 3

// largeHash reads a task in pieces. If the task moved meanwhile, largeHash reads it again, up to readTries times in
// all. If the task moved each time, the hash has newer properties with the state, the round and the revision from
// before these moves. So Redis refuses a Move that is based on this hash.
func (s *Store) largeHash(ctx context.Context, id int64, limit func(string) int) (
	h task.Hash, tooLong map[string]int, err error,
) {
	before, err := s.head(ctx, id)
	for try := 1; err == nil; try++ {
		if h, tooLong, err = s.readInPieces(ctx, id, limit); err != nil {
			break
		}
		var after task.Hash
		if after, err = s.head(ctx, id); err != nil {
			break
		}
		if len(after) == 0 && len(before) > 0 { // the task was removed meanwhile
			return task.Hash{}, nil, nil
		}
		if maps.Equal(before, after) {
			return h, tooLong, nil
		}
		if try == readTries {
			return withFence(h, before), tooLong, nil
		}
		before = after
	}
	return nil, nil, err
}

// head reads the state and the other Head properties of a task, and its revision. At least one of these properties
// changes whenever the task moves.
func (s *Store) head(ctx context.Context, id int64) (task.Hash, error) {
	h := task.Hash{}
	err := s.readFields(ctx, []int64{id}, []task.Hash{h}, make([]error, 1), func(int) []string {
		return slices.Concat(headFields, []string{"revision"})
	})
	return h, err
}

// withFence returns h with the state, the round and the revision of head. A Move that is based on h names them.
func withFence(h, head task.Hash) task.Hash {
	if len(head) == 0 { // the task did not exist yet
		return task.Hash{}
	}
	for _, name := range []string{"state", "round", "revision"} {
		delete(h, name)
		if value, ok := head[name]; ok {
			h[name] = value
		}
	}
	return h
}

// namesPerScan is the approximate number of names that one call reads if a task has very many properties.
const namesPerScan = 100

func (s *Store) readInPieces(ctx context.Context, id int64, limit func(string) int) (
	h task.Hash, tooLong map[string]int, err error,
) {
	h, tooLong = task.Hash{}, map[string]int{}
	for cursor := "0"; ; {
		args := []any{cursor, namesPerScan, readAtOnce, fewNames}
		reply, err := s.Conn.Run(ctx, readTasks, lua.Names, []string{s.Keys.Task(id)}, args,
			conn.Tuple(conn.IsText, conn.ManyTexts))
		if err != nil {
			return nil, nil, err
		}
		var names []string
		for _, name := range conn.List(conn.List(reply)[1]) {
			if name := conn.Text(name); limit(name) != unknownProperty {
				names = append(names, name)
			}
		}
		var asked []question
		for some := range slices.Chunk(names, readAtOnce/longestField) {
			asked = append(asked, question{id, some})
		}
		_, err = s.readLong(ctx, asked, math.MaxInt, limit, func(_ int, name, value string, length int) {
			if len(value) < length {
				tooLong[name] = length
			} else {
				h[name] = value
			}
		})
		if cursor = conn.Text(conn.List(reply)[0]); err != nil || cursor == "0" {
			return h, tooLong, err
		}
	}
}

// MemoryOf returns how many bytes of memory each task takes, without its entries in lists. It returns 0 for a task that
// does not exist. It also returns 0 if Redis refuses the command MEMORY USAGE or does not support it. The embedded
// Redis does not support it.
func (s *Store) MemoryOf(ctx context.Context, ids []int64) ([]int64, error) {
	bytes, _, err := s.memory(ctx, ids)
	return bytes, err
}

// memory is like MemoryOf. If Redis does not report the sizes, known is false. For a task with very many properties,
// the size is an estimate, because an exact measurement would delay other clients of Redis.
func (s *Store) memory(ctx context.Context, ids []int64) (bytes []int64, known bool, err error) {
	bytes = make([]int64, len(ids))
	if s.sizeless.Load() {
		return bytes, false, nil
	}
	replies, err := conn.AskEach(ctx, s.Conn, "measure the memory of tasks", ids,
		func(p redis.Pipeliner, id int64) *redis.IntCmd {
			return p.MemoryUsage(ctx, s.Keys.Task(id), smallHash) // measures this number of properties, or all
		})
	known = err == nil
	if err != nil && !conn.LacksRights(err) && !strings.Contains(err.Error(), "unknown command") &&
		!strings.Contains(err.Error(), "syntax error") {
		return nil, false, err
	}
	s.sizeless.Store(!known)
	for i, r := range replies {
		bytes[i] = r.Val()
	}
	return bytes, known, nil
}
