package config

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLogger(t *testing.T) {
	for format, want := range map[string]string{"text": `level=WARN msg=logged why="a test"`, "json": `"level":"WARN","msg":"logged","why":"a test"}`} {
		var out strings.Builder
		log := Log{Level: slog.LevelWarn, Format: format}.Logger(&out)
		log.Info("not logged")
		log.Warn("logged", "why", "a test")
		got := out.String()
		expect.Contains(t, got, want, format)
		expect.Equal(t, strings.Count(got, "\n"), 1, format)
	}
}
