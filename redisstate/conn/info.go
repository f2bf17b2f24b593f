package conn

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
)

// Info is the answer of Redis to INFO. The embedded Redis reports only its run id.
type Info map[string]string

// RunID returns Redis's run id, which changes each time Redis starts. It returns "" if Redis does not report a run id.
func (i Info) RunID() string { return i["run_id"] }

// inCluster reports whether Redis, or Valkey, is a node of a cluster.
func (i Info) inCluster() bool { return i["redis_mode"] == "cluster" || i["server_mode"] == "cluster" }

func (i Info) major() int {
	n, _, _ := strings.Cut(i["redis_version"], ".")
	v, _ := strconv.Atoi(n)
	return v
}

// Info returns Redis's information about the server, and the given additional sections of INFO.
func (s *Conn) Info(ctx context.Context, sections ...string) (info Info, err error) {
	err = s.UntilAnswered(ctx, func(ctx context.Context) (err error) {
		info, err = s.info(ctx, sections...)
		return err
	})
	return info, err
}

func (s *Conn) info(ctx context.Context, sections ...string) (Info, error) {
	return infoOf(ctx, s.Redis, sections...)
}

func infoOf(ctx context.Context, r redis.Cmdable, sections ...string) (Info, error) {
	text, err := r.Info(ctx, append([]string{"server"}, sections...)...).Result()
	if err != nil && NoSections(err) {
		return Info{}, nil
	}
	return ParseInfo(text), err
}

// NoSections reports whether the embedded Redis has refused INFO, because it does not know the section.
func NoSections(err error) bool {
	return strings.Contains(err.Error(), "is not supported") || strings.Contains(err.Error(),
		"wrong number of arguments")
}

func ParseInfo(text string) Info {
	info := Info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// Memory returns the memory that Redis compares with its maxmemory.
func (i Info) Memory() task.Memory {
	return task.Memory{Used: i.Number("used_memory") - i.Number("mem_not_counted_for_evict"), Max: i.Number("maxmemory")}
}

// Number returns a number of the answer, or 0 if there is none.
func (i Info) Number(name string) int64 {
	n, _ := strconv.ParseInt(i[name], 10, 64)
	return n
}
