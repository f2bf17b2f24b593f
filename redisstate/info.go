package redisstate

import (
	"context"
	"strconv"
	"strings"
)

// Info is what a Redis says about itself; all of it is empty for the embedded one.
type Info map[string]string

// RunID is another one each time Redis starts.
func (i Info) RunID() string { return i["run_id"] }

func (i Info) major() int {
	n, _, _ := strings.Cut(i["redis_version"], ".")
	v, _ := strconv.Atoi(n)
	return v
}

// Info asks Redis about itself.
func (s *Store) Info(ctx context.Context, sections ...string) (Info, error) {
	info := Info{}
	err := s.untilAnswered(ctx, func(ctx context.Context) error {
		text, err := s.rdb.Info(ctx, append([]string{"server"}, sections...)...).Result()
		if err != nil && (strings.Contains(err.Error(), "is not supported") || strings.Contains(err.Error(), "wrong number of arguments")) {
			return nil // the embedded one
		}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[name] = value
			}
		}
		return err
	})
	return info, err
}
