package redisstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/keys"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// knownPauses says what is paused, as a claim last read it. A claim sends the version. If Redis has another version,
// the claim gets the pauses again.
type knownPauses struct {
	mu sync.Mutex
	pauses
}

type pauses struct {
	version string // "" means that the namespace has no partition and no pause
	paused  tdf.Paused
}

func (p *knownPauses) get() pauses {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pauses
}

func (p *knownPauses) set(known pauses) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses = known
}

var plainOffer = tdf.Offer{Programs: true}

func (r *ClaimParams) offer() *tdf.Offer {
	if r.Offer == nil {
		return &plainOffer
	}
	return r.Offer
}

// positionName returns the name under which Redis keeps how far claims from a queue have come. It is the same for all
// workers that offer the same.
func positionName(k keys.Names, queue string, o *tdf.Offer) string {
	if queue == tdf.DefaultQueue && o.Programs && !o.Anything && len(o.Tags)+len(o.Handlers) == 0 && o.Group == "" {
		return k.List(tdf.Open)
	}
	offer := fmt.Sprintf("%q %q %q %t %t", queue, slices.Sorted(slices.Values(o.Tags)), o.Handlers, o.Programs,
		o.Anything)
	if o.Group != "" {
		offer += fmt.Sprintf(" %q", o.Group)
	}
	sum := sha256.Sum256([]byte(offer))
	return hex.EncodeToString(sum[:8])
}

// readPauses keeps the pauses in the answer of claim.lua. It returns false if the answer has none, because the client
// knows them already.
func (s *Store) readPauses(answer []any) bool {
	if len(answer) != 2 {
		return false
	}
	known := pauses{version: conn.Text(answer[0])}
	for _, name := range conn.List(answer[1]) {
		if p, ok := tdf.ParsePausable(conn.Text(name)); ok && p.Failures == 0 {
			known.paused = append(known.paused, p)
		}
	}
	s.pauses.set(known)
	return true
}

// placeEntries are the entries by which claims and the server find a task in its place. A held task has only the first
// one, and the entry of its limit key if it waits because of a limit, or the entry in unlinked if the server must link
// it.
type placeEntries struct {
	place, level, later, coming, limit, limitLevel, listed, unlinked *redis.FloatCmd
	head                                                             *redis.StringCmd
}

// isListed reports whether claims find the place itself. The first task of the partition comes before the task, or is
// the task.
func (e placeEntries) isListed(priority int) bool {
	switch {
	case e.head.Err() != nil:
		return false
	case e.level.Err() == nil:
		return e.listed != nil && e.listed.Err() == nil && !headIsAfter(e.head.Val(), priority, e.place.Val())
	}
	return e.later.Err() == nil && e.coming.Err() == nil && e.coming.Val() <= e.later.Val()
}

// headIsAfter reports whether a member of `heads` (see places.lua) comes after a task.
func headIsAfter(member string, priority int, score float64) bool {
	if len(member) < 30 {
		return true
	}
	inverted, err1 := strconv.Atoi(member[:10])
	first, err2 := strconv.ParseFloat(member[11:28], 64)
	return err1 != nil || err2 != nil || math.MaxInt32-inverted < priority || math.MaxInt32-inverted == priority &&
		first > score+1e-5
}

const readPlaces = "read the places of open tasks"

// inPlace reports for each task whether claims, or the server, find it in its place. It is true for a task without a
// place.
func (s *Store) inPlace(ctx context.Context, all []tdf.Placement) ([]bool, error) {
	found := map[int]*placeEntries{}
	err := s.Pipeline(ctx, readPlaces, func(p redis.Pipeliner) {
		for i := range all {
			t := all[i].Task
			if t == nil || t.State != tdf.Open || t.OpenPlace() == "" {
				continue
			}
			partition, priority := t.Partition().String(), strconv.Itoa(t.Priority)
			found[i] = &placeEntries{place: p.ZScore(ctx, s.Keys.Place(t.OpenPlace()), strconv.FormatInt(t.ID, 10))}
			switch e := found[i]; {
			case t.MustLink():
				e.unlinked = p.ZScore(ctx, s.Keys.Unlinked(), strconv.FormatInt(t.ID, 10))
			case t.WaitsForLimit():
				e.limit, e.limitLevel = p.ZScore(ctx, s.Keys.LimitsDue(), t.LimitKey),
					p.ZScore(ctx, s.Keys.Levels(t.OpenPart()), priority)
			case !tdf.IsHeld(t.OpenPlace()):
				e.head, e.coming = p.HGet(ctx, s.Keys.Partitions(), partition),
					p.ZScore(ctx, s.Keys.Coming(t.Partition().Queue), partition)
				e.level, e.later = p.ZScore(ctx, s.Keys.Levels(partition), priority),
					p.ZScore(ctx, s.Keys.Later(partition), priority)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	err = s.Pipeline(ctx, readPlaces, func(p redis.Pipeliner) {
		for i, e := range found {
			if e.head != nil && e.head.Val() != "" {
				e.listed = p.ZScore(ctx, s.Keys.Heads(all[i].Task.Partition().Queue), e.head.Val())
			}
		}
	})
	in := make([]bool, len(all))
	for i := range in {
		e := found[i]
		in[i] = e == nil || e.place.Err() == nil && (e.head == nil || e.isListed(all[i].Task.Priority)) &&
			(e.limit == nil || e.limit.Err() == nil && e.limitLevel.Err() == nil) &&
			(e.unlinked == nil || e.unlinked.Err() == nil)
	}
	if err != nil {
		return in, err
	}
	return in, s.markMoved(ctx, all, found, in)
}

// markMoved marks the tasks that have moved since they were read. It reads the state and the place's name of a task
// together with the place, at one moment. Otherwise, a task that enters and leaves its place again and again, because
// of its limit, may look out of place whenever it is read.
func (s *Store) markMoved(ctx context.Context, all []tdf.Placement, found map[int]*placeEntries, in []bool) error {
	var asked []int
	var where []string
	var ids []any
	for i, is := range in {
		if t := all[i].Task; !is {
			asked, ids = append(asked, i), append(ids, t.ID)
			where = append(where, s.Keys.Task(t.ID), s.Keys.Place(t.OpenPlace()))
		}
	}
	if len(asked) == 0 {
		return nil
	}
	reply, err := s.Run(ctx, readPlaces, lua.Located, where, ids,
		conn.ListOf(len(asked), len(asked), conn.Tuple(conn.IsText, conn.IsText, conn.IsText)))
	for k, facts := range conn.List(reply) {
		i, f := asked[k], conn.List(facts)
		state, place, has := conn.Text(f[0]), conn.Text(f[1]), conn.Text(f[2]) != ""
		in[i] = found[i].place.Err() != nil && has || state != "" && state != string(tdf.Open) ||
			place != all[i].Task.PlacedIn
	}
	return err
}
