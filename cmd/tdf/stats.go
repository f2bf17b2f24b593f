package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/stdtime"
)

func newStats(a *app) *cobra.Command {
	asJSON, prometheus, output := false, false, ""
	c := &cobra.Command{
		Use: "stats", Short: "Show the numbers by which a namespace is watched over",
		Long: "Shows tasks by state, what waits and for how long, server, workers and their slots, stored programs, and Redis's memory.\n" +
			"--prometheus writes them for Prometheus, such as by the textfile collector of node_exporter; --output replaces the\n" +
			"file at once, so that nobody reads half of it.",
		Example: "  tdf stats --prometheus --output /var/lib/node_exporter/tdf.prom",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if prometheus && asJSON {
				return usage("--prometheus and --json are two ways to write the same: choose one")
			}
			text, err := a.stats(c.Context(), asJSON, prometheus)
			switch {
			case err != nil:
				return err
			case output != "":
				return replaceFile(output, text)
			}
			_, err = a.stdout.Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "a JSON object")
	c.Flags().BoolVar(&prometheus, "prometheus", false, "in Prometheus's text format")
	c.Flags().StringVar(&output, "output", "", "replace this `FILE` instead of writing to stdout")
	return c
}

func (a *app) stats(ctx context.Context, asJSON, prometheus bool) ([]byte, error) {
	tool, err := a.tool()
	if err != nil {
		return nil, err
	}
	m, err := a.managerOf(ctx, tool)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s, err := m.admin().Stats(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case asJSON:
		text, err := marshal(s)
		return append(text, '\n'), err
	case prometheus:
		return exposition(tool.Manager.Namespace, &s)
	}
	var text bytes.Buffer
	err = (&app{stdout: &text, style: a.style}).statsSheet(&s)
	return text.Bytes(), err
}

func (a *app) statsSheet(s *admin.Stats) error {
	sheet := a.sheet("what", "is")
	for _, state := range tdf.States {
		sheet.row(string(state), count(s.Counts[state]))
	}
	sheet.row("done a second", rate(s.Rate))
	sheet.row("oldest open waits for", ago(stdtime.Seconds(s.Waited)))
	sheet.row("server is behind by", ago(stdtime.Seconds(s.DueLag)))
	sheet.row("server seen", seen(stdtime.TDF(s.At), stdtime.TDF(s.Server)))
	for _, state := range admin.WorkerStates() {
		sheet.row("workers "+state, strconv.Itoa(s.Workers[state]))
	}
	sheet.row("slots busy", fmt.Sprintf("%d of %d", s.Busy, s.Slots))
	sheet.row("stored programs", fmt.Sprintf("%d, %s", s.Programs, size(s.ProgramBytes)))
	sheet.row("memory of redis", memory(s.Memory))
	return sheet.write()
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func seen(now, at tdf.Time) string {
	if at == 0 {
		return "never"
	}
	return ago(now.Sub(at)) + " ago"
}

func memory(m admin.Memory) string {
	switch {
	case m.Used == 0:
		return "it does not say"
	case m.Limit == 0:
		return size(m.Used) + ", without a limit"
	}
	return fmt.Sprintf("%s of %s", size(m.Used), size(m.Limit))
}

// size writes a number of bytes as people do.
func size(bytes int64) string {
	const units = "kMGTPE"
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	f, unit := float64(bytes), -1
	for f >= 999.5 {
		f /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %cB", f, units[unit])
}

// exposition writes the numbers as gauges that are labelled with the namespace.
func exposition(namespace string, s *admin.Stats) ([]byte, error) {
	e := exporter{namespace: namespace}
	tasks := e.family("tdf_tasks", "Tasks by state.")
	for _, state := range tdf.States {
		e.add(tasks, float64(s.Counts[state]), "state", string(state))
	}
	workers := e.family("tdf_workers", "Workers by state; silent: their leases are over.")
	for _, state := range admin.WorkerStates() {
		e.add(workers, float64(s.Workers[state]), "state", state)
	}
	e.gauge("tdf_done_per_second", "Tasks done in a second, over the last minute.", s.Rate)
	e.gauge("tdf_oldest_open_wait_seconds", "Time since the oldest open task might have been claimed.", s.Waited.Seconds())
	e.gauge("tdf_due_lag_seconds", "Time since the server should have looked at a task.", s.DueLag.Seconds())
	e.gauge("tdf_server_seen_timestamp_seconds", "When a server was seen last, by Redis's clock; 0: never.", float64(stdtime.TDF(s.Server)))
	e.gauge("tdf_time_seconds", "When these numbers were read, by Redis's clock.", float64(stdtime.TDF(s.At)))
	e.gauge("tdf_slots", "Programs that the living workers can run at once.", float64(s.Slots))
	e.gauge("tdf_slots_busy", "Tasks that run.", float64(s.Busy))
	e.gauge("tdf_programs", "Programs that are stored in the namespace.", float64(s.Programs))
	e.gauge("tdf_program_bytes", "Size of these programs.", float64(s.ProgramBytes))
	if s.Memory.Used > 0 {
		e.gauge("tdf_redis_memory_used_bytes", "Memory that Redis uses, for all that it holds.", float64(s.Memory.Used))
		e.gauge("tdf_redis_memory_limit_bytes", "Redis's maxmemory; 0: none.", float64(s.Memory.Limit))
	}
	var text bytes.Buffer
	for _, family := range e.families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// An exporter collects gauges.
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

// replaceFile has a file be the old one or the new one, and never half of it.
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
