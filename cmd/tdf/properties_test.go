package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// sampleText returns a value of the property that is not its default, and the properties with this value.
func sampleText(t *testing.T, p *task.Property) (string, task.Properties) {
	for _, text := range []string{
		"4000000000", "7", "1.5", "rsync:/q/run.sh", "exit", "archived", "yes", "base64", "cpus=2", "q", strings.Repeat("0", 64) + ":7:a",
	} {
		d := task.Defaults("p", "rsync:/p/run.sh", "1234")
		if p.Set(&d, text) == nil && p.Text(&d) != p.Preset() {
			return text, d
		}
	}
	t.Fatalf("no text is a value of %s, %s", p.Name, p.Want)
	return "", task.Properties{}
}

// Each property of the table has the same value in the configuration, as a flag, in Redis and in JSON.
func TestEachPropertyGoesEverywhere(t *testing.T) {
	addr := testspace.Embedded(t)
	m := testspace.Manager(t, testspace.Config(t, addr))
	var all []task.Properties
	var definitions []manager.Definition
	for i := range task.PropertyTable {
		p := &task.PropertyTable[i]
		text, d := sampleText(t, p)
		all, definitions = append(all, d), append(definitions, d.Definition())
		if p.Meaning != "" {
			checkKey(t, p, text, p.Text(&d))
		}
		if p.Help != "" {
			checkFlag(t, p, text, p.Text(&d))
		}
	}
	expect.NoError(t, managing.Of(m).Store.Blobs.RegisterBlob(t.Context(), task.Blob{SHA256: strings.Repeat("0", 64)}, ""))
	opened := expect.Result(m.Open(t.Context(), definitions...)).Value(t)
	for i := range task.PropertyTable {
		p := &task.PropertyTable[i]
		want, _ := json.Marshal(p.Value(&all[i]))
		one := expect.Result(m.Get(t.Context(), opened[i].ID)).Value(t)
		got := one.Definition.Properties(task.Defaults("", "", ""))
		expect.Equal(t, p.Text(&got), p.Text(&all[i]), p.Name)
		text, _ := json.Marshal(one)
		members := map[string]json.RawMessage{}
		expect.NoError(t, json.Unmarshal(text, &members), p.Name)
		if p.Shown(&all[i]) {
			expect.Equal(t, string(members[p.JSON]), string(want), p.Name)
		}
	}
}

func checkKey(t *testing.T, p *task.Property, text, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manager.cfg")
	expect.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "[tdf]\nnamespace=n\n[task_defaults]\n%s=%s\n", p.Name, text), 0o600))
	cfg, err := config.LoadManager(file)
	got := p.Text(&cfg.TaskDefaults)
	expect.NoError(t, err, p.Name)
	expect.Equal(t, got, want, p.Name)
}

func checkFlag(t *testing.T, p *task.Property, text, want string) {
	t.Helper()
	var f cli.TaskFlags
	c := &cobra.Command{}
	f.Flags(c)
	expect.NoError(t, c.ParseFlags([]string{"--" + p.Flag(), text}))
	changes, err := f.Changes(task.At(time.Now()))
	d := changes.Apply(task.Defaults("p", "rsync:/p/run.sh", "1234"))
	got := p.Text(&d)
	expect.NoError(t, err, p.Name)
	expect.Equal(t, got, want, p.Name)
}
