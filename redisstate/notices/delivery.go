package notices

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Max is the number of notices that Redis keeps. A new one replaces the oldest.
const Max = 1000

// A Sighting is something that a server has seen, and perhaps tells people about. Its mark remembers it, so that
// several servers tell it once.
type Sighting struct {
	Mark          string // not "last", which counts the notices
	Before, After string // the value that the mark must have, and its new value; "" for none
	Notice        string // the notice to add; "" for none
}

// A Stored is a notice with its id. Later notices have higher ids.
type Stored struct {
	ID   int64
	Text string
}

// See stores sightings and adds their notices, and returns how many it has added. It ignores a sighting whose mark has
// another value than Before.
func (s *Outbox) See(ctx context.Context, all ...Sighting) (added int, err error) {
	for some := range slices.Chunk(all, 100) {
		e := &conn.Args{}
		e.Add(strconv.Itoa(Max))
		e.Count(len(some))
		for _, x := range some {
			e.Add(x.Mark, x.Before, x.After, x.Notice)
		}
		keys := []string{s.Conn.Keys.Noticed(), s.Conn.Keys.Notices(), s.Conn.Keys.NoticesDue()}
		reply, err := s.Conn.Run(ctx, "add notices", lua.Notice, keys, e.All, conn.IsNumber)
		if err != nil {
			return added, err
		}
		added += conn.Number(reply)
	}
	return added, nil
}

// Marks returns the values of marks, and "" for a mark that has none.
func (s *Outbox) Marks(ctx context.Context, names ...string) ([]string, error) {
	values := make([]string, len(names))
	if len(names) == 0 {
		return values, nil
	}
	found, err := conn.Ask(ctx, s.Conn, "read which notices were written", func(r redis.Cmdable) *redis.SliceCmd {
		return r.HMGet(ctx, s.Conn.Keys.Noticed(), names...)
	})
	for i, v := range found {
		values[i] = conn.Text(v)
	}
	return values, err
}

// MarksPage returns some marks with their values, and the cursor of the next page, which is 0 after the last page.
func (s *Outbox) MarksPage(ctx context.Context, cursor uint64) (marks map[string]string, next uint64, err error) {
	var page *redis.ScanCmd
	err = s.Conn.Pipeline(ctx, "read which notices were written", func(p redis.Pipeliner) {
		page = p.HScan(ctx, s.Conn.Keys.Noticed(),
			cursor, "", 200)
	})
	if err != nil {
		return nil, 0, err
	}
	pairs, next := page.Val()
	marks = map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		if len(pair) == 2 {
			marks[pair[0]] = pair[1]
		}
	}
	return marks, next, nil
}

// NextNotice stores how an attempt to deliver a notice has ended, if tried is not nil, and returns the next notice that
// is due, or nil. The tried notice is due again after a time; with [task.Never], it is not. The next notice is due
// again after the lease, unless a later call says how its attempt has ended. Without a lease, there is no next notice.
func (s *Outbox) NextNotice(ctx context.Context, tried *Stored, again, lease task.Seconds) (*Stored, error) {
	id, text, after := "", "", ""
	if tried != nil {
		id, text = strconv.FormatInt(tried.ID, 10), tried.Text
		if again < task.Seconds(task.Never) {
			after = again.String()
		}
	}
	keys := []string{s.Conn.Keys.Notices(), s.Conn.Keys.NoticesDue()}
	reply, err := s.Conn.Run(ctx, "deliver notices", lua.NoticeTurn, keys, []any{id, text, after, lease.String()},
		conn.ManyTexts)
	next := conn.List(reply)
	if err != nil || len(next) != 2 {
		return nil, err
	}
	n, err := strconv.ParseInt(conn.Text(next[0]), 10, 64)
	return &Stored{n, conn.Text(next[1])}, err
}

// longestNotice is the largest number of bytes of a notice that Notices reads. Only other programs write longer ones.
const longestNotice = 16 << 10

// Notices returns the notices that Redis keeps, the newest ones first, and at most the given number. The text of a
// notice is empty if another program has made it longer than any notice of a server.
func (s *Outbox) Notices(ctx context.Context, most int) ([]Stored, error) {
	const doing = "read notices"
	last, err := conn.Ask(ctx, s.Conn, doing, func(r redis.Cmdable) *redis.StringCmd {
		return r.HGet(ctx, s.Conn.Keys.Noticed(), "last")
	})
	if err != nil {
		return nil, err
	}
	id, _ := strconv.ParseInt(last, 10, 64)
	var ids []string
	for ; id > 0 && len(ids) < min(most, Max); id-- {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	lengths, err := conn.AskEach(ctx, s.Conn, doing, ids, func(p redis.Pipeliner, id string) *redis.Cmd {
		return p.Do(ctx, "HSTRLEN", s.Conn.Keys.Notices(), id)
	})
	if err != nil {
		return nil, err
	}
	lengthOf := map[string]int{}
	for i, l := range lengths {
		lengthOf[ids[i]] = conn.Number(l.Val())
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return lengthOf[id] == 0 })
	texts, err := conn.AskEach(ctx, s.Conn, doing, ids, func(p redis.Pipeliner, id string) *redis.StringCmd {
		if lengthOf[id] > longestNotice {
			return nil
		}
		return p.HGet(ctx, s.Conn.Keys.Notices(), id)
	})
	var all []Stored
	for i, text := range texts {
		n, _ := strconv.ParseInt(ids[i], 10, 64)
		one := Stored{ID: n}
		if text != nil {
			one.Text = text.Val()
		}
		all = append(all, one)
	}
	return all, err
}
