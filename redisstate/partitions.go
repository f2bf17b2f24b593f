package redisstate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/keys"
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

var plainOffer = class.Offer{Programs: true}

func (r *ClaimParams) offer() *class.Offer {
	if r.Offer == nil {
		return &plainOffer
	}
	return r.Offer
}

// timeStep is the step of ClaimParams.TimeLeft. Claims within a step share their positions.
const timeStep = 10 * tdf.Seconds(1)

// timeLeft returns TimeLeft as the script gets it.
func (r *ClaimParams) timeLeft() string {
	if r.TimeLeft == 0 {
		return ""
	}
	return tdf.Seconds(math.Floor(float64(r.TimeLeft/timeStep)) * float64(timeStep)).String()
}

// addFree adds the arguments of fitting.lua.
func (r *ClaimParams) addFree(e *conn.Args) {
	e.Add(r.timeLeft(), class.PlainRequest.Part())
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

// positionName returns the name under which Redis keeps how far claims from a queue have come. It is the same for all
// workers that offer the same, and have the same free.
func positionName(k keys.Names, queue string, r *ClaimParams) string {
	o := r.offer()
	plain := r.Free == nil && r.TimeLeft == 0
	if plain && queue == class.DefaultQueue && o.Programs && !o.Anything && len(o.Tags)+len(o.Handlers) == 0 &&
		o.Group == "" {
		return k.List(tdf.Open)
	}
	offer := fmt.Sprintf("%q %q %q %t %t", queue, slices.Sorted(slices.Values(o.Tags)), o.Handlers, o.Programs,
		o.Anything)
	if o.Group != "" {
		offer += fmt.Sprintf(" %q", o.Group)
	}
	if !plain {
		offer += fmt.Sprintf(" %v %s", r.Free, r.timeLeft())
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
