package brokertest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A row is a story about a task and its workers, which every kind of worker plays.
type row struct {
	name  string
	needs []need
	plays func(*scene)
}

// rows are the rows of the table, in the order of testdata/table.txt.
var rows = slices.Concat(claimRows, reportRows, leaseRows, nameRows)

// lacking returns what a kind lacks for a row, or "".
func (k *kind) lacking(r *row) string {
	for _, n := range r.needs {
		if why := k.lacks[n]; why != "" {
			return why
		}
	}
	return ""
}

// Every kind of worker plays every row that it can.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		for _, r := range rows {
			if k.lacking(&r) != "" {
				continue // TestNotOffered compares these
			}
			t.Run(k.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				r.plays(newScene(t, k, redistest.Shared(t)))
			})
		}
	}
}

var update = flag.Bool("update", false, "write testdata/table.txt")

// testdata/table.txt has what no kind may leave out without a change of this file.
func TestNotOffered(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.name)
		for _, k := range kinds {
			if why := k.lacking(&r); why != "" {
				fmt.Fprintf(&b, "    not offered by %s: %s\n", k.name, why)
			}
		}
	}
	const path = "testdata/table.txt"
	if *update {
		expect.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	expect.Equal(t, b.String(), string(expect.Result(os.ReadFile(path)).Value(t)), "rows and kinds")
}
