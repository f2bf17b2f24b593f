package operate

import (
	"bytes"
	"os"
	"path/filepath"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
)

// exposition returns the metrics as gauges with the label namespace.
func exposition(namespace string, s *admin.Stats) ([]byte, error) {
	e := exporter{namespace: namespace}
	tasks := e.family("tdf_tasks", "Tasks by state.")
	for _, state := range tdf.States {
		e.add(tasks, float64(s.Counts[state]), "state", string(state))
	}
	workers := e.family("tdf_workers", "Workers by state. A silent worker has sent no heartbeat for the length of its lease.")
	for _, state := range admin.WorkerStates() {
		e.add(workers, float64(s.Workers[state]), "state", state)
	}
	queues := e.family("tdf_queue_open_tasks", "Open tasks by queue, also those that are not due yet.")
	for _, q := range s.Queues {
		e.add(queues, float64(q.Open), "queue", q.Queue)
	}
	e.gauge("tdf_waiting_tasks", "Open tasks that wait for other tasks.", float64(s.Waiting))
	e.gauge("tdf_done_per_second", "Tasks finished per second, over the last minute.", s.Rate)
	e.gauge("tdf_oldest_open_wait_seconds", "Time since the oldest open task could first be claimed.", s.Waited.Seconds())
	e.gauge("tdf_due_lag_seconds", "Time since the oldest due task became due.", s.DueLag.Seconds())
	e.gauge("tdf_server_seen_timestamp_seconds", "Time of the last heartbeat of a server, by Redis's clock; 0 if there was none.", float64(tdf.At(s.Server)))
	e.gauge("tdf_time_seconds", "Time of these metrics, by Redis's clock.", float64(tdf.At(s.At)))
	e.gauge("tdf_slots", "Slots of the workers that claim tasks.", float64(s.Slots))
	e.gauge("tdf_slots_busy", "Busy slots of the workers that claim tasks.", float64(s.Busy))
	e.gauge("tdf_programs", "Stored programs of the namespace.", float64(s.Programs))
	e.gauge("tdf_program_bytes", "Size of the stored programs.", float64(s.ProgramBytes))
	if s.Memory.Used > 0 {
		e.gauge("tdf_redis_memory_used_bytes", "Memory that Redis uses.", float64(s.Memory.Used))
		e.gauge("tdf_redis_memory_limit_bytes", "Redis's maxmemory; 0 means no limit.", float64(s.Memory.Limit))
	}
	var text bytes.Buffer
	for _, family := range e.families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// An exporter collects gauges to print.
type exporter struct {
	namespace string
	families  []*dto.MetricFamily
}

func (e *exporter) gauge(name, help string, value float64) { e.add(e.family(name, help), value) }

func (e *exporter) family(name, help string) *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
	e.families = append(e.families, f)
	return f
}

func (e *exporter) add(f *dto.MetricFamily, value float64, labels ...string) {
	labels = append([]string{"namespace", e.namespace}, labels...)
	m := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
	for i := 0; i < len(labels); i += 2 {
		m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: &labels[i+1]})
	}
	f.Metric = append(f.Metric, m)
}

// replaceFile replaces a file atomically: a reader sees either the old or the new content.
func replaceFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}
