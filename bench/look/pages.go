package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/bench/internal/bars"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/friend"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/web"
)

// manyCampaigns is the number of campaigns that have the half of the tasks. The campaign big has the other half.
const manyCampaigns = 10_000

// A visitedPage is an address of a page of the dashboard. FAILED stands for the id of a failed task.
type visitedPage struct{ name, path string }

// visitedPages has each page of the dashboard, and those of its addresses that read the most.
var visitedPages = []visitedPage{
	{"overview", "/"},
	{"tasks", "/tasks"},
	{"tasks-500", "/tasks?limit=500&column=meta&column=input&order=oldest&campaign=big"},
	{"tasks-search", "/tasks?worker=node-7&exit=3"},
	{"confirm", "/tasks/confirm?do=retry&state=failed"},
	{"task", "/tasks/FAILED"},
	{"explain", "/tasks/FAILED/explain"},
	{"campaigns", "/campaigns"},
	{"campaigns-found", "/campaigns?q=campaign-09"},
	{"campaign", "/campaigns/big"},
	{"campaign-small", "/campaigns/campaign-00007"},
	{"campaign-plot", "/campaigns/big?kind=line&x=seed&y=seconds"},
	{"newcampaign", "/new-campaign"},
	{"workers", "/workers"},
	{"timeline", "/timeline?window=1d"},
	{"queues", "/queues"},
	{"limits", "/limits"},
	{"programs", "/programs"},
	{"failures", "/failures"},
	{"notices", "/notices"},
	{"doctor", "/doctor"},
}

// checkVisited returns an error if the dashboard has a page that no row of visitedPages visits.
func checkVisited() error {
	source, err := os.ReadFile("../web/dashboard/pages.go")
	if err != nil {
		return err
	}
	rows := regexp.MustCompile(`(?m)^\t\{"/[^"]*", "(\w+)", `).FindAllStringSubmatch(string(source), -1)
	if len(rows) < 15 {
		return fmt.Errorf("web/dashboard/pages.go has only %d pages", len(rows))
	}
	visited := map[string]bool{}
	for _, p := range visitedPages {
		visited[p.name] = true
	}
	for _, row := range rows {
		if !visited[row[1]] {
			return fmt.Errorf("the page %s is not measured: add it to visitedPages", row[1])
		}
	}
	return nil
}

// A visitor loads pages as an operator.
type visitor struct {
	*look
	http.Client
	base string
}

// visit measures the pages of the dashboard in this process, and what they cost Redis.
func (l *look) visit(ctx context.Context, repeats int, out io.Writer) error {
	m, err := manager.New(manager.Options{Namespace: namespace, Redis: config.Redis{
		Host: "127.0.0.1",
		Port: l.server.Port,
	}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer m.Close()
	if err := fillWorkers(ctx, m); err != nil {
		return err
	}
	token, err := admin.New(m).AddToken(ctx, access.Token{Name: "bench", Role: access.Operator})
	if err != nil {
		return err
	}
	server := httptest.NewServer(web.New(m, web.Options{
		Log: slog.New(slog.DiscardHandler), PerToken: 1e6,
		PerAddress: 1e6, AtOnce: 1000,
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	jar, _ := cookiejar.New(nil)
	v := &visitor{l, http.Client{Jar: jar, Transport: &http.Transport{MaxIdleConnsPerHost: 300}}, server.URL + "/ui"}
	login, err := v.PostForm(v.base+"/login", url.Values{"token": {token}})
	if err != nil || login.StatusCode != http.StatusOK {
		return errors.Join(err, fmt.Errorf("log in: %v", login))
	}
	login.Body.Close()
	var lines []string
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "page\tfirst byte, ms\tlast byte, ms\tbytes\tslowest command in Redis, ms")
	for _, p := range visitedPages {
		lines = append(lines, v.page(ctx, w, p, repeats))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lines = append(lines, v.first(ctx), v.streams(ctx, out))
	fmt.Fprintf(out, "\n%s\n", strings.Join(lines, "\n"))
	return nil
}

// page loads a page several times, prints the slowest time, and returns its line. The first time, nothing is in the
// memory of the process.
func (v *visitor) page(ctx context.Context, w io.Writer, p visitedPage, repeats int) string {
	path := strings.TrimSuffix(v.base+strings.ReplaceAll(p.path, "FAILED", v.id), "/")
	seconds := bars.Part{Unit: "s", AtMost: true, Limit: 1}
	blocked := bars.Part{Unit: "ms in Redis", AtMost: true, Limit: 10}
	var first, last time.Duration
	var size int
	slowest, command := 0.0, ""
	for i := range repeats {
		if i > 0 {
			time.Sleep(1100 * time.Millisecond) // so that the page is not shared with the visit before
		}
		_ = v.client.Do(ctx, "slowlog", "reset").Err()
		a, b, n, err := v.load(ctx, path)
		if err != nil {
			fmt.Fprintf(w, "%s\t%v\n", p.name, err)
			return bars.Bar{Name: "page-" + p.name, Parts: []bars.Part{seconds, blocked}}.Line()
		}
		first, last, size = max(first, a), max(last, b), n
		took, name := v.slowest(ctx)
		blocked.Samples = append(blocked.Samples, took)
		if took > slowest {
			slowest, command = took, name
		}
	}
	seconds.Samples = []float64{last.Seconds()}
	fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%d\t%.1f %.60s\n", p.name, ms(first), ms(last), size, bars.Median(blocked.Samples),
		command)
	return bars.Bar{Name: "page-" + p.name, Parts: []bars.Part{seconds, blocked}}.Line()
}

// load loads an address, and returns the times until its first and last byte, and its size.
func (v *visitor) load(ctx context.Context, address string) (first, last time.Duration, size int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, 0, 0, err
	}
	began := time.Now()
	answer, err := v.Do(r)
	if err != nil {
		return 0, 0, 0, err
	}
	defer answer.Body.Close()
	var one [1]byte
	n, _ := io.ReadFull(answer.Body, one[:])
	first = time.Since(began)
	rest, err := io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
	}
	return first, time.Since(began), n + int(rest), err
}

// first loads the overview with its files, as a browser does that knows nothing yet.
func (v *visitor) first(ctx context.Context) string {
	kilobytes := bars.Part{Unit: "kB", AtMost: true, Limit: 100}
	took := bars.Part{Unit: "ms", AtMost: true, Limit: 200}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.base, nil)
	began := time.Now()
	if answer, err := v.Do(r); err == nil {
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		bytes := len(text)
		for _, file := range regexp.MustCompile(`="/ui(/static/[^"]+)"`).FindAllSubmatch(text, -1) {
			_, _, n, err := v.load(ctx, v.base+string(file[1]))
			bytes += n
			if err != nil {
				return err.Error()
			}
		}
		took.Samples, kilobytes.Samples = []float64{ms(time.Since(began))}, []float64{float64(bytes) / 1000}
	}
	return bars.Bar{Name: "first-page", Parts: []bars.Part{took, kilobytes}}.Line()
}

// streams compares the commands that Redis gets for 5 open pages with those for 200 browsers that show the same pages.
func (v *visitor) streams(ctx context.Context, out io.Writer) string {
	shown := []string{"", "/tasks", "/campaigns", "/campaigns/big", "/failures"}
	perSecond := func(browsers int) (rate float64, shows bool) {
		ctx, end := context.WithCancel(ctx)
		defer end()
		var open atomic.Int64
		for i := range browsers {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, v.base+shown[i%len(shown)], nil)
			r.Header.Set("Accept", "text/event-stream")
			go func() {
				answer, err := v.Do(r)
				if err != nil || answer.StatusCode != http.StatusOK {
					return
				}
				open.Add(1)
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				open.Add(-1)
			}()
		}
		time.Sleep(10 * time.Second)
		before, began := v.commands(ctx), time.Now()
		time.Sleep(30 * time.Second)
		return (v.commands(ctx) - before) / time.Since(began).Seconds(), open.Load() == int64(browsers)
	}
	part := bars.Part{Unit: "× the commands of 5 open pages for 200", AtMost: true, Limit: 1.5}
	few, showFew := perSecond(5)
	many, showMany := perSecond(200)
	if showFew && showMany {
		fmt.Fprintf(out, "\ncommands of Redis per second: %.1f for 5 open pages, %.1f for 200\n", few, many)
		part.Samples = []float64{many / few}
	}
	return bars.Bar{Name: "open-pages", Parts: []bars.Part{part}}.Line()
}

// commands returns the number of commands that Redis has carried out.
func (v *visitor) commands(ctx context.Context) float64 {
	info, _ := v.client.Info(ctx, "stats").Result()
	_, text, _ := strings.Cut(info, "total_commands_processed:")
	text, _, _ = strings.Cut(text, "\r")
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// fillWorkers registers a hundred workers with full timelines.
func fillWorkers(ctx context.Context, m *manager.Manager) error {
	store := friend.Of(m).Store
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	for i := range 100 {
		name := fmt.Sprintf("node-%d", i)
		var all []presence.Bar
		for n := range presence.MaxBars {
			end := now.Add(-tdf.Seconds(80 * n / 8))
			all = append(all, presence.Bar{
				Slot: 1 + n%8, Start: end.Add(-70), End: end, Busy: 60, Rounds: 9,
				Outcome: presence.BarOutcomes[1+n%4], Task: int64(1 + n), Group: "campaign-00007",
			})
		}
		_, err := store.WorkerHeartbeat(ctx, presence.WorkerInfo{
			Name: name, Boot: name, Host: "rack", Lease: 3600,
			State: presence.WorkerWorking, Slots: 8,
		})
		if err := errors.Join(err, store.AddBars(ctx, name, all, nil)); err != nil {
			return err
		}
	}
	return nil
}
