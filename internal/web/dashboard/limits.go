package dashboard

import (
	"context"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

func loadLimits(ctx context.Context, v *visit) (any, error) {
	return v.place().manager.Limits().All(ctx)
}

// setLimit sets the limit of a key. The fields are key, at_most and rate, such as 10/1s.
func setLimit(ctx context.Context, v *visit) (string, error) {
	field := func(name string) string { return strings.TrimSpace(v.request.PostForm.Get(name)) }
	l, err := task.ReadLimit(field("at_most"), field("rate"))
	if err != nil {
		return "", asInvalid(err)
	}
	return "", v.actingHere().Limits().Set(ctx, v.request.PostForm.Get("key"), l)
}

// asInvalid makes an error one that the user may see and correct.
func asInvalid(err error) error {
	if task.CodeOf(err) != task.CodeFailed {
		return err
	}
	return task.NewError(task.CodeInvalid, err.Error())
}

func removeLimit(ctx context.Context, v *visit) (string, error) {
	return "", v.actingHere().Limits().Remove(ctx, v.path("key"))
}
