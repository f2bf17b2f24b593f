package doctest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
)

// checkAndRepair has the lines of docs/operations.md, "Check and repair".
func checkAndRepair(ctx context.Context, cfg config.Manager, log *slog.Logger) (int, error) {
	store, err := redisstate.Connect(ctx, cfg.Redis, cfg.Namespace, log)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	findings, err := store.Check(ctx)
	if err != nil {
		return 0, err
	}
	for _, f := range findings {
		fmt.Println(f)
	}
	mended, err := store.Repair(ctx, "repair", findings)
	return mended, err
}

func TestCheckAndRepair(t *testing.T) {
	host, port, err := net.SplitHostPort(redistest.Shared(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Manager{Redis: config.Redis{Host: host}, Namespace: redistest.Namespace(t)}
	if cfg.Redis.Port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := redisstate.Connect(t.Context(), cfg.Redis, cfg.Namespace, log)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Open(t.Context(), "manager", tdf.Define("p", "rsync:/p/run.sh", "")); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: cfg.Redis.Addr()})
	defer client.Close()
	if err := client.ZRem(t.Context(), store.Keys().List(tdf.Open), 1).Err(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if mended, err := checkAndRepair(t.Context(), cfg, log); mended != want || err != nil {
			t.Errorf("%d mended, %v; want %d", mended, err, want)
		}
	}
}

func TestCheckAndRepairIsAsThePageSays(t *testing.T) {
	test, err := os.ReadFile("repair_test.go")
	if err != nil {
		t.Fatal(err)
	}
	flush := func(s string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(s, "return 0, err", "return err")), " ")
	}
	if !strings.Contains(flush(string(test)), flush(block(t, "docs/operations.md", "go"))) {
		t.Error("the lines of docs/operations.md are not those that are tested")
	}
}
