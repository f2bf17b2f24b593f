package conn

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A Tuning is a setting of Redis for which TDF ships another value than Redis's default (docs/operations.md, "Redis").
type Tuning struct {
	Name  string
	Value int64  // the shipped value
	Found string // the value of a Redis, if [Conn.Untuned] returned the Tuning
	Costs string // what the default costs

	larger bool // larger values than Value are as good; otherwise smaller ones are
}

// Tunings returns all tunings.
//
//   - With the first, Redis keeps a task with a short input in its compact encoding, although the log of the task is
//     longer than 64 bytes, the default of the setting.
//   - With the second, the lists of running and due tasks leave the compact encoding early. In this encoding, Redis
//     parses the scores of all members to insert one.
func Tunings() []Tuning {
	return []Tuning{
		{Name: "hash-max-listpack-value", Value: 1024, larger: true, Costs: "about twice as much memory for each task"},
		{Name: "zset-max-listpack-entries", Value: 32, Costs: "up to a sixth more CPU time of Redis for each task"},
	}
}

// fits reports whether value is as good as the shipped one. A text that is no number fits, because the setting is
// unknown then.
func (t Tuning) fits(value string) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	return err != nil || n == t.Value || n > t.Value == t.larger
}

// Untuned returns the tunings that Redis lacks. If Redis does not know a setting, or refuses to show it, the tuning is
// not among them.
func (s *Conn) Untuned(ctx context.Context) ([]Tuning, error) {
	var lacks []Tuning
	for _, t := range Tunings() {
		value, err := s.setting(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		if !t.fits(value) {
			t.Found = value
			lacks = append(lacks, t)
		}
	}
	return lacks, nil
}

// setting returns the value of a setting of Redis. It returns "" if Redis has no such setting, or refuses to tell its
// value: the user may have no right to CONFIG GET, and the embedded Redis does not know the command.
func (s *Conn) setting(ctx context.Context, name string) (string, error) {
	var reply *redis.MapStringStringCmd
	err := s.Pipeline(ctx, "read the setting "+name, func(p redis.Pipeliner) { reply = p.ConfigGet(ctx, name) })
	if err != nil && (LacksRights(err) || strings.Contains(err.Error(), "unknown command") ||
		strings.Contains(err.Error(), "unknown subcommand")) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return reply.Val()[name], nil
}
