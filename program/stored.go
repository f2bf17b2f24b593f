package program

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/stages"
	"github.com/tdf-framework/tdf/redisstate/walk"
)

func storeOf(m *manager.Manager) *redisstate.Store { return managing.Of(m).Store }

// A Stored is a program that is stored in the namespace (docs/tdf.md, "Programs").
type Stored struct {
	SHA256 string // SHA-256 of the archive
	Bytes  int64  // size of the archive

	// LastUse is when a client last stored the program or opened tasks with it, or when the server last found it in a
	// task. It is zero if the program is pinned. If no task names the program, the server removes it a week later.
	LastUse time.Time
	Pinned  bool // whether the server keeps the program even if no task names it
}

// A Use says how many tasks use a stored program, and names examples. A program of which a stage of a pipeline or
// a periodic will open tasks is used, too.
type Use struct {
	Names      []string // the names that these tasks give the program, at most 3
	Tasks      int64    // how many tasks use the program
	Unfinished int64    // how many of these tasks are open, running or executed
	ID         int64    // the id of one of the tasks
	Later      string   // what will open tasks of the program, such as "the stage p/s"; "" if there is nothing
}

// mostNames is the maximum number of names in a [Use].
const mostNames = 3

// A UsedError means that a program cannot be removed because unfinished tasks use it, or because a stage or a
// periodic will open tasks of it.
type UsedError struct {
	SHA256 string
	Use
}

func (e *UsedError) Error() string {
	if e.Tasks == 0 {
		const text = "remove program %s: %s will open tasks of it; run or forget its pipeline, or remove the periodic"
		return fmt.Sprintf(text, e.SHA256, e.Later)
	}
	return fmt.Sprintf("remove program %s: %d unfinished tasks use it, such as task %d; cancel them first", e.SHA256,
		e.Tasks, e.ID)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*UsedError) Code() tdf.Code { return tdf.CodeConflict }

// Limits for one read of tasks.
const (
	tasksPerPage = 1000
	bytesPerPage = 4 << 20
)

// unfinished lists the states of tasks that need their programs.
var unfinished = slices.DeleteFunc(slices.Clone(task.States), tdf.State.Finished)

// List returns the programs that are stored in the namespace, ordered by size, the smallest first.
func List(ctx context.Context, m *manager.Manager) ([]Stored, error) {
	stored, err := storeOf(m).Programs.Programs(ctx)
	all := make([]Stored, len(stored))
	for i, p := range stored {
		all[i] = Stored{SHA256: p.SHA256, Bytes: p.Bytes, LastUse: p.LastUse.Std(), Pinned: p.Pinned}
	}
	return all, err
}

// Uses returns how many tasks use each stored program, by the program's SHA-256. It counts tasks in the given states,
// or all tasks if no state is given. It reads the tasks page by page, which takes some seconds for a million tasks. If
// a task changes its state meanwhile, it may count twice.
func Uses(ctx context.Context, m *manager.Manager, states ...tdf.State) (map[string]Use, error) {
	return usesOf(ctx, storeOf(m), states...)
}

func usesOf(ctx context.Context, s *redisstate.Store, states ...tdf.State) (map[string]Use, error) {
	if len(states) == 0 {
		states = task.States
	}
	uses := map[string]Use{}
	needed, err := stages.Of(s).NeededPrograms(ctx) // before the tasks, because stages become tasks
	if err != nil {
		return nil, err
	}
	for sum, by := range needed {
		uses[sum] = Use{Later: by}
	}
	// a task that changes its state goes to the end of its new list
	stretch := redisstate.ListQuery{States: states, OldestFirst: true}
	for places, err := range stretch.Pages(ctx, s, tasksPerPage) {
		if err != nil {
			return nil, fmt.Errorf("find tasks that use stored programs: %w", err)
		}
		if err := countUses(ctx, s, places, uses); err != nil {
			return nil, fmt.Errorf("find tasks that use stored programs: %w", err)
		}
	}
	return uses, nil
}

func countUses(ctx context.Context, s *redisstate.Store, places []redisstate.ListEntry, uses map[string]Use) error {
	stored, err := s.Read(ctx, redisstate.IDsOf(places), redisstate.Want{Fields: redisstate.Head | redisstate.Source})
	if err != nil {
		return err
	}
	for _, x := range stored {
		if x.Task == nil {
			continue
		}
		if src, err := task.ParseSource(x.Task.Source); err == nil && src.Scheme == task.SchemeRedis {
			uses[src.Location] = uses[src.Location].with(x.ID, x.Task.Program, x.Task.State)
		}
	}
	return nil
}

func (u Use) with(id int64, name string, state tdf.State) Use {
	u.Tasks, u.ID = u.Tasks+1, id
	if !state.Finished() {
		u.Unfinished++
	}
	if len(u.Names) < mostNames && !slices.Contains(u.Names, name) {
		u.Names = append(u.Names, name)
	}
	return u
}

// Remove removes stored programs by their SHA-256. If an unfinished task uses one of them, or a stage of a pipeline
// or a periodic will open tasks of it, Remove removes no program, and the error is a *[UsedError]. After a removal,
// finished tasks of the program cannot be retried, and new tasks cannot run it, until the program is stored again. If
// the same directory is stored again, the program has the same source.
//
// Tasks may be opened during the call. Remove removes no program that one of these tasks uses.
func Remove(ctx context.Context, m *manager.Manager, sha256 ...string) error {
	for range mostLooks {
		var err error
		if sha256, err = remove(ctx, storeOf(m), sha256); err != nil || len(sha256) == 0 {
			return err
		}
	}
	return fmt.Errorf("remove program %s: clients use it all the time; try again", sha256[0])
}

// mostLooks is how often Remove looks for unfinished tasks of programs that clients use during the call.
const mostLooks = 20

// remove looks once for unfinished tasks of the programs, and removes the programs. It returns the programs that
// clients have used since the look.
func remove(ctx context.Context, s *redisstate.Store, sha256 []string) (left []string, err error) {
	since, err := s.Now(ctx)
	if err != nil {
		return sha256, err
	}
	last, err := walk.LastID(ctx, s.Conn)
	if err != nil {
		return sha256, err
	}
	uses, err := usesOf(ctx, s, unfinished...)
	if err != nil {
		return sha256, err
	}
	for _, sum := range sha256 {
		if use, needed := uses[sum]; needed {
			return sha256, &UsedError{sum, use}
		}
	}
	for _, sum := range sha256 {
		removed, err := s.Programs.RemoveProgram(ctx, sum, since, last)
		if err != nil {
			return sha256, err
		}
		if !removed {
			left = append(left, sum)
		}
	}
	return left, nil
}

// Pin makes the server keep stored programs, even if no task names them. The programs are given by their SHA-256.
func Pin(ctx context.Context, m *manager.Manager, sha256 ...string) error {
	return storeOf(m).Programs.PinPrograms(ctx, sha256...)
}

// Unpin ends the effect of Pin. If no task names such a program, the server removes it a week later.
func Unpin(ctx context.Context, m *manager.Manager, sha256 ...string) error {
	return storeOf(m).Programs.UnpinPrograms(ctx, sha256...)
}
