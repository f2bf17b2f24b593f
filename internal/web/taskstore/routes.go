package taskstore

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/groups"
)

// Bounds of the answers to reading calls.
const (
	mostIDs      = 1000      // ids in one call
	mostAnswered = 64 << 20  // bytes of data in the list of a group
	mostListed   = 250_000   // tasks in this list
	readAtOnce   = 200       // tasks
	mostGroups   = 1_000_000 // names in the list of groups
)

const formType = "application/x-www-form-urlencoded"

// Routes returns the routes of the interface to the tasks of a manager's namespace.
func Routes(m *manager.Manager) []wire.Route {
	a := &app{managing.Of(m).Store}
	bodies := []string{"application/json", formType} // curl sends JSON with the second type
	return []wire.Route{
		{Method: http.MethodGet, Path: "/groups", Need: wire.ToSee, Bulk: true, Do: a.listGroups},
		{Method: http.MethodGet, Path: "/group", Need: wire.ToSee, Bulk: true, Do: a.listGroups},
		{Method: http.MethodGet, Path: "/group/{name...}", Need: wire.ToSee, Bulk: true, Do: a.listGroup},
		{Method: http.MethodGet, Path: "/task/{id}", Need: wire.ToSee, Do: a.getTask},
		{Method: http.MethodGet, Path: "/tasks/{ids}", Need: wire.ToSee, Do: a.getTasks},
		{Method: http.MethodPost, Path: "/update", Need: wire.ToOpen, Bulk: true, Types: bodies, Do: a.postUpdate},
		{Method: http.MethodPost, Path: "/claim", Need: wire.ToOpen, Types: bodies, Do: a.postClaim},
	}
}

// An app serves the interface.
type app struct{ store *redisstate.Store }

// A request is what the steps of one call share.
type request struct {
	call  *wire.Call
	store *redisstate.Store
}

func (a *app) begin(c *wire.Call) request { return request{c, a.store} }

// read returns the versions with these ids, nil for those that do not exist or that the token may not see, and the
// time.
func (s *request) read(ctx context.Context, ids []int64) ([]*task.Task, task.Time, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return nil, 0, err
	}
	found := make([]*task.Task, 0, len(ids))
	for some := range slices.Chunk(ids, readAtOnce) {
		stored, err := s.store.Read(ctx, some, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return nil, 0, err
		}
		for _, x := range stored {
			if !s.sees(x.Task) {
				x.Task = nil
			}
			found = append(found, x.Task)
		}
	}
	return found, now, nil
}

// sees reports whether a task is a version that the token may see. Names of groups decide: in a submitter's group, its
// clients share the tasks with operators, who may have opened some of them.
func (s *request) sees(t *task.Task) bool {
	return isVersion(t) && task.OwnsName(s.call.Token.Owner(), t.Group)
}

func (a *app) listGroups(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	s, names, prefix, after := a.begin(c), []string{}, "", ""
	if owner := c.Token.Owner(); owner != "" {
		prefix = owner + "/"
	}
	for more := true; more && len(names) < mostGroups; more = after != "" {
		page, next, err := s.store.Groups.ListGroups(ctx, prefix, after, groups.MaxListed)
		if err != nil {
			return nil, err
		}
		places := make([]string, len(page))
		for i := range page {
			places[i] = placeOf(page[i].Name)
		}
		have, err := s.store.OpenSets.HaveTasks(ctx, places)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if have[i] {
				names = append(names, page[i].Name)
			}
		}
		after = next
	}
	return wire.JSON(http.StatusOK, names)
}

func (a *app) getTask(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	all, err := a.versions(ctx, c, c.PathValue("id"))
	if err != nil || len(all) != 1 {
		return nil, cmp.Or(err, wire.Invalid("want one id"))
	}
	return wire.JSON(http.StatusOK, all[0])
}

func (a *app) getTasks(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	all, err := a.versions(ctx, c, c.PathValue("ids"))
	if err != nil {
		return nil, err
	}
	return wire.JSON(http.StatusOK, all)
}

// versions returns the versions with the ids of a text, in their order, and nil for those that do not exist.
func (a *app) versions(ctx context.Context, c *wire.Call, text string) ([]*version, error) {
	var ids []int64
	for word := range strings.SplitSeq(text, ",") {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil || len(ids) == mostIDs {
			return nil, wire.Invalid("want up to 1000 numbers as ids")
		}
		ids = append(ids, id)
	}
	s := a.begin(c)
	tasks, _, err := s.read(ctx, ids)
	all := make([]*version, len(tasks))
	for i, t := range tasks {
		if t != nil {
			all[i] = new(versionOf(ids[i], &t.Properties, ownerOf(t)))
		}
	}
	return all, err
}

// listTries is how often list reads a group that changes meanwhile.
const listTries = 10

// list returns the versions of a group as they were at one moment, in the order of their times; only the first ones if
// limit is not 0. Redis lists the ids at one moment, and a version never changes. If one is gone before it is read, its
// successor is missing, so list reads the ids again, and the new versions.
func (s *request) list(ctx context.Context, group string, now task.Time, limit int) (list []version, err error) {
	most := mostListed + 1
	if limit > 0 {
		most = min(most, limit)
	}
	known := map[int64]version{}
	for range listTries {
		ids, err := s.store.OpenSets.First(ctx, placeOf(group), now, int64(most))
		if err != nil {
			return nil, err
		}
		if len(ids) > mostListed {
			return nil, task.NewError(task.CodeFull, fmt.Sprintf("the group has more than %d tasks; use limit",
				mostListed))
		}
		var whole bool
		if list, whole, err = s.listed(ctx, ids, known, limit); err != nil || whole {
			return list, err
		}
	}
	return list, nil
}

// listed returns the versions with these ids, and reports whether all are still there. It reads those that are not
// known.
func (s *request) listed(ctx context.Context, ids []int64, known map[int64]version, limit int) (list []version,
	whole bool, err error,
) {
	list, whole = []version{}, true
	bytes := 0
	for page := range slices.Chunk(ids, readAtOnce) {
		unread := slices.DeleteFunc(slices.Clone(page), func(id int64) bool { _, is := known[id]; return is })
		stored, err := s.store.Read(ctx, unread, redisstate.Want{Fields: redisstate.Whole})
		if err != nil {
			return nil, false, err
		}
		for _, x := range stored {
			if isVersion(x.Task) {
				known[x.ID] = versionOf(x.ID, &x.Task.Properties, ownerOf(x.Task))
			}
			whole = whole && x.Task != nil
		}
		for _, id := range page {
			v, is := known[id]
			if !is {
				continue
			}
			if bytes += len(v.Data); bytes > mostAnswered {
				return nil, false,
					task.NewError(task.CodeFull, "the tasks of the group have more than 64 MiB of data; use limit")
			}
			if list = append(list, v); len(list) == limit {
				return list, whole, nil
			}
		}
	}
	return list, whole, nil
}

func (a *app) listGroup(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	name := c.PathValue("name")
	if name == "" {
		return a.listGroups(ctx, c)
	}
	limit, owned, err := listOptions(c.URL.Query())
	if err != nil {
		return nil, err
	}
	if err := c.Token.CheckGroup(name); err != nil {
		return nil, err
	}
	s := a.begin(c)
	now := task.Time(0)
	if !owned {
		if now, err = s.store.Now(ctx); err != nil {
			return nil, err
		}
	}
	list, err := s.list(ctx, name, now, limit)
	if err != nil {
		return nil, err
	}
	return wire.JSON(http.StatusOK, list)
}

// listOptions reads the parameters limit and owned. A limit of 0 means no limit.
func listOptions(q url.Values) (limit int, owned bool, err error) {
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return 0, false, wire.Invalid("limit: want a number")
		}
	}
	switch strings.ToLower(q.Get("owned")) {
	case "", "0", "no", "false":
	case "1", "yes", "true":
		owned = true
	default:
		return 0, false, wire.Invalid("owned: want yes or no")
	}
	return limit, owned, nil
}
