package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/unixtime"
)

// Settings are the settings of a namespace. Redis holds them, so that all managers and workers obey the same settings
// (docs/operations.md, "Settings of a namespace").
type Settings struct {
	// MaxTasks is the largest number of stored tasks. More tasks are refused, except follow-ups. [NoLimit] means that
	// there is no limit.
	MaxTasks int64

	// HighWater is a part of Redis's maxmemory, above 0 and up to 1. While Redis uses more, new tasks wait before they
	// are opened. With 1, they do not wait: a full Redis refuses them.
	HighWater float64

	// OriginalWorkers means that workers of the original TDF work in the namespace. They then find no tasks whose
	// programs they cannot fetch.
	OriginalWorkers bool

	// RoundsOpen means that rounds may open tasks (docs/lifecycle.md, "Tasks that open tasks"). Without it, a round
	// that wants to open one fails.
	RoundsOpen bool
}

// NoLimit is the value of Settings.MaxTasks that means no limit.
const NoLimit = math.MaxInt64

// The names of the settings.
const (
	SettingMaxTasks        = "max_tasks"
	SettingHighWater       = "high_water"
	SettingOriginalWorkers = "original_workers"
	SettingRoundsOpen      = "rounds_open"
)

// SettingNames lists the names of all settings.
var SettingNames = []string{SettingMaxTasks, SettingHighWater, SettingOriginalWorkers, SettingRoundsOpen}

// DefaultSettings returns the settings of a new namespace.
func DefaultSettings() Settings { return Settings{MaxTasks: NoLimit, HighWater: 0.8, RoundsOpen: true} }

// Change sets one setting from a text. If the text is invalid, it changes nothing, and returns an error.
func (s *Settings) Change(name, value string) error {
	switch name {
	case SettingMaxTasks:
		n, err := parseMaxTasks(value)
		if err != nil {
			return err
		}
		s.MaxTasks = n
	case SettingHighWater:
		part, err := strconv.ParseFloat(value, 64)
		if err != nil || !unixtime.IsDecimal(value) || !(part > 0 && part <= 1) {
			return fmt.Errorf("invalid value %q for %s: want a number above 0 and up to 1", value, name)
		}
		s.HighWater = part
	case SettingOriginalWorkers, SettingRoundsOpen:
		if value != "yes" && value != "no" {
			return fmt.Errorf("invalid value %q for %s: want yes or no", value, name)
		}
		*s.choice(name) = value == "yes"
	default:
		return fmt.Errorf("unknown setting %q: want %s", name, strings.Join(SettingNames, ", "))
	}
	return nil
}

// choice returns the value of a setting that is yes or no.
func (s *Settings) choice(name string) *bool {
	if name == SettingRoundsOpen {
		return &s.RoundsOpen
	}
	return &s.OriginalWorkers
}

func parseMaxTasks(value string) (int64, error) {
	if value == "inf" {
		return NoLimit, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 || n > mostTasks {
		return 0, fmt.Errorf("invalid value %q for %s: want a number from 1 to %d, or inf", value, SettingMaxTasks,
			int64(mostTasks))
	}
	return n, nil
}

// mostTasks is the largest limit. It is the number of possible ids.
const mostTasks = 1<<40 - 1

// Value returns the value of a setting as a text.
func (s Settings) Value(name string) string {
	switch {
	case name == SettingHighWater:
		return strconv.FormatFloat(s.HighWater, 'f', -1, 64)
	case name != SettingMaxTasks && *s.choice(name):
		return "yes"
	case name != SettingMaxTasks:
		return "no"
	case s.MaxTasks == NoLimit:
		return "inf"
	}
	return strconv.FormatInt(s.MaxTasks, 10)
}

// Memory is the memory of Redis in bytes. It is zero if it is unknown.
type Memory struct {
	Used int64
	Max  int64 // Redis's maxmemory; 0 if there is no limit
}

func (m Memory) above(part float64) bool { return m.Max > 0 && float64(m.Used) > part*float64(m.Max) }

// OpensWait reports whether new tasks must wait until Redis uses less memory. Follow-ups do not wait.
func (s Settings) OpensWait(m Memory) bool { return s.HighWater < 1 && m.above(s.HighWater) }

// claimWater is a part of Redis's maxmemory. Above it, workers claim no tasks, so that running tasks can be finished.
const claimWater = 0.95

// ClaimsWait reports whether workers must wait until Redis uses less memory. They claim for at least as long as tasks
// are opened.
func (s Settings) ClaimsWait(m Memory) bool { return m.above(max(s.HighWater, claimWater)) }

// A TasksLimitError means that tasks were not opened, because the namespace would have more tasks than its setting
// max_tasks allows.
type TasksLimitError struct {
	Tasks    int64 // the number of tasks that there would be
	MaxTasks int64
}

func (e *TasksLimitError) Error() string {
	return fmt.Sprintf("with %d tasks, the namespace would exceed its setting max_tasks, which is %d; open fewer tasks, "+
		"remove finished tasks, open tasks with keep_finished and keep_archived, or raise max_tasks with tdf settings",
		e.Tasks, e.MaxTasks)
}

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*TasksLimitError) Code() Code { return CodeFull }

// namespaceParts are the words that can follow a namespace and a colon in a key (docs/redis.md). A namespace must not
// contain one of these words after a colon. For example, a key of the namespace P:group could equal a key of a group in
// the namespace P.
var namespaceParts = []string{
	"activity", "callback_leases", "calls", "claims", "counted", "dashboard_at", "definitions", "dependents", "follow",
	"group", "group_dependents", "heads", "held", "history", "limited", "login", "open", "passed", "program", "queue",
	"requirements_of", "returned", "serves", "sessions", "started", "starts", "task", "updates", "wake", "worker",
	"worker_id",
}

// CollidesWithKeys returns the word in the namespace that makes its keys collide with the keys of another namespace. It
// returns "" if no keys collide.
func CollidesWithKeys(namespace string) string {
	for _, part := range strings.Split(namespace, ":")[1:] {
		if slices.Contains(namespaceParts, part) {
			return part
		}
	}
	return ""
}

// InCluster returns how the keys of a namespace begin in a Redis Cluster, before the colon. All of them have the same
// hash tag, so that they are in the same slot: a namespace without a hash tag is put into braces. So two namespaces may
// have the same keys. Ok is false if the namespace begins with }, because its keys would have no hash tag.
func InCluster(namespace string) (beginning string, ok bool) {
	_, tag, _ := strings.Cut(namespace, "{")
	if strings.Index(tag, "}") > 0 {
		return namespace, true
	}
	return "{" + namespace + "}", !strings.HasPrefix(namespace, "}")
}
