package dependencies

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// endingsPerRead is the number of endings that HandleEndings handles at once.
const endingsPerRead = 200

// HandleEndings handles the endings of tasks. It tells the dependents of these tasks, and releases the dependencies of
// these tasks, so that they can be removed. It works on the oldest endings, up to a limit, and returns their number.
func (l Links) HandleEndings(ctx context.Context) (int, error) {
	members, err := conn.Ask(ctx, l.s.Conn, "read "+l.s.Keys.Ended(), func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRange(ctx, l.s.Keys.Ended(), 0, endingsPerRead-1)
	})
	if err != nil {
		return 0, err
	}
	var endings []*ending
	for _, member := range members {
		if e, ok := parseEnding(member); ok {
			endings = append(endings, &e)
			continue
		}
		if err := l.s.Conn.BestEffort(ctx, readEnded,
			func(p redis.Pipeliner) { p.ZRem(ctx, l.s.Keys.Ended(), member) }); err != nil {
			return 0, err
		}
	}
	if err := l.readEndings(ctx, endings); err != nil {
		return 0, err
	}
	jobs := make([]*linkJob, len(endings))
	for i, e := range endings {
		jobs[i] = e.job()
	}
	return len(members), l.runLinkJobs(ctx, jobs)
}

// An ending says that a task was finished: in which round, and in which state. After a repair, the state may be
// archived. If the task does not exist, the state is archived, and there is no outcome.
type ending struct {
	id    int64
	round int
	state task.State

	outcome  string
	waited   int    // the last round with dependencies, up to the finished round; -1 if there is none
	all      []link // the dependencies that the server linked in that round
	released int    // how many of them were released
}

// parseEnding reads 'id:round:state'. It returns false for any other text.
func parseEnding(member string) (e ending, ok bool) {
	parts := strings.SplitN(member, ":", 3)
	if len(parts) != 3 {
		return e, false
	}
	id, errID := strconv.ParseInt(parts[0], 10, 64)
	round, errRound := strconv.Atoi(parts[1])
	e = ending{id: id, round: round, state: task.State(parts[2]), waited: -1}
	sound := errID == nil && errRound == nil && id > 0 && round >= 0 && e.state.Finished()
	return e, sound && member == fmt.Sprintf("%d:%d:%s", id, round, e.state)
}

// unmet returns why dependencies on the task are not met. It is "" if the task has succeeded.
func (e *ending) unmet() string {
	switch {
	case e.state == task.Archived && e.outcome == "":
		return rules.UnmetMissing(e.id)
	case e.state == task.Archived:
		return rules.Unmet(e.id, task.State(e.outcome))
	}
	return rules.Unmet(e.id, e.state)
}

// job returns the operation that handles the ending.
func (e *ending) job() *linkJob {
	return &linkJob{e.all, min(e.released, len(e.all)), func(done int, last bool) []any {
		args := &conn.Args{}
		args.Add("end", strconv.FormatInt(e.id, 10), strconv.Itoa(e.round), string(e.state), e.unmet(),
			strconv.Itoa(max(e.waited, 0)), strconv.Itoa(done))
		args.Flag(last)
		return args.All
	}}
}

const readEnded = "read ended tasks"

// readEndings reads the outcomes and the linked dependencies of finished tasks.
func (l Links) readEndings(ctx context.Context, endings []*ending) error {
	values, err := conn.AskEach(ctx, l.s.Conn, readEnded, endings, func(p redis.Pipeliner, e *ending) *redis.SliceCmd {
		return p.HMGet(ctx, l.s.Keys.Task(e.id), "links", "outcome", task.RoundField(e.round, task.RoundLinked))
	})
	if err != nil {
		return err
	}
	var waited []*ending
	for i, e := range endings {
		v := values[i].Val()
		if len(v) < 3 { // the key of the task is no hash
			continue
		}
		e.outcome = conn.Text(v[1])
		if task.SoundCount(conn.Text(v[0])) == 0 {
			continue
		}
		linked := task.SoundCount(conn.Text(v[2]))
		e.waited = e.round
		if v[2] == nil {
			if e.waited, linked, err = l.lastWait(ctx, e.id, e.round); err != nil {
				return err
			}
		}
		e.released = linked
		if linked > 0 { // for now, the number of linked dependencies
			waited = append(waited, e)
		}
	}
	return l.readReleased(ctx, waited)
}

// roundsPerRead is the number of rounds that one command of lastWait reads.
const roundsPerRead = 100

// lastWait returns the last round before the given one in which the task waited for dependencies. It also returns how
// many of them were linked in that round.
func (l Links) lastWait(ctx context.Context, id int64, round int) (waited, linked int, err error) {
	for to := round; to > 0; to -= roundsPerRead {
		from := max(0, to-roundsPerRead)
		var names []string
		for n := to - 1; n >= from; n-- {
			names = append(names, task.RoundField(n, task.RoundLinked))
		}
		values, err := conn.Ask(ctx, l.s.Conn, readEnded, func(r redis.Cmdable) *redis.SliceCmd {
			return r.HMGet(ctx, l.s.Keys.Task(id), names...)
		})
		if err != nil {
			return -1, 0, err
		}
		for i, v := range values {
			if v != nil {
				return to - 1 - i, task.SoundCount(conn.Text(v)), nil
			}
		}
	}
	return -1, 0, nil
}

// readReleased reads the dependencies of tasks, and how many of them were released. Before the call, the field released
// of each ending has the number of its linked dependencies.
func (l Links) readReleased(ctx context.Context, endings []*ending) error {
	for len(endings) > 0 {
		n := conn.Batch(len(endings), conn.Bound{Limit: linksPerRead, Amount: func(i int) int {
			return endings[i].released
		}})
		values, err := conn.AskEach(ctx, l.s.Conn, readEnded, endings[:n],
			func(p redis.Pipeliner, e *ending) *redis.SliceCmd {
				return p.HMGet(ctx, l.s.Keys.Task(e.id), append([]string{task.RoundField(e.waited, task.RoundReleased)},
					linkFields...)...)
			})
		if err != nil {
			return err
		}
		for i, e := range endings[:n] {
			if v := values[i].Val(); len(v) > 1 {
				e.all = linksOf(v[1:])
				e.all = e.all[:min(e.released, len(e.all))]
				if e.released = task.SoundCount(conn.Text(v[0])); e.released > len(e.all) {
					e.all = nil // all of them are released
				}
			}
		}
		endings = endings[n:]
	}
	return nil
}
