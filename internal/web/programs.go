package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// octets is the type of an archive of any kind.
const octets = "application/octet-stream"

// addPrograms adds the routes about stored programs.
func (a *api) addPrograms() {
	archives := []string{octets, "application/x-tar", "application/gzip", "application/zstd"}
	add(a, route{http.MethodGet, "/programs", "list-programs", "List the stored programs", toInspect, false},
		a.listPrograms)
	addReading(a, route{
		http.MethodPost, "/programs", "store-program",
		"Store a program: a tar, plain or compressed with gzip or zstd", toOpen, true,
	}, archives, a.storeProgram)
	add(a, route{
		http.MethodPost, "/programs/{sha256}/pin", "pin-program", "Keep a program, even if no task names it",
		toOperate, false,
	}, changeProgram(program.Pin))
	add(a, route{
		http.MethodPost, "/programs/{sha256}/unpin", "unpin-program", "End the effect of a pin", toOperate,
		false,
	}, changeProgram(program.Unpin))
	add(a, route{
		http.MethodDelete, "/programs/{sha256}", "remove-program",
		"Remove a program that no unfinished task needs", toOperate, true,
	}, changeProgram(program.Remove))
}

// storedProgram is a program that Redis stores.
type storedProgram struct {
	Source  string     `json:"source"`
	Bytes   int64      `json:"bytes"`
	LastUse *time.Time `json:"last_use,omitempty"`
	Pinned  bool       `json:"pinned"`
}

func (a *api) listPrograms(ctx context.Context, c *call, _ *none) (*out[[]storedProgram], error) {
	stored, err := program.List(ctx, c.manager)
	all := make([]storedProgram, len(stored))
	for i, p := range stored {
		all[i] = storedProgram{Source: "redis:" + p.SHA256, Bytes: p.Bytes, Pinned: p.Pinned}
		if !p.LastUse.IsZero() {
			all[i].LastUse = &p.LastUse
		}
	}
	return &out[[]storedProgram]{all}, err
}

type storeInput struct {
	Name    string `query:"name" maxLength:"100" doc:"the beginning of the program's name"`
	RawBody []byte `contentType:"application/octet-stream"`
}

// storedNow is the answer to a call that stores a program.
type storedNow struct {
	Program string `json:"program" doc:"the name of the program, for the definition of a task"`
	Source  string `json:"source" doc:"the source of the program, for the definition of a task"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

func (a *api) storeProgram(ctx context.Context, c *call, in *storeInput) (*out[storedNow], error) {
	packed, err := program.Check(ctx, in.Name, in.RawBody)
	if err != nil {
		return nil, err
	}
	p, err := program.PushFor(ctx, c.manager, packed, c.token.Owner())
	return &out[storedNow]{storedNow{p.Program, p.Source, p.Files, p.Bytes}}, err
}

type programInput struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"the SHA-256 of the archive; the source of the program ends with it"`
}

func changeProgram(change func(context.Context, *manager.Manager, ...string) error) func(context.Context, *call,
	*programInput) (*none, error) {
	return func(ctx context.Context, c *call, in *programInput) (*none, error) {
		stored, err := program.List(ctx, c.manager)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(stored, func(p program.Stored) bool { return p.SHA256 == in.SHA256 }) {
			return nil, task.NewError(task.CodeNotFound, "no stored program has the SHA-256 "+in.SHA256)
		}
		return nil, change(ctx, c.manager, in.SHA256)
	}
}
