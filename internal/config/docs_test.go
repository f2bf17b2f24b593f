package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

// row returns the row that describes the key in docs/configuration.md.
func row(k key) string {
	preset := "`" + k.preset + "`"
	switch {
	case k.name == "namespace":
		preset = "required"
	case k.preset == "":
		preset = "empty"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |", k.name, preset, k.kind.want, k.meaning)
}

var update = flag.Bool("update", false, "write the tables of docs/configuration.md, and missing keys into configs/manager.cfg")

var anyRow = regexp.MustCompile("^\\| `")

// writePage replaces the rows of each section by those of the table of keys.
func writePage(t *testing.T, path string) {
	t.Helper()
	page := expect.Result(os.ReadFile(path)).Value(t)
	var lines []string
	section, written := "", map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if !anyRow.MatchString(line) {
			lines = append(lines, line)
			continue
		}
		for _, k := range keys {
			if k.section == section && !written[section] {
				lines = append(lines, row(k)+"\n")
			}
		}
		written[section] = true
	}
	expect.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644))
}

// writeFile adds the missing keys of [task_defaults] to a file, each with its description and default, in their places.
func writeFile(t *testing.T, path string) {
	t.Helper()
	data := expect.Result(os.ReadFile(path)).Value(t)
	text := string(data)
	for i, k := range taskKeys {
		if i == 0 || strings.Contains(text, "\n"+k.name+"=") {
			continue
		}
		before := regexp.MustCompile(`(?m)^` + taskKeys[i-1].name + `=.*\n`).FindStringIndex(text)
		text = text[:before[1]] + "\n# " + strings.ReplaceAll(k.meaning, "`", "") + "\n" + k.name + "=" + k.preset + "\n" + text[before[1]:]
	}
	expect.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

var heading = regexp.MustCompile("^### `\\[(\\w+)\\]`")

// docs/configuration.md has a table for each section. These tables contain the keys of the code, in the same order.
func TestDocumentationListsEveryKey(t *testing.T) {
	if *update {
		writePage(t, "../../docs/configuration.md")
		writeFile(t, "../../configs/manager.cfg")
	}
	page := expect.Result(os.ReadFile("../../docs/configuration.md")).Value(t)
	got, section := map[string][]string{}, ""
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if m := heading.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		if strings.HasPrefix(line, "| `") {
			got[section] = append(got[section], line)
		}
	}
	want := map[string][]string{}
	for _, k := range keys {
		want[k.section] = append(want[k.section], row(k))
	}
	expect.Equal(t, cmp.Diff(want, got), "", "docs/configuration.md against the table of keys (-want +got")
}

// components lists the sections of each file in configs/.
var components = map[string][]string{
	"server":  {"redis", "tdf", "server", "http", "notify", "log"},
	"worker":  {"redis", "tdf", "worker", "log"},
	"manager": {"redis", "tdf", "manager", "task_defaults", "log"},
}

// docs/configuration.md names the sections that each component uses.
func TestDocumentedSections(t *testing.T) {
	page := expect.Result(os.ReadFile("../../docs/configuration.md")).Value(t)
	rows := regexp.MustCompile(`(?m)^\| (server|worker|manager) \| .* \| ([^|;]*)`).FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		want := "`[" + strings.Join(components[row[1]], "]`, `[") + "]`"
		expect.Equal(t, strings.TrimSpace(row[2]), want, row[1])
	}
	expect.Len(t, rows, len(components))
}

// commented lists the keys that are commented out in configs/. They have an effect even if they are set to their
// defaults.
var commented = []string{"task_output_filename", "task_error_filename"}

// Each file in configs/ can be used as it is, and contains every key of its component. Each key is set to its default, and has a comment above
// it.
func TestReadyToUseFiles(t *testing.T) {
	for component, sections := range components {
		t.Run(component, func(t *testing.T) {
			path := "../../configs/" + component + ".cfg"
			data := expect.Result(os.ReadFile(path)).Value(t)
			got := expect.Result(parse(path, data)).Value(t)
			expect.Equal(t, cmp.Diff(presets(sections), got, cmp.AllowUnexported(entry{})), "", "keys and defaults (-want +got")
			for _, line := range hidden(sections) {
				expect.Contains(t, string(data), "\n"+line+"\n", "no line", line)
			}
			for _, line := range uncommented(string(data)) {
				t.Errorf("no comment above %q", line)
			}
			expect.NoError(t, loaders[component](path))
		})
	}
}

// hidden returns the lines for the commented keys of the sections.
func hidden(sections []string) (lines []string) {
	for _, k := range keys {
		if slices.Contains(sections, k.section) && slices.Contains(commented, k.name) {
			lines = append(lines, "#"+k.name+"="+k.preset)
		}
	}
	return lines
}

func presets(sections []string) []entry {
	var entries []entry
	for _, k := range keys {
		if !slices.Contains(sections, k.section) || slices.Contains(commented, k.name) {
			continue
		}
		if k.name == "namespace" {
			k.preset = "MyProject"
		}
		entries = append(entries, entry{k.section, k.name, k.preset})
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return slices.Index(sections, a.section) - slices.Index(sections, b.section)
	})
	return entries
}

// uncommented returns the lines that contain a key and do not follow a comment.
func uncommented(file string) []string {
	var found []string
	above := ""
	for line := range strings.Lines(file) {
		if strings.Contains(line, "=") && !strings.HasPrefix(line, "#") && !strings.HasPrefix(above, "#") {
			found = append(found, line)
		}
		above = line
	}
	return found
}
