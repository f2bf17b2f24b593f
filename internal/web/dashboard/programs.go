package dashboard

import (
	"context"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

func loadPrograms(ctx context.Context, v *visit) (any, error) {
	return program.List(ctx, v.place().manager)
}

// changeProgram pins, unpins or removes the program of an address.
func changeProgram(ctx context.Context, v *visit) (string, error) {
	change := map[string]func(context.Context, *manager.Manager, ...string) error{
		"pin":   program.Pin,
		"unpin": program.Unpin, "remove": program.Remove,
	}[v.path("do")]
	if change == nil {
		return "", task.NewError(task.CodeNotFound, "no such action")
	}
	return "", change(ctx, v.actingHere(), v.path("sha256"))
}
