package metrics

import (
	"cmp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/redisstate"
)

// A writer writes the metrics of a namespace.
type writer struct {
	to         chan<- prometheus.Metric
	namespace  string
	activities []redisstate.Activity
}

// desc returns the description of a metric. The names of its labels follow the label namespace.
func (w *writer) desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, prometheus.Labels{"namespace": w.namespace})
}

func (w *writer) gauge(name, help string, value float64) {
	w.add(w.desc(name, help), prometheus.GaugeValue, value)
}

func (w *writer) add(of *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
	w.send(prometheus.NewConstMetric(of, kind, value, labels...))
}

// send leaves out a metric with an invalid label, such as the queue of another program that is no UTF-8.
func (w *writer) send(m prometheus.Metric, err error) {
	if err == nil {
		w.to <- m
	}
}

// stats writes the present state of the namespace.
func (w *writer) stats(s *admin.Stats) {
	tasks := w.desc("tdf_tasks", "Tasks by state.", "state")
	for _, state := range tdf.States {
		w.add(tasks, prometheus.GaugeValue, float64(s.Counts[state]), string(state))
	}
	workers := w.desc("tdf_workers", "Workers by state. A silent worker has sent no heartbeat for the length of its lease.", "state")
	for _, state := range admin.WorkerStates() {
		w.add(workers, prometheus.GaugeValue, float64(s.Workers[state]), state)
	}
	w.queues(s)
	w.gauge("tdf_waiting_tasks", "Open tasks that wait for other tasks.", float64(s.Waiting))
	w.gauge("tdf_done_per_second", "Tasks finished per second, over the last minute.", s.Rate)
	w.gauge("tdf_oldest_open_wait_seconds", "Time since the oldest open task could first be claimed.", s.Waited.Seconds())
	w.gauge("tdf_due_lag_seconds", "Time since the oldest due task became due.", s.DueLag.Seconds())
	w.gauge("tdf_server_seen_timestamp_seconds", "Time of the last heartbeat of a server, by Redis's clock; 0 if there was none.", float64(tdf.At(s.Server)))
	w.gauge("tdf_time_seconds", "Time of these metrics, by Redis's clock.", float64(tdf.At(s.At)))
	w.gauge("tdf_slots", "Slots of the workers that claim tasks.", float64(s.Slots))
	w.gauge("tdf_slots_busy", "Busy slots of the workers that claim tasks.", float64(s.Busy))
	w.gauge("tdf_programs", "Stored programs of the namespace.", float64(s.Programs))
	w.gauge("tdf_program_bytes", "Size of the stored programs.", float64(s.ProgramBytes))
	if s.Memory.Used > 0 {
		w.gauge("tdf_redis_memory_used_bytes", "Memory that Redis uses.", float64(s.Memory.Used))
		w.gauge("tdf_redis_memory_limit_bytes", "Redis's maxmemory; 0 means no limit.", float64(s.Memory.Limit))
	}
}

// queues writes the numbers of tasks of the queues with the most open tasks, and of all other queues together.
func (w *writer) queues(s *admin.Stats) {
	open := w.desc("tdf_queue_open_tasks", "Open tasks by queue, also those that are not due yet.", "queue")
	oldest := w.desc("tdf_queue_oldest_wait_seconds", "Time for which the oldest open task of a queue could be claimed.", "queue")
	tasks := w.desc("tdf_queue_tasks", "Tasks by queue and state.", "queue", "state")
	own, others := redisstate.Busiest(s.Queues, mostQueues, func(q *admin.Queue) [2]int64 { return [2]int64{q.Open, q.Tasks.Unfinished()} })
	if len(others) > 0 {
		rest := admin.Queue{Queue: redisstate.OtherQueues, Tasks: tdf.Counts{}}
		for i := range others {
			q := &others[i]
			rest.Open, rest.Waited = rest.Open+q.Open, max(rest.Waited, q.Waited)
			for _, state := range tdf.States {
				rest.Tasks[state] += q.Tasks[state]
			}
		}
		own = append(own, rest)
	}
	for _, q := range own {
		w.add(open, prometheus.GaugeValue, float64(q.Open), q.Queue)
		w.add(oldest, prometheus.GaugeValue, q.Waited.Seconds(), q.Queue)
		for _, state := range tdf.States {
			w.add(tasks, prometheus.GaugeValue, float64(q.Tasks[state]), q.Queue, string(state))
		}
	}
}

// counts writes what the namespace has counted.
func (w *writer) counts() {
	transitions := w.desc("tdf_transitions_total", "Transitions of tasks, by the state to which they led.", "queue", "transition", "to")
	spans := map[string]*prometheus.Desc{
		redisstate.CountWait: w.desc("tdf_wait_seconds", "Time from the moment when a task could first be claimed to its first claim.", "queue"),
		redisstate.CountRun:  w.desc("tdf_run_seconds", "Run time of programs and handlers.", "queue"),
		redisstate.CountLife: w.desc("tdf_life_seconds", "Time from the opening of a task to its end.", "queue"),
	}
	finds := map[string]int64{}
	for _, kind := range redisstate.FindKinds { // Prometheus sees the first find only if it has seen a 0 before
		finds[kind] = 0
	}
	for i := range w.activities {
		a := &w.activities[i]
		for name, n := range a.Counts {
			if kind, ok := strings.CutPrefix(name, redisstate.CountFind); ok {
				finds[kind] += n
			}
		}
		a.Transitions(func(verb tdf.Verb, to tdf.State, n int64) {
			w.add(transitions, prometheus.CounterValue, float64(n), a.Queue, string(verb), cmp.Or(string(to), "removed"))
		})
		for kind, of := range spans {
			upTo, sum := a.Spans(kind)
			w.histogram(of, upTo, sum, a.Queue)
		}
	}
	found := w.desc("tdf_audit_finds_total", "Inconsistent tasks that were found and repaired, by the kind of inconsistency.", "kind")
	for kind, n := range finds {
		w.add(found, prometheus.CounterValue, float64(n), kind)
	}
}

func (w *writer) histogram(of *prometheus.Desc, upTo map[tdf.Seconds]int64, sum tdf.Seconds, queue string) {
	buckets := map[float64]uint64{}
	for bound, n := range upTo {
		if bound < tdf.Forever {
			buckets[float64(bound)] = uint64(n)
		}
	}
	w.send(prometheus.NewConstHistogram(of, uint64(upTo[tdf.Forever]), float64(sum), buckets, queue))
}
