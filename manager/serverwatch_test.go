package manager

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// lastSeen is a store that returns only the time at which a server was last seen.
type lastSeen struct{ at tdf.Time }

func (s *lastSeen) LastServerHeartbeat(context.Context) (tdf.Time, error) { return s.at, nil }

func TestServerWatch(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	store := &lastSeen{}
	w := serverWatch{store: store, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, step := range []struct {
		now, last tdf.Time
		want      string
	}{
		{1000, 0, "no server was ever seen"},
		{1005, 0, ""},
		{1010, 1009, "a server runs again"},
		{1012, 1009, ""},
		{1019, 1009, ""},
		{1020, 900, ""}, // too soon after the last check
		{1023, 1012.9, "no server has been seen for a while"},
		{1030, 1013, ""},
		{1040, 1040, "a server runs again"},
		{900, 1040, ""}, // the clock went backwards
	} {
		log.Reset()
		store.at = step.last
		expect.NoError(t, w.look(t.Context(), step.now))
		if got := log.String(); (got != "") != (step.want != "") || !strings.Contains(got, step.want) {
			t.Errorf("at %v, last seen %v: got %q, want %q", step.now, step.last, got, step.want)
		}
	}
}
