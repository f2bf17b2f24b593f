package redisstate

import (
	"sync"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// knownPauses says what is paused, as a claim last read it. A claim sends the version. If Redis has another version,
// the claim gets the pauses again.
type knownPauses struct {
	mu sync.Mutex
	pauses
}

type pauses struct {
	version string // "" means that nothing is paused
	paused  tdf.Paused
	sources bool // whether sources are held
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
		} else if tdf.SourceOf(conn.Text(name)) != "" {
			known.sources = true
		}
	}
	s.pauses.set(known)
	return true
}
