package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/testlog"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

func TestRun(t *testing.T) {
	var out, log testlog.Buffer
	expect.NoError(t, run(t.Context(), "program", &out, &log), log.String())
	variable := regexp.MustCompile(`:\d+/|rsync:/.*/examples|redis:\w{64}`)
	got := slices.Sorted(strings.Lines(variable.ReplaceAllString(out.String(), "…")))
	want := []string{
		"from-file\t…/sources/program/run.sh\trun.sh got: one and two\n",
		"from-http\thttp://127.0.0.1…run.sh\trun.sh got: one and two\n",
		"from-redis\t…\trun.sh got: one and two\n",
		"missing\thttp://127.0.0.1…missing.zip\tfetching http://127.0.0.1…missing.zip: download: 404 Not Found\n",
	}
	expect.Equal(t, cmp.Diff(want, got), "")
}
