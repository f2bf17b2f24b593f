package deploytest

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// promtool accepts the configuration, and the alerts fire as their tests say.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "config", "--syntax-only", "prometheus.yml"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"},
	} {
		command(t, filepath.Join(root, "deploy", "prometheus"), "promtool", args...)
	}
}

var (
	alertOf = regexp.MustCompile(`(?m)^      - alert: (\w+)\n        expr: (.+)\n`)
	rowOf   = regexp.MustCompile("(?m)^\\| `(TDF\\w+)` \\| .+ \\| `(.+)` \\|$")
	metric  = regexp.MustCompile(`\btdf_[a-z_]+`)
)

// The page lists exactly the alerts of the file, and each has a test in which it fires and one in which it does not.
func TestAlertsOfThePage(t *testing.T) {
	t.Parallel()
	alerts := alertOf.FindAllStringSubmatch(read(t, filepath.Join(root, "deploy/prometheus/alerts.yml")), -1)
	rows := rowOf.FindAllStringSubmatch(read(t, filepath.Join(root, "docs/metrics.md")), -1)
	expect.MustLen(t, rows, len(alerts))
	expect.MustTrue(t, len(alerts) > 8, alerts)
	tests := read(t, filepath.Join(root, "deploy/prometheus/alerts_test.yml"))
	for i, alert := range alerts {
		expect.Equal(t, rows[i][1:], []string{alert[1], strings.ReplaceAll(alert[2], "|", `\|`)})
		cases := regexp.MustCompile(`alertname: `+alert[1]+`\n\s+eval_time: \w+\n(\s+exp_alerts:)?`).FindAllStringSubmatch(tests, -1)
		expect.True(t, slices.ContainsFunc(cases, func(c []string) bool { return c[1] != "" }), alert[1], cases)
		expect.True(t, slices.ContainsFunc(cases, func(c []string) bool { return c[1] == "" }), alert[1], cases)
	}
}

// A dashboard has the parts of a Grafana dashboard that this package checks.
type dashboard struct {
	UID        string
	Panels     []panel
	Templating struct {
		List []struct{ Query struct{ Query string } }
	}
}

type panel struct {
	ID         int
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ Expr string }
}

// The dashboard and the alerts use only metrics that docs/metrics.md lists. This page has exactly the metrics that exist
// (metrics.TestPage).
func TestMetricsOfDashboardExist(t *testing.T) {
	t.Parallel()
	var all []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`tdf_.*?) \\|").FindAllStringSubmatch(read(t, filepath.Join(root, "docs/metrics.md")), -1) {
		all = append(all, metric.FindAllString(row[1], -1)...)
	}
	text := read(t, filepath.Join(root, "deploy/grafana/dashboards/tdf.json"))
	for _, name := range metric.FindAllString(text+read(t, filepath.Join(root, "deploy/prometheus/alerts.yml")), -1) {
		expect.True(t, slices.Contains(all, strings.TrimSuffix(name, "_bucket")), name)
	}
}

// Each panel has a place of its own and the provisioned source, and Prometheus accepts its expressions.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var d dashboard
	must(t, json.Unmarshal([]byte(read(t, filepath.Join(root, "deploy/grafana/dashboards/tdf.json"))), &d))
	source := read(t, filepath.Join(root, "deploy/grafana/provisioning/datasources/prometheus.yaml"))
	expect.MustTrue(t, len(d.Panels) > 10, len(d.Panels), d.UID)
	expect.MustEqual(t, d.UID, "tdf")
	expect.Equal(t, d.Templating.List[0].Query.Query, "label_values(tdf_up, namespace)")
	rules := "groups:\n  - name: dashboard\n    rules:\n"
	used, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range d.Panels {
		expect.Contains(t, source, "uid: "+p.Datasource.UID+"\n")
		expect.True(t, !ids[p.ID], p.Title)
		expect.Compare(t, len(p.Targets), ">", 0, p.Title)
		expect.Compare(t, p.GridPos.X+p.GridPos.W, "<=", 24, p.Title)
		ids[p.ID] = true
		for i := range p.GridPos.W * p.GridPos.H {
			at := [2]int{p.GridPos.X + i%p.GridPos.W, p.GridPos.Y + i/p.GridPos.W}
			expect.MustTrue(t, used[at] == "", p.Title, "covers", used[at])
			used[at] = p.Title
		}
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "1m", "$namespace", "p").Replace(target.Expr)
			expect.True(t, !strings.Contains(expr, "$"), expr)
			rules += "      - record: x" + strings.Repeat("x", strings.Count(rules, "\n")) + "\n        expr: " + expr + "\n"
		}
	}
	name := filepath.Join(t.TempDir(), "rules.yml")
	write(t, name, 0o644, rules)
	command(t, ".", "promtool", "check", "rules", name)
}
