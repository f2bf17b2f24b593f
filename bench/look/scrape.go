package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/metrics"
)

// countNames are the names of the counts of a busy queue.
func countNames() (names []string) {
	for _, of := range []string{"open:open", "claim:running", "execute:executed", "succeed:succeeded", "fail:failed", "fail:open", "lose:open", "archive:archived"} {
		names = append(names, "made:"+of)
	}
	for _, kind := range []string{"wait:", "run:", "life:"} {
		for _, bound := range []string{"0.010000", "0.100000", "0.500000", "1.000000", "5.000000", "15.000000", "60.000000", "300.000000", "1800.000000", "inf", "sum"} {
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
	m, err := manager.New(manager.Options{Namespace: namespace, Redis: config.Redis{Host: "127.0.0.1", Port: l.server.Port}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer m.Close()
	handler := metrics.Handler(admin.New(m), slog.New(slog.DiscardHandler))
	var took []time.Duration
	var size int
	for i := range repeats + 1 {
		if i == 1 { // the first scrape connects, and loads scripts
			if _, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
				p.ConfigResetStat(ctx)
				p.Do(ctx, "slowlog", "reset")
				return nil
			}); err != nil {
				return err
			}
		}
		w, began := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "tdf_up{namespace=\""+namespace+"\"} 1\n") {
			return fmt.Errorf("scrape: status %d, %d bytes", w.Code, w.Body.Len())
		}
		if i > 0 {
			took, size = append(took, time.Since(began)), w.Body.Len()
		}
	}
	slow, err := l.client.SlowLogGet(ctx, -1).Result()
	if err != nil {
		return err
	}
	slices.SortFunc(slow, func(a, b redis.SlowLog) int { return int(b.Duration - a.Duration) })
	slices.Sort(took)
	fmt.Fprintf(out, "\nscrape of /metrics: median %.0f ms, fastest %.0f ms, %d bytes\nslowest in Redis:", ms(took[len(took)/2]), ms(took[0]), size)
	for _, s := range slow[:min(5, len(slow))] {
		fmt.Fprintf(out, " %.1f ms %s,", ms(s.Duration), strings.Join(s.Args[:min(2, len(s.Args))], " "))
	}
	stats, err := l.client.Info(ctx, "commandstats").Result()
	fmt.Fprintf(out, "\ncommands of %d scrapes:\n", repeats)
	for line := range strings.Lines(stats) {
		if strings.HasPrefix(line, "cmdstat_") && !strings.Contains(line, "config") && !strings.Contains(line, "slowlog") {
			fmt.Fprint(out, "  ", line)
		}
	}
	return err
}
