package doctest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/http.md lists the types of events.
func TestTypesOfEvents(t *testing.T) {
	_, listed, _ := strings.Cut(read(t, "docs/http.md"), "the types of events:\n")
	listed, _, _ = strings.Cut(listed, "To continue after")
	same(t, "docs/http.md, events", literals(t, "web/events.go", "Events"), submatches(t, "(?m)^- `(\\w+)`: ", listed))
}

// docs/skuld.md and docs/taskmaster.md list the routes of these interfaces.
func TestRoutesOfInterfaces(t *testing.T) {
	skuld := submatches(t, `call\("(/\w+)"`, read(t, "web/skuld/skuld.go"))
	same(t, "docs/skuld.md", append(skuld, "GET /list_tasks"), first(below(t, "docs/skuld.md", "| path | body | answer | roles |")))
	var taskmaster []string
	route := regexp.MustCompile(`Method:\s+http\.Method(\w+),\s+Path:\s+"([^"]+)"`)
	for _, m := range route.FindAllStringSubmatch(read(t, "web/taskmaster/taskmaster.go"), -1) {
		taskmaster = append(taskmaster, strings.ToUpper(m[1])+" "+m[2])
	}
	same(t, "docs/taskmaster.md", taskmaster, first(below(t, "docs/taskmaster.md", "| route | needs the right to |")))
}

// docs/dashboard.md lists the pages of the dashboard with their addresses.
func TestPagesOfDashboard(t *testing.T) {
	listed := below(t, "docs/dashboard.md", "| page | address below `/ui` | shows |")
	var titles, paths []string
	for _, row := range listed {
		titles = append(titles, strings.TrimPrefix(strings.TrimPrefix(row[0], "A task"), "A campaign"))
		paths = append(paths, names(row[1])...)
		paths = append(paths, submatches(t, "`(/(?:[a-z-]+|tasks/7/\\w+))`", row[2])...)
	}
	var wantTitles, wantPaths []string
	example := strings.NewReplacer("{id}", "7", "{name}", "grid")
	for page := range slices.Chunk(literals(t, "web/dashboard/pages.go", "pages"), 3) {
		wantTitles = append(wantTitles, page[2])
		if page[0] != "/" && page[0] != "/tasks/confirm" { // the overview, and a question
			wantPaths = append(wantPaths, example.Replace(page[0]))
		}
	}
	same(t, "docs/dashboard.md, pages", wantTitles, titles)
	same(t, "docs/dashboard.md, addresses", wantPaths, paths)
}
