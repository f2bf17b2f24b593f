package redisstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

var plainOffer = class.Offer{Programs: true}

func (r *ClaimParams) offer() *class.Offer {
	o := cmp.Or(r.Offer, &plainOffer)
	if r.Free == nil {
		return o
	}
	with := *o
	with.Resources = r.Whole.Amounts()
	if r.Whole == nil {
		with.Resources = r.Free.Amounts()
	}
	return &with
}

// timeLeft returns TimeLeft as the script gets it.
func (r *ClaimParams) timeLeft() string {
	if r.TimeLeft == 0 {
		return ""
	}
	return r.TimeLeft.String()
}

// addFree adds the arguments of fitting.lua.
func (r *ClaimParams) addFree(e *conn.Args) {
	e.Add(class.PlainRequest.Part())
	e.Count(len(r.Free))
	for i := range r.Free {
		c := &r.Free[i]
		parts := make([]string, len(c.Parts))
		for i, n := range c.Parts {
			parts[i] = strconv.FormatInt(n, 10)
		}
		e.All = append(e.All, c.Name, c.Unit, c.Whole, strings.Join(parts, ","), r.wholeOf(c))
	}
}

// wholeOf returns the units of a resource that the worker has when it runs nothing.
func (r *ClaimParams) wholeOf(free *class.Capacity) int64 {
	for i := range r.Whole {
		if r.Whole[i].Name == free.Name {
			return r.Whole[i].Units()
		}
	}
	return free.Units()
}

// servesKey returns the key of the hash with the requirements that workers with this offer serve. Workers with other
// queues, groups and times left share it.
func (s *Store) servesKey(o *class.Offer) string {
	offer := fmt.Sprintf("%d %q %q %t %t %v", class.Version, slices.Sorted(slices.Values(o.Tags)),
		slices.Sorted(slices.Values(o.Handlers)), o.Programs, o.Anything, o.Resources)
	return s.Keys.Serves(digest(offer))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// servedFor is how long Redis keeps which requirements an offer serves.
const servedFor = time.Hour

// learnRequirements writes which of the requirements that a claim has not known the offer serves. The claim is then
// Stale.
func (s *Store) learnRequirements(ctx context.Context, o *class.Offer, reply any, c *ClaimResult) error {
	seen, err := strconv.ParseInt(conn.Text(conn.List(reply)[claimReplySeen]), 10, 64)
	if err != nil {
		return nil
	}
	all, err := s.Requirements(ctx, seen)
	if err != nil || len(all) == 0 {
		return err
	}
	fields := []any{servedUpTo, all[len(all)-1].Number}
	for i := range all {
		if text, served := o.Served(all[i].Requirement); served {
			fields = append(fields, all[i].Name, text)
		}
	}
	c.Stale = true
	key := s.servesKey(o)
	return s.Pipeline(ctx, "write which requirements a worker serves", func(p redis.Pipeliner) {
		for some := range slices.Chunk(fields, 1000) {
			p.HSet(ctx, key, some...)
		}
		p.Expire(ctx, key, servedFor)
	})
}

// servedUpTo is the field with the number of the last requirement that is known.
const servedUpTo = "upto"
