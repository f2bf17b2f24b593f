package conn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A ReplyForm reports whether a reply of Redis has the form that the reader of the reply expects. Readers may rely on
// this form, because a call is repeated until its reply has it.
type ReplyForm func(reply any) bool

// An answerError means that an answer of Redis does not have the expected form. It counts as an outage of Redis: a
// repeated call gets the true answer, unless Redis or a proxy always answers wrongly.
type answerError struct {
	reason   string
	notRedis bool // the answer is in no version of Redis's protocol
}

func (e *answerError) Error() string { return "redis: " + e.reason }

// InForm returns the error of a script's call, or an *answerError if the reply does not have the form want.
func InForm(reply any, err error, want ReplyForm) error {
	if err == nil && !want(reply) {
		return &answerError{reason: fmt.Sprintf("unexpected answer of a script: %.100q", fmt.Sprint(reply))}
	}
	return err
}

func Anything(any) bool { return true }

func IsText(v any) bool {
	_, ok := v.(string)
	return ok
}

func IsNumber(v any) bool {
	_, ok := v.(int64)
	return ok
}

// OrNil is the form of a value that may be missing.
func OrNil(form ReplyForm) ReplyForm { return func(v any) bool { return v == nil || form(v) } }

// ListOf is the form of a list with a number of elements from least to most.
func ListOf(least, most int, form ReplyForm) ReplyForm {
	return func(v any) bool {
		l, ok := v.([]any)
		if !ok || len(l) < least || len(l) > most {
			return false
		}
		for _, element := range l {
			if !form(element) {
				return false
			}
		}
		return true
	}
}

// ManyTexts is the form of a list of texts.
var ManyTexts = ListOf(0, math.MaxInt, IsText)

// Tuple is the form of a list with a form for each element.
func Tuple(forms ...ReplyForm) ReplyForm {
	return func(v any) bool {
		l, ok := v.([]any)
		if !ok || len(l) != len(forms) {
			return false
		}
		for i, element := range l {
			if !forms[i](element) {
				return false
			}
		}
		return true
	}
}

// LinesOf is the form of a text with a number of lines from least to most.
func LinesOf(least, most int) ReplyForm {
	return func(v any) bool {
		s, ok := v.(string)
		n := strings.Count(s, "\n") + 1
		return ok && least <= n && n <= most
	}
}

// Text, Number and List convert a value in a reply. They return the zero value if the value has another type.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

func Number(v any) int {
	n, _ := v.(int64)
	return int(n)
}

func List(v any) []any {
	l, _ := v.([]any)
	return l
}

// IDsOf returns the ids among the members of a list. It skips members that another program has added.
func IDsOf(members []string) []int64 {
	ids := make([]int64, 0, len(members))
	for _, m := range members {
		if id, err := strconv.ParseInt(m, 10, 64); err == nil && strconv.FormatInt(id, 10) == m {
			ids = append(ids, id)
		}
	}
	return ids
}

// SoundIDs returns the ids among the members of a sorted set, and removes the other members, which another program has
// written.
func (s *Conn) SoundIDs(ctx context.Context, key string, members ...string) ([]int64, error) {
	ids := IDsOf(members)
	if len(ids) == len(members) {
		return ids, nil
	}
	return ids, s.BestEffort(ctx, "remove invalid entries of "+key, func(p redis.Pipeliner) {
		for _, m := range members {
			if len(IDsOf([]string{m})) == 0 {
				p.ZRem(ctx, key, m)
			}
		}
	})
}

// Unique sorts ids and removes duplicates.
func Unique(ids []int64) []int64 {
	slices.Sort(ids)
	return slices.Compact(ids)
}
