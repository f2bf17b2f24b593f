package config

import (
	"log/slog"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"text": `level=WARN msg=told why="so it is"`, "json": `"level":"WARN","msg":"told","why":"so it is"}`} {
		var out strings.Builder
		log := Log{Level: slog.LevelWarn, Format: format}.Logger(&out)
		log.Info("not told")
		log.Warn("told", "why", "so it is")
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", format, got)
		}
	}
}
