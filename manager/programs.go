package manager

import (
	"context"
	"fmt"
	"slices"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// A StoredProgram is an archive that is stored in the namespace (docs/tdf.md, "Programs").
type StoredProgram = redisstate.StoredProgram

// A ProgramUse says which tasks name a stored program.
type ProgramUse struct {
	Names      []string // of the program, as these tasks have it: the first few
	Tasks      int64
	Unfinished int64 // how many of the tasks may still run
	ID         int64 // of one of the tasks
}

// mostProgramNames is how many names a [ProgramUse] has at most.
const mostProgramNames = 3

// A ProgramUsedError says that a stored program is needed: unfinished tasks name it.
type ProgramUsedError struct {
	SHA256 string
	ProgramUse
}

func (e *ProgramUsedError) Error() string {
	return fmt.Sprintf("remove program %s: %d unfinished tasks need it, such as task %d; cancel them first", e.SHA256, e.Tasks, e.ID)
}

// unfinished are the states of tasks that need their programs.
var unfinished = slices.DeleteFunc(slices.Clone(tdf.States), tdf.State.Finished)

// StoredPrograms lists the programs that are stored in the namespace, the smallest first.
func (m *Manager) StoredPrograms(ctx context.Context) ([]StoredProgram, error) {
	redis, err := m.redis()
	if err != nil {
		return nil, err
	}
	return redis.Programs(ctx)
}

// ProgramUses counts the tasks that name stored programs, by the programs' SHA-256: tasks in these states, or all tasks if there
// are none. It reads three properties of each task, a page at a time, so a million tasks take some seconds and
// little memory. A task that moves meanwhile may count twice.
func (m *Manager) ProgramUses(ctx context.Context, states ...tdf.State) (map[string]ProgramUse, error) {
	if len(states) == 0 {
		states = tdf.States
	}
	uses := map[string]ProgramUse{}
	stretch := redisstate.ListQuery{States: states, OldestFirst: true} // what moves, moves to the end
	for last := false; !last; {
		var places []redisstate.ListEntry
		var err error
		if places, last, err = m.store.Find(ctx, stretch, idsPerPage); err == nil && len(places) > 0 {
			stretch.Behind = &places[len(places)-1]
			err = m.countUses(ctx, places, uses)
		}
		if err != nil {
			return nil, fmt.Errorf("look for tasks that name stored programs: %w", err)
		}
	}
	return uses, nil
}

func (m *Manager) countUses(ctx context.Context, places []redisstate.ListEntry, uses map[string]ProgramUse) error {
	stored, err := m.store.Read(ctx, idsAt(places), redisstate.Want{Fields: redisstate.Head | redisstate.Source})
	if err != nil {
		return err
	}
	for _, x := range stored {
		if x.Task == nil {
			continue
		}
		if src, err := tdf.ParseSource(x.Task.Source); err == nil && src.Scheme == tdf.SchemeRedis {
			uses[src.Location] = uses[src.Location].with(x.ID, x.Task.Program, x.Task.State)
		}
	}
	return nil
}

func (u ProgramUse) with(id int64, name string, state tdf.State) ProgramUse {
	u.Tasks, u.ID = u.Tasks+1, id
	if !state.Finished() {
		u.Unfinished++
	}
	if len(u.Names) < mostProgramNames && !slices.Contains(u.Names, name) {
		u.Names = append(u.Names, name)
	}
	return u
}

// RemovePrograms removes stored programs by their SHA-256. It removes none if unfinished tasks name one of them: the error is a
// *[ProgramUsedError]. Finished tasks that name it cannot run again until it is stored again, and neither can a task
// that is opened while this runs: storing the same directory again gives the same source.
func (m *Manager) RemovePrograms(ctx context.Context, sha256 ...string) error {
	redis, err := m.redis()
	if err != nil {
		return err
	}
	uses, err := m.ProgramUses(ctx, unfinished...)
	if err != nil {
		return err
	}
	for _, sum := range sha256 {
		if use, needed := uses[sum]; needed {
			return &ProgramUsedError{sum, use}
		}
	}
	for _, sum := range sha256 {
		if err := redis.RemoveProgram(ctx, sum); err != nil {
			return err
		}
	}
	return nil
}
