package redisstate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"

	"github.com/tdf-framework/tdf"
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
