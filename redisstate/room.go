package redisstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
)

// A room holds what this client last read about the room for more tasks: the settings of the namespace, and the memory
// of Redis. Calls that open or claim tasks use these values, so that they need no command of their own.
type room struct {
	reading chan struct{} // holds an element while a goroutine reads

	mu       sync.Mutex
	settings task.Settings
	memory   task.Memory
	read     time.Time
	clock    func() time.Time
	logged   map[roomWait]bool // the waits that the log has reported
	sample   sample
}

type roomWait int

const (
	opensWait roomWait = iota
	claimsWait
)

// The values in a room are at most this old when tasks are opened or claimed. A claim may use older values, because
// many workers claim at the same time. While claims wait, their values are as fresh as those of opens. If Redis has no
// maxmemory, claims never wait, whatever the settings are.
const (
	roomForOpens     = time.Second
	roomForClaims    = 5 * time.Second
	roomWithoutLimit = 30 * time.Second
)

// RoomPause is how long a client that waits for memory waits before it reads Redis's memory again.
const RoomPause = time.Second

// Room reads the settings of the namespace and the memory of Redis. A setting with an invalid value has its default,
// and invalid then says why. If Redis does not report its memory, the Memory is zero. The embedded Redis does not
// report it.
func (s *Store) Room(ctx context.Context) (settings task.Settings, invalid error, m task.Memory, err error) {
	var values []any
	var info conn.Info
	err = s.Conn.UntilAnswered(ctx, func(ctx context.Context) error {
		p := s.Conn.Redis.Pipeline()
		named, memory := p.HMGet(ctx, s.Keys.Settings(), task.SettingNames...), p.Info(ctx, "memory")
		conn.Exec(ctx, p)
		values = named.Val()
		if err := named.Err(); err != nil && !conn.IsWrongType(err) {
			return err
		}
		text, err := memory.Result()
		if err != nil && (conn.LacksRights(err) || conn.NoSections(err)) {
			return nil
		}
		info = conn.ParseInfo(text)
		return err
	})
	if err != nil {
		return settings, nil, m, fmt.Errorf("read the settings of the namespace: redis: %w", err)
	}
	settings = task.DefaultSettings()
	for i, v := range values {
		if v != nil {
			invalid = errors.Join(invalid, settings.Change(task.SettingNames[i], conn.Text(v)))
		}
	}
	return settings, invalid, info.Memory(), nil
}

// ErrRoundsOpenNothing means that the rounds of the namespace may open no tasks.
var ErrRoundsOpenNothing = task.NewError(task.CodeForbidden, "the setting "+task.SettingRoundsOpen+
	" of the namespace is no")

// RoundsOpen returns [ErrRoundsOpenNothing] if rounds may open no tasks.
func (s *Store) RoundsOpen(ctx context.Context) error {
	settings, _, err := s.known(ctx, roomForOpens)
	if err == nil && !settings.RoundsOpen {
		return ErrRoundsOpenNothing
	}
	return err
}

// ChangeSetting changes a setting of the namespace. This client obeys the new value at once, and all others within some
// seconds.
func (s *Store) ChangeSetting(ctx context.Context, name, value string) error {
	settings := task.DefaultSettings()
	if err := settings.Change(name, value); err != nil {
		return err
	}
	err := s.Conn.Write(ctx, "change the setting "+name, func(p redis.Pipeliner) {
		p.HSet(ctx, s.Keys.Settings(), name, settings.Value(name))
	})
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.read = time.Time{}
	return err
}

// known returns the values of the room. It reads them again if they are older than the given time.
func (s *Store) known(ctx context.Context, age time.Duration) (task.Settings, task.Memory, error) {
	r := &s.room
	if settings, m, fresh := r.get(age); fresh {
		return settings, m, nil
	}
	select {
	case r.reading <- struct{}{}:
		defer func() { <-r.reading }()
	case <-ctx.Done():
		return task.Settings{}, task.Memory{}, context.Cause(ctx)
	}
	if settings, m, fresh := r.get(age); fresh { // another goroutine read the values meanwhile
		return settings, m, nil
	}
	settings, _, m, err := s.Room(ctx)
	if err != nil {
		return settings, m, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings, r.memory, r.read = settings, m, r.clock()
	return settings, m, nil
}

func (r *room) get(age time.Duration) (settings task.Settings, m task.Memory, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.logged[claimsWait]:
		age = min(age, roomForOpens)
	case r.memory.Max == 0 && age == roomForClaims:
		age = roomWithoutLimit
	}
	return r.settings, r.memory, !r.read.IsZero() && r.clock().Sub(r.read) < age
}

// changed records whether clients wait, and reports whether the log must say so.
func (r *room) changed(w roomWait, waits bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.logged[w]
	r.logged[w] = waits
	return before != waits
}

// maxTasks waits until new tasks may be opened. It then returns the largest number of tasks, for the scripts that open
// tasks; "" means that there is no limit. If wait is false, maxTasks does not wait, but returns [ErrNoRoom]. It does
// not wait for an [Opener] either: its error says why.
func (s *Store) maxTasks(ctx context.Context, wait bool) (string, error) {
	for {
		settings, m, err := s.known(ctx, roomForOpens)
		if err != nil {
			return "", err
		}
		waits := settings.OpensWait(m)
		if s.room.changed(opensWait, waits) {
			s.logRoom(waits, m, func() {
				s.Conn.Log.Warn("new tasks wait, because redis uses too much of its maxmemory", "used", m.Used, "maxmemory",
					m.Max, "high_water", settings.HighWater, "remedy",
					"remove finished tasks, open tasks with keep_finished and keep_archived, or raise maxmemory")
			})
		}
		opener := openerOf(ctx)
		why := fmt.Sprintf("redis uses %d of %d bytes (maxmemory), and new tasks wait above %s", m.Used, m.Max,
			settings.Value(task.SettingHighWater))
		switch {
		case !waits && opener != nil:
			return limitText(settings), s.CheckShare(ctx, opener.Owner)
		case !waits:
			return limitText(settings), nil
		case opener != nil:
			return "", task.NewError(task.CodeFull, why+" (high_water); remove finished tasks, or raise maxmemory")
		case !wait:
			return "", ErrNoRoom
		case !conn.Sleep(ctx, RoomPause):
			return "", fmt.Errorf("%s: %w", why, context.Cause(ctx))
		}
	}
}

// CheckRoom returns [ErrNoRoom] while new tasks must wait. For an [Opener], its error says why.
func (s *Store) CheckRoom(ctx context.Context) error {
	_, err := s.maxTasks(ctx, false)
	return err
}

func limitText(settings task.Settings) string {
	if settings.MaxTasks == task.NoLimit {
		return ""
	}
	return settings.Value(task.SettingMaxTasks)
}

// claimsMustWait reports whether claims must wait until Redis uses less memory. If Redis's memory cannot be read, they
// need not wait: Redis refuses them if it is full.
func (s *Store) claimsMustWait(ctx context.Context) bool {
	settings, m, err := s.known(ctx, roomForClaims)
	if err != nil {
		return false
	}
	waits := settings.ClaimsWait(m)
	if s.room.changed(claimsWait, waits) {
		s.logRoom(waits, m, func() {
			s.Conn.Log.Warn("claims wait, because redis uses nearly all of its maxmemory", "used", m.Used, "maxmemory",
				m.Max, "remedy", "remove finished tasks, or raise maxmemory")
		})
	}
	return waits
}

func (s *Store) logRoom(waits bool, m task.Memory, warn func()) {
	if waits {
		warn()
		return
	}
	s.Conn.Log.Info("redis has enough memory again", "used", m.Used, "maxmemory", m.Max)
}

// countedLists returns the lists whose tasks count for max_tasks, if there is a limit.
func (s *Store) countedLists(maxTasks string) []string {
	if maxTasks == "" {
		return nil
	}
	return s.Keys.Lists()
}

// The bounds of the script (places.lua): of all requirements with due tasks, and of those of one submitter.
const (
	mostRequirements = 10_000
	mostOfOne        = mostRequirements / 4
)

// tooManyRequirements returns the error if a task needs one requirement too many. The owner is a submitter whose tasks
// have too many, or "" if the namespace has too many.
func tooManyRequirements(owner, name string) error {
	have := fmt.Sprintf("the due tasks have %d requirements", mostRequirements)
	if owner != "" {
		have = fmt.Sprintf("the tasks of %s have %d requirements, a quarter of those of the namespace", owner, mostOfOne)
	}
	return task.NewError(task.CodeTooManyRequirements, fmt.Sprintf("%s, so there cannot be another one, %s; make the "+
		"queues, tags, resources, min_time or handlers of the tasks coarser, such as memory in steps of gigabytes",
		have, name))
}

// parseTooMany parses '^tasks limit', the answer of a script that opens no tasks because of max_tasks.
func parseTooMany(line string) error {
	e := &task.TasksLimitError{}
	fmt.Sscan(strings.TrimPrefix(line, "^"), &e.Tasks, &e.MaxTasks)
	return e
}
