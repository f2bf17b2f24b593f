package worker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testsecret"
)

// Errors may contain texts of other programs, for example file names from rsync. Secrets in them are masked.
func TestErrorsAreMasked(t *testing.T) {
	d := &roundIO{secrets: testsecret.Of(t, "hunter22")}
	expect.Equal(t, maskError(d, errors.New("rsync: hunter22.txt: no space")).Error(), "rsync: ***.txt: no space")
	must(t, maskError(d, nil))
}

// A secret may be any word, even a word in the worker's own messages. After the text of an error was masked, errors.Is
// still finds the original error. The worker's own messages are not masked.
func TestMaskedErrorsKeepTheirIdentity(t *testing.T) {
	gone := &lostError{&tdf.StateError{ID: 7, Verb: rules.VerbExecute, State: tdf.Expired}}
	for _, secret := range []string{"task", "time", "over", "timeout", "told", "stop", "worker", "expired"} {
		d := &roundIO{secrets: testsecret.Of(t, secret)}
		for _, reason := range []error{errTimedOut, errStopping} {
			expect.FailsWith(t, maskError(d, reason), reason, secret)
		}
		for _, err := range []error{errTimedOut, errStopping, gone, Unfit(os.ErrNotExist)} {
			got := maskError(d, fmt.Errorf("%s: %w", secret, err))
			expect.FailsWith(t, got, err, secret)
			expect.NotContains(t, got.Error(), secret)
			expect.Equal(t, isLost(got), isLost(err), secret)
			expect.Equal(t, isUnfit(got), isUnfit(err), secret)
		}
	}
}

// A round that ran for too long counts as timed out, even if the message about the timeout contains a secret, which the
// worker masks.
func TestTimedOutWithASecretOfItsWords(t *testing.T) {
	w := newWorld(t)
	w.cfg.EnvFile = "$program.env"
	must(t, os.WriteFile(w.path("p.env"), []byte("MODE=time\n"), 0o600))
	r := w.begin(waiting, func(d *task.Properties) { d.Timeout = 1000 })
	r.timers.fireBetween(t, 15*time.Minute, 17*time.Minute)
	r.timers.fire(t, w.cfg.KillGrace)
	r.wait()
	one := w.task(r.id)
	expect.Equal(t, one.State, tdf.TimedOut)
	expect.Equal(t, one.Timeouts, 1)
	expect.Equal(t, one.Fails, 0)
}

// A round whose result is refused keeps its resource usage.
func TestRefusedRoundKeepsItsUsage(t *testing.T) {
	w := newWorld(t)
	w.cfg.MaxOutput = 1000
	own := ownPeak(t)
	mib := (own+own/4)>>20 + 100 // a peak that is not clearly above the worker's own peak is reported as unknown
	w.script("p", fmt.Sprintf("#!/bin/sh\ndd if=/dev/zero of=/dev/null bs=%dM count=1 2>/dev/null\n", mib)+
		"head -c 100000 /dev/zero\nhead -c \"$1\" /dev/zero >&2\necho { >$TDF_DIR/result.json\n")
	for _, printed := range []int64{0, 50_000} {
		id := w.open(fmt.Sprint(printed))
		w.runOnce(w.worker())
		r := w.finished(id).Current()
		expect.Equal(t, r.Exit, "")
		expect.True(t, strings.HasSuffix(r.Error, "(run.sh ended with 0)"), "exit", r.Exit, "error", r.Error)
		expect.Equal(t, r.OutputBytes, 100_000, printed, "on stderr")
		expect.Equal(t, r.ErrorBytes, printed)
		expect.Compare(t, r.Seconds, ">", 0)
		expect.Compare(t, r.CPUSeconds, ">", 0)
		expect.Compare(t, r.MaxRSS, ">=", mib<<20)
	}
}

// ownPeak returns the peak memory of this process, in bytes.
func ownPeak(t *testing.T) int64 {
	t.Helper()
	status := expect.Result(os.ReadFile("/proc/self/status")).Value(t)
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	expect.Result(fmt.Sscan(peak, &kib)).OK(t)
	return kib << 10
}
