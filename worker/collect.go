package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/fetch"
)

// MaxOutput is how much of each output can be reported where max_output does not say less:
// a value in Redis cannot be larger than 512 MiB.
const MaxOutput = 256 << 20

func (w *Worker) mostOutput() int64 {
	if w.cfg.MaxOutput == 0 {
		return MaxOutput
	}
	return w.cfg.MaxOutput
}

// collect takes what the round left: its result, and an error if that is refused.
func (e *execution) collect(d *desk, ended Ended, ran error) (tdf.Result, error) {
	result := tdf.Result{
		Exit: ended.Exit, Reason: d.secrets.Mask(ended.Why), ProgramSHA256: ended.ProgramSHA256,
		Seconds: ended.Seconds, CPUSeconds: ended.CPUSeconds, MaxRSS: ended.MaxRSS,
	}
	e.reportLast(d)
	texts, err := d.record.Read(e.s.mostOutput(), e.s.name, d.secrets)
	result.Output, result.OutputBytes = texts.Output, texts.OutputBytes
	result.Error, result.ErrorBytes = texts.Error, texts.ErrorBytes
	if err != nil || ran != nil {
		if isUnfit(ran) {
			return result, masked(d, ran)
		}
		e.keepFiles(d)
		e.keepScratch(d, true)
		return result, errors.Join(masked(d, ran), err)
	}
	if err := e.takeResult(d, &result); err != nil {
		e.keepFiles(d)
		e.keepScratch(d, true)
		return result, masked(d, err)
	}
	failed := (&tdf.Round{Exit: result.Exit, HasError: result.Error+result.Reason != ""}).HasFailed(e.task.FailOn)
	// A full disk may have kept from stderr what the program had to say.
	if (failed || result.Exit != "0") && diskIsFull(e.s.cfg.Directory) {
		result.Reason, failed = appendLine(result.Reason, "the worker's disk is full"), true
	}
	e.keepScratch(d, failed)
	return result, nil
}

// masked hides values of secrets in what an error says; what it is, errors.Is and errors.As go on
// to tell. The reasons for which programs are ended are our own words, whatever words are secret.
func masked(d *desk, err error) error {
	if err == nil || err == errTimedOut || err == errStopping || err == errCutOff {
		return err
	}
	text := d.secrets.Mask(err.Error())
	if text == err.Error() {
		return err
	}
	return &maskedError{text, err}
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }

// takeResult takes what is to be there for the round to count, and sends its files away.
func (e *execution) takeResult(d *desk, result *tdf.Result) error {
	json, ok, err := d.dir.Result()
	if err != nil {
		return e.refused(result, err)
	}
	if ok {
		result.JSON = json
	}
	if err := e.sendFiles(d); err != nil {
		return e.refused(result, err)
	}
	return nil
}

// refused keeps in the error what run.sh itself said of its end.
func (e *execution) refused(result *tdf.Result, err error) error {
	return fmt.Errorf("%w (run.sh ended with %s)", err, result.Exit)
}

// sendFiles sends files/ to where they are collected, or keeps them where there is no such place.
func (e *execution) sendFiles(d *desk) error {
	any, err := d.dir.Files()
	if err != nil || !any {
		return err
	}
	if e.s.cfg.Collect == "" {
		return e.keepFiles(d)
	}
	ctx, end := e.s.outlive(e.s.told, e.s.programBound(), 0)
	defer end(nil)
	defer context.AfterFunc(e.ctx, func() {
		if why := context.Cause(e.ctx); isLost(why) {
			end(why)
		}
	})()
	r := e.renewal()
	r.Ended, r.Limit = true, tdf.For(e.s.cfg.FetchTimeout)+e.task.Timeout
	if _, err := e.renewOne(ctx, r); err != nil {
		return err
	}
	sub := filepath.Join(strconv.FormatInt(e.task.ID, 10), strconv.Itoa(e.task.Round))
	defer e.s.hold()()
	ctx, cancel := context.WithTimeoutCause(ctx, e.s.cfg.FetchTimeout, errors.New("it took longer than fetch_timeout"))
	defer cancel()
	sealed, err := d.dir.Seal(ctx)
	if err == nil {
		err = fetch.Deliver(ctx, e.s.rounds(), sealed.Path, sub, e.s.cfg.Collect)
	}
	if err != nil {
		return fmt.Errorf("files/ could not be collected: %w; it is kept on worker %s in %s", err, e.s.name, e.kept("files"))
	}
	if sealed.LeftOut > 0 {
		e.log.Warn("collected files/ without what is neither a file nor a directory, and without links out of it",
			"left_out", sealed.LeftOut, "first", d.secrets.Mask(sealed.Example))
	}
	return nil
}

// keepFiles keeps files/ beside the output file.
func (e *execution) keepFiles(d *desk) error {
	any, err := d.dir.Files()
	if err == nil && any {
		err = e.keep("files", d.dir.KeepFiles)
	}
	if err != nil {
		e.log.Warn("files/ could not be kept", "error", err)
	}
	return err
}

func (e *execution) keepScratch(d *desk, failed bool) {
	if !failed || e.s.cfg.KeepScratch != "failed" {
		return
	}
	if err := e.keep("scratch", d.dir.KeepScratch); err != nil {
		e.log.Warn("scratch/ could not be kept", "error", err)
	}
}

// diskIsFull tells what a program may not have had the words for.
func diskIsFull(dir string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(dir, &s) == nil && s.Blocks > 0 && s.Bavail == 0
}
