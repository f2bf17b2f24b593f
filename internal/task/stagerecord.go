package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A StagePhase says how much of a stage of a pipeline has been opened.
type StagePhase string

// The phases of a stage.
const (
	StageUnopened StagePhase = ""
	StageOpening  StagePhase = "opening" // the start has opened the first Done tasks
	StageStored   StagePhase = "stored"  // the first Done chunks of the stored definitions have been opened
	StageOpened   StagePhase = "opened"  // all tasks have been opened
	StageDecided  StagePhase = "decided" // the function after the last stage has returned
)

// A StageRecord is the record of a stage in Redis. Redis refuses a change of the record if another manager has changed
// the record first. So if two managers open the same tasks, Redis refuses one of them.
type StageRecord struct {
	Phase  StagePhase
	Done   int    // of the phases opening and stored
	Digest string // of the phase opening: the digest of the definitions of the first Done tasks
	Chunks int    // of the phase stored: the number of chunks
	Stored string // of the phase stored: the name of the stored definitions
	// Programs has the SHA-256 sums of the stored programs that the definitions of the phase stored name, in ascending
	// order, with commas between them.
	Programs string
}

// String returns the record as it is stored in Redis.
func (r StageRecord) String() string {
	switch r.Phase {
	case StageOpening:
		return fmt.Sprintf("%s %d %s", r.Phase, r.Done, r.Digest)
	case StageStored:
		text := fmt.Sprintf("%s %d %d %s", r.Phase, r.Done, r.Chunks, r.Stored)
		return strings.TrimSuffix(text+" "+r.Programs, " ")
	}
	return string(r.Phase)
}

// ParseStageRecord parses the text of a record. The text "" is the record of a stage without opened tasks.
func ParseStageRecord(text string) (StageRecord, error) {
	words := strings.Split(text, " ")
	number := func(i int) int {
		n, _ := strconv.Atoi(words[i])
		return n
	}
	r := StageRecord{Phase: StagePhase(words[0])}
	valid := slices.Contains([]StagePhase{StageUnopened, StageOpened, StageDecided}, r.Phase)
	switch {
	case r.Phase == StageOpening && len(words) == 3:
		r.Done, r.Digest = number(1), words[2]
		valid = r.Done >= 0
	case r.Phase == StageStored && (len(words) == 4 || len(words) == 5):
		r.Done, r.Chunks, r.Stored, r.Programs = number(1), number(2), words[3], strings.Join(words[4:], "")
		valid = r.Done >= 0 && r.Done < r.Chunks && len(r.StoredPrograms()) == len(r.namedPrograms())
	}
	if !valid || r.String() != text {
		return StageRecord{}, fmt.Errorf("invalid record %.100q of a stage; another program has written it", text)
	}
	return r, nil
}

// StoredPrograms returns the SHA-256 sums of the stored programs that a stage needs until all of its tasks are opened.
func (r StageRecord) StoredPrograms() []string {
	return slices.DeleteFunc(r.namedPrograms(), func(sum string) bool {
		return sum == "" || StoredProgram("redis:"+sum) != sum
	})
}

func (r StageRecord) namedPrograms() []string {
	if r.Programs == "" {
		return nil
	}
	return strings.Split(r.Programs, ",")
}

// NextDigest returns the digest of a list of definitions with one more definition. The digest covers the program, the
// input and the meta of each definition.
func NextDigest(digest string, d *Properties) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s%q%q%q", digest, d.Program, d.Input, d.Meta)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A StageStatus contains the data from which a manager decides what to do next for a stage.
type StageStatus struct {
	Record   StageRecord
	First    bool // the stage opens at the start of the pipeline
	HasAfter bool // a function runs when the stage is complete
	// Next is the record of the stage that the function after this stage opens, or nil if it opens none.
	Next    *StageRecord
	HasEach bool // a function runs for each finished task
	Mark    GroupMark
	Counts  Counts
}

// A StageAction is what a manager must do next for a stage.
type StageAction int

// The actions.
const (
	StageWaits   StageAction = iota // nothing, until tasks finish or another stage is complete
	StageStart                      // open tasks of the start
	StageFill                       // open tasks whose definitions are stored
	StageClose                      // close the group
	StageAfter                      // call the function after the stage
	StageArchive                    // archive finished tasks
	StageDone                       // nothing more
)

// Action returns what a manager must do next for the stage. A stage is complete if its group is
// ([GroupMark.IsComplete]) or has no tasks. With HasEach, its tasks must be archived, too. Until all tasks have been
// opened, Action does not read Mark and Counts.
func (s *StageStatus) Action() StageAction {
	switch s.Record.Phase {
	case StageUnopened, StageOpening:
		if s.First {
			return StageStart
		}
		return StageWaits
	case StageStored:
		return StageFill
	}
	unfinished, waiting := s.Counts.Unfinished() > 0, s.Counts.Waiting() > 0
	switch {
	case s.Mark == GroupOpen && s.Counts.Total() > 0:
		return StageClose
	case !s.decided() && (unfinished || waiting && s.HasEach):
		return StageWaits
	case !s.decided():
		return StageAfter
	case waiting && !s.HasEach:
		return StageArchive
	case unfinished || waiting:
		return StageWaits
	}
	return StageDone
}

// decided reports whether the function after the stage has taken effect. It is also true without such a function.
func (s *StageStatus) decided() bool {
	if s.HasAfter && s.Next != nil {
		return s.Next.Phase != StageUnopened
	}
	return !s.HasAfter || s.Record.Phase == StageDecided
}
