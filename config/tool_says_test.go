package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestToolSays(t *testing.T) {
	clearEnvironment(t)
	file := filepath.Join(t.TempDir(), "tdf.cfg")
	if err := os.WriteFile(file, []byte("[tdf]\nnamespace=n\n[task_defaults]\ntimeout=inf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TDF_CFG_TASK_DEFAULTS_FAIL_ON", "stderr")
	tool, err := LoadTool(file, Override{Section: "task_defaults", Name: "max_fails", Value: "0", Source: "--set"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"timeout": true, "fail_on": true, "max_fails": true, "max_losses": false, "nothing": false} {
		if got := tool.Says("task_defaults", name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
