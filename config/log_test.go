package config

import (
	"log/slog"
	"strings"
	"testing"
)

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"text": `level=WARN msg=logged why="a test"`, "json": `"level":"WARN","msg":"logged","why":"a test"}`} {
		var out strings.Builder
		log := Log{Level: slog.LevelWarn, Format: format}.Logger(&out)
		log.Info("not logged")
		log.Warn("logged", "why", "a test")
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", format, got)
		}
	}
}
