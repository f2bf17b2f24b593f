package metrics

import (
	"cmp"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// A writer writes the metrics of a namespace. It makes them as the library of Prometheus sends them, because the
// registry of this library takes longer to make and check the thousands of metrics than Redis to count the tasks.
type writer struct {
	families   []*dto.MetricFamily
	namespace  string
	activities []counts.Activity
}

// A family has the metrics of one name, each of which has the same labels.
type family struct {
	*dto.MetricFamily
	labels    []string // their names; the first one is namespace
	namespace string
}

// family begins the metrics of a name.
func (w *writer) family(kind dto.MetricType, name, help string, labels ...string) *family {
	f := &family{
		&dto.MetricFamily{Name: &name, Help: &help, Type: &kind}, append([]string{"namespace"}, labels...),
		w.namespace,
	}
	w.families = append(w.families, f.MetricFamily)
	return f
}

func (w *writer) gauge(name, help string, value float64) {
	w.family(dto.MetricType_GAUGE, name, help).add(value)
}

// add adds a metric with the values of its labels.
func (f *family) add(value float64, labels ...string) {
	if f.GetType() == dto.MetricType_COUNTER {
		f.send(&dto.Metric{Counter: &dto.Counter{Value: &value}}, labels)
	} else {
		f.send(&dto.Metric{Gauge: &dto.Gauge{Value: &value}}, labels)
	}
}

// send leaves out a metric with an invalid label, such as the queue of another program that is no UTF-8.
func (f *family) send(m *dto.Metric, labels []string) {
	values := append([]string{f.namespace}, labels...)
	m.Label = make([]*dto.LabelPair, len(values))
	for i := range values {
		if !utf8.ValidString(values[i]) {
			return
		}
		m.Label[i] = &dto.LabelPair{Name: &f.labels[i], Value: &values[i]}
	}
	f.Metric = append(f.Metric, m)
}

// stats writes the present state of the namespace.
func (w *writer) stats(s *admin.Stats) {
	tasks := w.family(dto.MetricType_GAUGE, "tdf_tasks", "Tasks by state.", "state")
	for _, state := range task.States {
		tasks.add(float64(s.Counts[state]), string(state))
	}
	workers := w.family(dto.MetricType_GAUGE, "tdf_workers",
		"Workers by state. A silent worker has sent no heartbeat for the length of its lease.", "state")
	for _, state := range admin.WorkerStates() {
		workers.add(float64(s.Workers[state]), state)
	}
	w.queues(s)
	w.gauge("tdf_waiting_tasks", "Open tasks that wait for other tasks.", float64(s.Waiting))
	w.gauge("tdf_done_per_second", "Tasks finished per second, over the last minute.", s.Rate)
	w.gauge("tdf_oldest_open_wait_seconds", "Time since the oldest open task could first be claimed.",
		s.Waited.Seconds())
	w.gauge("tdf_due_lag_seconds", "Time since the oldest due task became due.", s.DueLag.Seconds())
	w.gauge("tdf_server_seen_timestamp_seconds",
		"Time of the last heartbeat of a server, by Redis's clock; 0 if there was none.", float64(task.At(s.Server)))
	w.gauge("tdf_time_seconds", "Time of these metrics, by Redis's clock.", float64(task.At(s.At)))
	w.gauge("tdf_slots", "Slots of the workers that claim tasks.", float64(s.Slots))
	w.gauge("tdf_slots_busy", "Busy slots of the workers that claim tasks.", float64(s.Busy))
	w.gauge("tdf_programs", "Stored programs of the namespace.", float64(s.Programs))
	w.gauge("tdf_program_bytes", "Size of the stored programs.", float64(s.ProgramBytes))
	w.gauge("tdf_callbacks_failed", "Callbacks that have failed for good.", float64(s.CallbacksFailed))
	if s.Memory.Used > 0 {
		w.gauge("tdf_redis_memory_used_bytes", "Memory that Redis uses.", float64(s.Memory.Used))
		w.gauge("tdf_redis_memory_limit_bytes", "Redis's maxmemory; 0 means no limit.", float64(s.Memory.Limit))
		w.family(dto.MetricType_GAUGE, "tdf_redis_info", "Always 1; the label is the run id of the primary.", "run_id").
			add(1, s.Replication.RunID)
		w.gauge("tdf_redis_replicas", "Replicas of the primary.", float64(len(s.Replication.Replicas)))
		w.gauge("tdf_redis_replicas_wanted", "Replicas that must confirm each write ([redis] replicas).",
			float64(s.Replication.Wanted))
		w.gauge("tdf_redis_sentinels", "Sentinels that exist.", float64(s.Replication.Sentinels))
		w.gauge("tdf_redis_sentinels_up", "Sentinels that work. They need a majority to replace the primary.",
			float64(s.Replication.SentinelsUp))
		w.gauge("tdf_redis_replica_lag_seconds", "Time since the last message of the replica that lags most.",
			float64(s.Replication.Lag()))
	}
}

// queues writes the numbers of tasks of the queues with the most open tasks, and of all other queues together.
func (w *writer) queues(s *admin.Stats) {
	open := w.family(dto.MetricType_GAUGE, "tdf_queue_open_tasks",
		"Open tasks by queue that workers may claim now.", "queue")
	oldest := w.family(dto.MetricType_GAUGE, "tdf_queue_oldest_wait_seconds",
		"Longest time for which the next task of a requirement of the queue could be claimed.", "queue")
	tasks := w.family(dto.MetricType_GAUGE, "tdf_queue_tasks", "Tasks by queue and state.", "queue", "state")
	own, others := counts.Busiest(s.Queues, mostQueues, func(q *admin.Queue) [2]int64 {
		if q.Queue == counts.OtherQueues {
			return [2]int64{-1} // so that no other queue has its label
		}
		return [2]int64{q.Open, q.Tasks.Unfinished()}
	})
	if len(others) > 0 {
		rest := admin.Queue{Queue: counts.OtherQueues, Tasks: task.Counts{}}
		for i := range others {
			q := &others[i]
			rest.Open, rest.Waited = rest.Open+q.Open, max(rest.Waited, q.Waited)
			for _, state := range task.States {
				rest.Tasks[state] += q.Tasks[state]
			}
		}
		own = append(own, rest)
	}
	for _, q := range own {
		open.add(float64(q.Open), q.Queue)
		oldest.add(q.Waited.Seconds(), q.Queue)
		for _, state := range task.States {
			tasks.add(float64(q.Tasks[state]), q.Queue, string(state))
		}
	}
}

// counts writes what the namespace has counted.
func (w *writer) counts() {
	transitions := w.family(dto.MetricType_COUNTER, "tdf_transitions_total",
		"Transitions of tasks, by the state to which they led.", "queue", "to", "transition")
	spans := map[string]*family{
		counts.CountWait: w.family(dto.MetricType_HISTOGRAM, "tdf_wait_seconds",
			"Time from the moment when a task could first be claimed to its first claim.", "queue"),
		counts.CountRun: w.family(dto.MetricType_HISTOGRAM, "tdf_run_seconds",
			"Run time of programs and handlers.", "queue"),
		counts.CountLife: w.family(dto.MetricType_HISTOGRAM, "tdf_life_seconds",
			"Time from the opening of a task to its end.", "queue"),
	}
	finds := map[string]int64{}
	for _, kind := range redisstate.FindKinds { // Prometheus sees the first find only if it has seen a 0 before
		finds[kind] = 0
	}
	for i := range w.activities {
		a := &w.activities[i]
		for name, n := range a.Counts {
			if kind, ok := strings.CutPrefix(name, counts.CountFind); ok {
				finds[kind] += n
			}
		}
		a.Transitions(func(verb rules.Verb, to task.State, n int64) {
			transitions.add(float64(n), a.Queue, cmp.Or(string(to), "removed"), string(verb))
		})
		for kind, of := range spans {
			of.histogram(a, kind)
		}
	}
	found := w.family(dto.MetricType_COUNTER, "tdf_audit_finds_total",
		"Inconsistent tasks that were found and repaired, by the kind of inconsistency.", "kind")
	for kind, n := range finds {
		found.add(float64(n), kind)
	}
}

// histogram adds the histogram of a queue's spans.
func (f *family) histogram(a *counts.Activity, kind string) {
	upTo, sum := a.Spans(kind)
	h := &dto.Histogram{SampleCount: &upTo[len(bounds)], SampleSum: (*float64)(&sum)}
	for i := range bounds {
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: &upTo[i]})
	}
	f.send(&dto.Metric{Histogram: h}, []string{a.Queue})
}

// bounds are the upper bounds of the histograms.
var bounds = func() (all []float64) {
	for _, bound := range counts.SpanBounds() {
		if bound < task.Forever {
			all = append(all, float64(bound))
		}
	}
	return all
}()
