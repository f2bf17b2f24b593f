package taskmaster

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/tdf-framework/tdf/internal/metrics"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

// shownQueues is the number of queues with metrics of their own at /actuator/prometheus. All others share the name
// "other".
const shownQueues = 200

// A meter is a metric of Taskmaster: a counter of transitions, or a timer.
type meter struct {
	help   string
	counts []transition // of a counter
	spans  string       // the kind of a timer's spans
	plain  string       // a count of another kind
	tags   []string     // the keys of its tags
}

// A transition is what a counter counts. Its reason is a tag.
type transition struct {
	verb   rules.Verb
	to     task.State
	reason string
}

var (
	byQueue  = []string{"queue"}
	byReason = []string{"queue", "reason"}
)

// meters are the metrics of Taskmaster that TDF counts.
var meters = map[string]meter{
	"tasks.submitted": {help: "Tasks submitted.", tags: byQueue, counts: []transition{{rules.VerbOpen, task.Open, ""}}},
	"tasks.claimed": {
		help: "Tasks claimed by workers.", tags: byQueue,
		counts: []transition{{rules.VerbClaim, task.Running, ""}},
	},
	"tasks.completed": {
		help: "Tasks completed successfully.", tags: byQueue,
		counts: []transition{{rules.VerbSucceed, task.Succeeded, ""}},
	},
	"tasks.failed": {help: "Failures of tasks.", tags: byQueue, counts: []transition{
		{rules.VerbFail, task.Open, ""},
		{rules.VerbFail, task.Failed, ""},
	}},
	"tasks.dead_lettered": {help: "Tasks that are dead.", tags: byReason, counts: []transition{
		{rules.VerbFail, task.Failed, "exhausted"},
		{rules.VerbTimeOut, task.TimedOut, "exhausted"},
		{rules.VerbLose, task.Failed, "worker_dead"},
		{rules.VerbExpire, task.Expired, "deadline"},
	}},
	"tasks.requeued": {help: "Tasks that wait for another attempt.", tags: byReason, counts: []transition{
		{rules.VerbFail, task.Open, "failure"},
		{rules.VerbTimeOut, task.Open, "timeout"},
		{rules.VerbLose, task.Open, "worker_dead"},
	}},
	"tasks.cleaned": {
		help: "Finished tasks that were removed.", tags: byQueue,
		counts: []transition{{rules.VerbRemove, task.None, ""}},
	},
	"workers.registered": {help: "Registrations of workers.", tags: byQueue, plain: counts.CountRegistered},
	"workers.died":       {help: "Workers that are dead.", tags: byQueue, plain: counts.CountDied},
	"workers.cleaned": {
		help: "Dead workers that were forgotten.", tags: byQueue,
		plain: counts.CountForgotten,
	},
	"tasks.queue.wait": {help: "Time from submission to claim.", tags: byQueue, spans: counts.CountWait},
	"tasks.execution.duration": {
		help: "Time from claim to completion or failure.", tags: byQueue,
		spans: counts.CountRun,
	},
	"tasks.end_to_end.duration": {
		help: "Time from submission to the final state.", tags: byQueue,
		spans: counts.CountLife,
	},
}

// A sample is a value of a meter for one queue and reason.
type sample struct {
	tags  map[string]string
	count int64
	sum   task.Seconds // of a timer
}

// samples returns the values of a meter.
func (m *meter) samples(activities []counts.Activity) (all []sample) {
	for i := range activities {
		a := &activities[i]
		add := func(reason string, count int64, sum task.Seconds) {
			tags := map[string]string{"queue": a.Queue, "reason": reason}
			maps.DeleteFunc(tags, func(key, _ string) bool { return !slices.Contains(m.tags, key) })
			if count > 0 {
				all = append(all, sample{tags, count, sum})
			}
		}
		if m.spans != "" {
			upTo, sum := a.Spans(m.spans)
			add("", int64(upTo[len(upTo)-1]), sum)
			continue
		}
		byReason := map[string]int64{"": a.Counts[m.plain]}
		a.Transitions(func(verb rules.Verb, to task.State, n int64) {
			for _, t := range m.counts {
				if t.verb == verb && t.to == to {
					byReason[t.reason] += n
				}
			}
		})
		for _, reason := range slices.Sorted(maps.Keys(byReason)) {
			add(reason, byReason[reason], 0)
		}
	}
	return all
}

// activities returns the counts of the busiest queues. Before, it counts the workers that have died since the last
// reading: nothing happens in Redis when a worker dies.
func (a *app) activities(ctx context.Context, most int) ([]counts.Activity, error) {
	now, err := a.store.Now(ctx)
	if err != nil {
		return nil, err
	}
	a.counting.Lock()
	defer a.counting.Unlock()
	silent := now.Add(-task.For(a.Dead))
	if err := a.store.Presence.CountDead(ctx, a.counted, silent, isOurs); err != nil {
		return nil, err
	}
	a.counted = silent
	return a.store.Counters.Activity(ctx, &counts.ActivityCounter{}, most)
}

// prometheus answers with all metrics in the text format of Prometheus.
func (a *app) prometheus(ctx context.Context, _ *wire.Call) (*wire.Answer, error) {
	activities, err := a.activities(ctx, shownQueues)
	if err != nil {
		return nil, err
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collector(activities))
	text, err := metrics.Text(r)
	if err != nil {
		return nil, err
	}
	return &wire.Answer{Status: http.StatusOK, Type: string(expfmt.NewFormat(expfmt.TypeTextPlain)), Body: text}, nil
}

// A collector collects the metrics from counts.
type collector []counts.Activity

// Describe sends nothing, because the queues are known only when the metrics are read.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics, with the names that Micrometer gives to them.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for name, m := range meters {
		for _, s := range m.samples(c) {
			values := make([]string, len(m.tags))
			for i, key := range m.tags {
				values[i] = s.tags[key]
			}
			text := strings.ReplaceAll(name, ".", "_")
			var metric prometheus.Metric
			var err error
			if m.spans != "" {
				metric, err = prometheus.NewConstSummary(prometheus.NewDesc(text+"_seconds", m.help, m.tags, nil),
					uint64(s.count), float64(s.sum), nil, values...)
			} else {
				metric, err = prometheus.NewConstMetric(prometheus.NewDesc(text+"_total", m.help, m.tags, nil),
					prometheus.CounterValue, float64(s.count), values...)
			}
			if err == nil { // a queue of another program may be no UTF-8
				to <- metric
			}
		}
	}
}

// metricNames answers with the names of the metrics.
func (a *app) metricNames(context.Context, *wire.Call) (*wire.Answer, error) {
	return wire.JSON(http.StatusOK, map[string][]string{"names": slices.Sorted(maps.Keys(meters))})
}

// metricView is a metric as Spring's Actuator shows it.
type metricView struct {
	Name          string         `json:"name"`
	Description   string         `json:"description"`
	BaseUnit      string         `json:"baseUnit,omitempty"`
	Measurements  []measurement  `json:"measurements"`
	AvailableTags []availableTag `json:"availableTags"`
}

type measurement struct {
	Statistic string  `json:"statistic"`
	Value     float64 `json:"value"`
}

type availableTag struct {
	Tag    string   `json:"tag"`
	Values []string `json:"values"`
}

// metric answers with the sum of a metric, over all values of the tags that the call does not name.
func (a *app) metric(ctx context.Context, c *wire.Call) (*wire.Answer, error) {
	name := c.PathValue("name")
	m, known := meters[name]
	if !known {
		return nil, task.NewError(task.CodeNotFound, "there is no such metric")
	}
	activities, err := a.activities(ctx, mostQueues)
	if err != nil {
		return nil, err
	}
	all := m.samples(activities)
	for _, text := range c.URL.Query()["tag"] {
		key, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, wire.Invalid("tag: want KEY:VALUE")
		}
		all = slices.DeleteFunc(all, func(s sample) bool { return s.tags[key] != value })
	}
	v := metricView{Name: name, Description: m.help, AvailableTags: []availableTag{}}
	var count int64
	var sum task.Seconds
	for _, s := range all {
		count, sum = count+s.count, sum+s.sum
	}
	v.Measurements = []measurement{{"COUNT", float64(count)}}
	if m.spans != "" {
		v.BaseUnit, v.Measurements = "seconds", append(v.Measurements, measurement{"TOTAL_TIME", float64(sum)})
	}
	for _, key := range m.tags {
		values := map[string]bool{}
		for _, s := range all {
			values[s.tags[key]] = true
		}
		v.AvailableTags = append(v.AvailableTags, availableTag{key, slices.AppendSeq([]string{}, maps.Keys(values))})
		slices.Sort(v.AvailableTags[len(v.AvailableTags)-1].Values)
	}
	return wire.JSON(http.StatusOK, v)
}
