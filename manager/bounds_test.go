package manager

import (
	"io"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

// onEmbedded returns a manager on an embedded Redis of the test's own.
func onEmbedded(t *testing.T) *Manager {
	t.Helper()
	r, err := embedded.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	cfg, err := config.DefaultManager("bounds")
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(r.Addr())
	cfg.Redis.Host = host
	cfg.Redis.Port, _ = strconv.Atoi(port)
	m, err := New(t.Context(), cfg, WithLog(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A page ends at each of its bounds, and the next one goes on just there.
func TestPagesEndAtTheirBounds(t *testing.T) {
	m := onEmbedded(t)
	const many = 1200
	var defs []tdf.Properties
	for i := range many {
		defs = append(defs, m.Define("p", "rsync:/p/run.sh", strconv.Itoa(10_000+i))) // 5 bytes each
	}
	if _, err := m.Open(t.Context(), defs...); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bounds lookBounds
		looked int // by the first page
	}{
		"tasks": {lookBounds{time: time.Hour, tasks: 600, bytes: 1 << 20}, 2 * mostAtOnce},
		"bytes": {lookBounds{time: time.Hour, tasks: 1 << 20, bytes: 5 * 700}, 700},
		"one":   {lookBounds{time: time.Hour, tasks: 1 << 20, bytes: 1}, 1},
		"time":  {lookBounds{time: 0, tasks: 1 << 20, bytes: 1 << 20}, mostAtOnce},
		"none":  {lookBounds{time: time.Hour, tasks: 1 << 20, bytes: 1 << 20}, many},
	} {
		found, after := 0, ""
		for pages := 0; pages == 0 || after != "" && found < many; pages++ {
			f, err := m.finder(t.Context(), Query{}, after)
			if err != nil {
				t.Fatal(err)
			}
			f.bounds = c.bounds
			page, err := f.page(2 * many)
			if err != nil {
				t.Fatal(err)
			}
			if pages == 0 && page.Looked != c.looked {
				t.Errorf("%s: the first page has looked at %d tasks, want %d", name, page.Looked, c.looked)
			}
			for _, task := range page.Tasks {
				if want := int64(many - found); task.ID != want {
					t.Fatalf("%s: task %d came, want %d", name, task.ID, want)
				}
				found++
			}
			if after = page.Next; c.looked == 1 && pages == 3 {
				break // the rest is like that
			}
		}
		if c.looked > 1 && found != many {
			t.Errorf("%s: %d tasks of %d", name, found, many)
		}
	}
}
