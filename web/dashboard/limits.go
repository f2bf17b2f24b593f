package dashboard

import (
	"context"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf"
)

func loadLimits(ctx context.Context, v *visit) (any, error) {
	return v.dashboard.manager.Limits(ctx)
}

var errNumber = tdf.NewError(tdf.CodeInvalid,
	"invalid number of tasks: want a whole number from 0 up, or nothing for any number")

// setLimit sets the limit of a key. The fields are key, at_most and rate, such as 10/1s.
func setLimit(ctx context.Context, v *visit) (string, error) {
	field := func(name string) string { return strings.TrimSpace(v.request.PostForm.Get(name)) }
	l := tdf.Limit{AtMost: tdf.AnyNumber}
	var err error
	if text := field("at_most"); text != "" {
		if l.AtMost, err = strconv.Atoi(text); err != nil {
			return "", errNumber
		}
	}
	if text := field("rate"); text != "" {
		if l.Starts, l.Per, err = tdf.ParseRate(text); err != nil {
			return "", asInvalid(err)
		}
	}
	if err := l.Check(); err != nil {
		return "", asInvalid(err)
	}
	return "", v.manager.SetLimit(ctx, v.request.PostForm.Get("key"), l)
}

// asInvalid makes an error one that the user may see and correct.
func asInvalid(err error) error {
	if tdf.CodeOf(err) != tdf.CodeFailed {
		return err
	}
	return tdf.NewError(tdf.CodeInvalid, err.Error())
}

func removeLimit(ctx context.Context, v *visit) (string, error) {
	return "", v.manager.RemoveLimit(ctx, v.path("key"))
}
