package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/web"
)

// The overview shows the tasks that ended in the last hour and day, as charts and as tables.
func TestHistoryOfOverview(t *testing.T) {
	t.Parallel()
	s := newSite(t, web.Options{})
	ctx, cli, ns := t.Context(), testspace.Client(t, s.cfg), s.cfg.Namespace
	if text := s.as(access.Viewer).page("/ui", http.StatusOK); !strings.Contains(text, "No counts yet") {
		t.Error("before the first counts:", text)
	}
	now := expect.Result(s.store.Now(ctx)).Value(t)
	expect.NoError(t, s.store.KeepHistory(ctx, now.Add(-7200)))
	expect.NoError(t, s.store.KeepHistory(ctx, now.Add(-600)))
	expect.NoError(t, cli.ZAdd(ctx, ns+":activity", redis.Z{Score: 1, Member: "default"}).Err())
	expect.NoError(t, cli.HSet(ctx, ns+":activity:default", "made:succeed:succeeded", 1234, "made:lose:failed", 5, "run:5", 100).Err())
	expect.NoError(t, s.store.KeepHistory(ctx, now.Add(-540)))
	s.Handler = web.New(s.manager, web.Options{}) // a dashboard that remembers nothing
	got := s.as(access.Viewer).get("/ui")
	checkPage(t, "/ui", got)
	for _, want := range []string{
		`<td class="n">1,234</td><td class="n">5</td><td>3.00s, 4.60s, 4.96s</td><td>–</td>`, "Last hour: 1,234 succeeded and 5 failed tasks, at most 1,239 a minute",
		"no counts", "Numbers of the day", `class="succeeded" d="M`,
	} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the overview lacks %q: %s", want, got.text)
		}
	}
}
