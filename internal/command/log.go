package command

import (
	"io"
	"log/slog"

	"github.com/tdf-framework/tdf/config"
)

// Logger writes to w as section [log] says.
func Logger(w io.Writer, cfg config.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.Level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
