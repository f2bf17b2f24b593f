package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/bench/internal/bars"
	"github.com/tdf-framework/tdf/bench/redisserver"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/metrics"
)

// countNames are the names of the counts of a busy queue.
func countNames() (names []string) {
	for _, of := range []string{
		"open:open", "claim:running", "execute:executed", "succeed:succeeded", "fail:failed",
		"fail:open", "lose:open", "archive:archived",
	} {
		names = append(names, "made:"+of)
	}
	for _, kind := range []string{"wait:", "run:", "life:"} {
		for _, bound := range []string{
			"0.010000", "0.100000", "0.500000", "1.000000", "5.000000", "15.000000",
			"60.000000", "300.000000", "1800.000000", "inf", "sum",
		} {
			names = append(names, kind+bound)
		}
	}
	return names
}

// fillCounts stores counts for as many queues as a namespace counts.
func fillCounts(ctx context.Context, client *redis.Client) error {
	p := client.Pipeline()
	for i := range 1000 {
		queue := queueOf(i)
		p.ZAdd(ctx, namespace+":activity", redis.Z{Score: float64(i), Member: queue})
		for _, name := range countNames() {
			p.HIncrBy(ctx, namespace+":activity:"+queue, name, int64(i))
		}
	}
	_, err := p.Exec(ctx)
	return err
}

func queueOf(i int) string { return fmt.Sprintf("queue-%d", i) }

// scrape measures scrapes of /metrics in this process, and prints what they cost Redis.
func (l *look) scrape(ctx context.Context, repeats int, out io.Writer) error {
	m, err := manager.New(manager.Options{Namespace: namespace, Redis: config.Redis{
		Host: "127.0.0.1",
		Port: l.server.Port,
	}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer m.Close()
	handler := metrics.Process{Admins: []*admin.Admin{admin.New(m)}, Log: slog.New(slog.DiscardHandler)}.Handler()
	took, blocked := bars.Part{Unit: "ms", AtMost: true, Limit: 100}, bars.Part{
		Unit: "ms in Redis", AtMost: true,
		Limit: 5,
	}
	var size int
	var redisCPU redisserver.Usage
	var cpu time.Duration
	for i := range repeats + 1 {
		if i == 1 { // the first scrape connects, loads scripts, and counts all queues
			if err := l.client.ConfigResetStat(ctx).Err(); err != nil {
				return err
			}
			if redisCPU, err = l.server.Usage(ctx); err != nil {
				return err
			}
			cpu = usedCPU()
		}
		if err := l.client.Do(ctx, "slowlog", "reset").Err(); err != nil {
			return err
		}
		w, began := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "tdf_up{namespace=\""+namespace+"\"} 1\n") {
			return fmt.Errorf("scrape: status %d, %d bytes", w.Code, w.Body.Len())
		}
		if i > 0 {
			took.Samples, size = append(took.Samples, ms(time.Since(began))), w.Body.Len()
			slowest, _ := l.slowest(ctx)
			blocked.Samples = append(blocked.Samples, slowest)
		}
	}
	cpu = usedCPU() - cpu
	after, err := l.server.Usage(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%d bytes; CPU time of a scrape: %.0f ms of this process, %.0f ms of Redis\n",
		bars.Bar{Name: "scrape", Parts: []bars.Part{took, blocked}}.Line(),
		size, ms(cpu)/float64(repeats), 1000*after.Minus(redisCPU).CPU/float64(repeats))
	stats, err := l.client.Info(ctx, "commandstats").Result()
	fmt.Fprintf(out, "commands of %d scrapes:\n", repeats)
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_") && !strings.Contains(line, "config") &&
			!strings.Contains(line, "slowlog") {
			fmt.Fprint(out, "  ", line)
		}
	}
	return err
}

// usedCPU returns the CPU time that this process has used.
func usedCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
