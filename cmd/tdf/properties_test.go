package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
)

// sampleText returns a value of the property that is not its default, and the properties with this value.
func sampleText(t *testing.T, p *tdf.Property) (string, tdf.Properties) {
	for _, text := range []string{"7", "1.5", "rsync:/q/run.sh", "exit", "archived", "q"} {
		d := tdf.Defaults("p", "rsync:/p/run.sh", "1")
		if p.Set(&d, text) == nil && p.Text(&d) != p.Preset() {
			return text, d
		}
	}
	t.Fatalf("no text is a value of %s, %s", p.Name, p.Want)
	return "", tdf.Properties{}
}

// Each property of the table has the same value in the configuration, as a flag, in Redis, in JSON, and after a dump and a load.
func TestEachPropertyGoesEverywhere(t *testing.T) {
	addr := testspace.Embedded(t)
	from := testspace.Manager(t, testspace.Config(t, addr))
	to := testspace.Manager(t, testspace.Config(t, addr))
	var all []tdf.Properties
	var definitions []manager.Definition
	for i := range tdf.PropertyTable {
		p := &tdf.PropertyTable[i]
		text, d := sampleText(t, p)
		all, definitions = append(all, d), append(definitions, d.Definition())
		if p.Meaning != "" {
			checkKey(t, p, text, p.Text(&d))
		}
		if p.Help != "" {
			checkFlag(t, p, text, p.Text(&d))
		}
	}
	opened, err := from.Open(t.Context(), definitions...)
	if err != nil {
		t.Fatal(err)
	}
	var dump bytes.Buffer
	if _, err := admin.New(from).Dump(t.Context(), &dump); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.New(to).Load(t.Context(), &dump); err != nil {
		t.Fatal(err)
	}
	for i := range tdf.PropertyTable {
		p := &tdf.PropertyTable[i]
		want, _ := json.Marshal(p.Value(&all[i]))
		for where, m := range map[string]*manager.Manager{"opened": from, "loaded": to} {
			task, err := m.Get(t.Context(), opened[i].ID)
			if err != nil {
				t.Fatal(err)
			}
			got := task.Definition.Properties(tdf.Defaults("", "", ""))
			if p.Text(&got) != p.Text(&all[i]) {
				t.Errorf("%s, %s: %q, want %q", p.Name, where, p.Text(&got), p.Text(&all[i]))
			}
			text, _ := json.Marshal(task)
			members := map[string]json.RawMessage{}
			if err := json.Unmarshal(text, &members); err != nil || p.Shown(&all[i]) && !bytes.Equal(members[p.JSON], want) {
				t.Errorf("%s, %s: the JSON is %s, want %s; %v", p.Name, where, members[p.JSON], want, err)
			}
		}
	}
}

func checkKey(t *testing.T, p *tdf.Property, text, want string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manager.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[tdf]\nnamespace=n\n[task_defaults]\n%s=%s\n", p.Name, text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.LoadManager(file)
	if got := p.Text(&cfg.TaskDefaults); err != nil || got != want {
		t.Errorf("%s, configuration: %q, %v; want %q", p.Name, got, err, want)
	}
}

func checkFlag(t *testing.T, p *tdf.Property, text, want string) {
	t.Helper()
	var f cli.TaskFlags
	c := &cobra.Command{}
	f.Flags(c)
	if err := c.ParseFlags([]string{"--" + p.Flag(), text}); err != nil {
		t.Fatal(err)
	}
	changes, err := f.Changes(tdf.At(time.Now()))
	d := changes.Apply(tdf.Defaults("p", "rsync:/p/run.sh", "1"))
	if got := p.Text(&d); err != nil || got != want {
		t.Errorf("%s, flag: %q, %v; want %q", p.Name, got, err, want)
	}
}
