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

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

var plainOffer = class.Offer{Programs: true}

func (r *ClaimParams) offer() *class.Offer {
	o := cmp.Or(r.Offer, &plainOffer)
	if r.Free == nil {
		return o
	}
	with := *o
	with.Resources = r.Whole.Amounts()
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
		e.All = append(e.All, c.Name, c.Unit, c.Whole, strings.Join(parts, ","))
	}
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

// servedFor is how long Redis keeps which requirements an offer serves. Then a claim compares all again, so that the
// hash has no requirements that Redis has forgotten.
const servedFor = time.Hour

// learnedAtOnce is how many requirements a call compares, so that the script is short.
const learnedAtOnce = 1000

// learnRequirements writes which of the requirements that a claim has not known the offer serves. The claim is then
// Stale.
func (s *Store) learnRequirements(ctx context.Context, o *class.Offer, reply any, c *ClaimResult) error {
	seen, err := strconv.ParseInt(conn.Text(conn.List(reply)[claimReplySeen]), 10, 64)
	if err != nil {
		return nil
	}
	all, err := s.Counters.Requirements(ctx, seen)
	c.Stale = c.Stale || len(all) > 0
	for some := range slices.Chunk(all, learnedAtOnce) {
		if err != nil {
			break
		}
		upto := some[len(some)-1].Number
		args := []any{seen, upto, int(servedFor.Seconds())}
		for i := range some {
			if text, served := o.Served(some[i].Requirement); served && some[i].Known {
				args = append(args, some[i].Name, text)
			}
		}
		var written any
		written, err = s.Conn.Run(ctx, "write which requirements a worker serves", lua.Learn, []string{s.servesKey(o)}, args,
			conn.IsNumber)
		if err == nil && conn.Number(written) == 0 {
			return nil // the next claim says what is known now
		}
		seen = upto
	}
	return err
}
