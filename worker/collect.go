package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/rounddir"
)

// maxOutput is the limit of each output, in bytes, if max_output sets no limit. Redis stores no value above 512 MiB.
const maxOutput = 256 << 20

func (w *Worker) maxOutputBytes() int64 {
	if w.cfg.MaxOutput == 0 {
		return maxOutput
	}
	return w.cfg.MaxOutput
}

// collect reads the files of a round that has ended. ran is the error of the round's Runner. The returned error makes
// the round fail, or says why the round was cut short.
func (e *execution) collect(x *roundIO, r *Round, ended Ended, ran error) (rules.Result, error) {
	if reason := x.dir.Unfit(); reason != "" && ran == nil && ended.Exit != "0" {
		ran = Unfit(errors.New(reason))
	}
	result := rules.Result{
		Exit: ended.Exit, Reason: x.secrets.Mask(ended.Reason), Permanent: ended.Permanent, InProcess: e.s.inProcess(),
		ProgramSHA256: r.ProgramSHA256,
		Seconds:       task.For(ended.Elapsed), CPUSeconds: task.For(ended.CPU), MaxRSS: ended.MaxRSS,
	}
	full := x.dir.OnDisk() && e.s.freeDisk() == 0
	x.keepTail = isReleased(ran) || isLater(ran) || full && ran == nil
	e.reportLast(x)
	if !full || ran != nil { // a kept file would keep the disk full
		e.keepOutputs(e.s.maxOutputBytes())
	}
	texts, err := x.record.Read(e.s.maxOutputBytes(), e.s.name, x.secrets)
	e.read = err == nil
	result.Output, result.OutputBytes = texts.Output, texts.OutputBytes
	result.Error, result.ErrorBytes = texts.Error, texts.ErrorBytes
	if lost := x.record.Lost(); lost != nil {
		err = errors.Join(err, lost)
	}
	full = full || x.dir.OnDisk() && e.s.freeDisk() < min(texts.OutputBytes+texts.ErrorBytes, leastFree)
	switch {
	case full && ran == nil:
		return result, &shortageError{errDiskFull}
	case full && errors.Is(ran, errTimedOut):
		result.Error = rules.AppendLine(result.Error, errDiskFull.Error())
	}
	if err != nil || ran != nil {
		if isUnfit(ran) || isLater(ran) || isShortage(asShortage(errors.Join(ran, err))) {
			return result, maskError(x, ran)
		}
		return result, errors.Join(maskError(x, ran), err)
	}
	if result.JSON, err = x.dir.Result(); err != nil {
		return result, maskError(x, withExit(&result, err))
	}
	failed := result.HasFailed(e.task.FailOn)
	if failed {
		result.Reason = x.secrets.Mask(ended.Reason)
	}
	if !failed {
		err := e.packFiles(x, ended, &result)
		if err != nil {
			return result, maskError(x, withExit(&result, err))
		}
		if err := e.collectFollowing(x, r); err != nil {
			return result, maskError(x, withExit(&result, err))
		}
	}
	return result, nil
}

// collectFollowing collects the tasks that the round wants to open: those of its handler, and those of its file
// open.jsonl.
func (e *execution) collectFollowing(x *roundIO, r *Round) error {
	text, err := x.dir.Opens(task.MaxFollowingBytes)
	if err != nil {
		return err
	}
	e.following, err = broker.ParseLines(broker.Numbered("task %d that the handler opens", r.Opened()), text)
	return err
}

// maskError hides values of secrets in the text of an error. errors.Is and errors.As still find the original error. The
// errors of this package itself stay unchanged, even if a secret happens to be one of their words.
func maskError(x *roundIO, err error) error {
	if err == nil || err == errTimedOut || err == errStopping || err == errLeaseEnded {
		return err
	}
	text := x.secrets.Mask(err.Error())
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

// packFiles packs the files that the task brings back. If they exceed a limit, they stay here, because the work is
// done. Over HTTP, a worker does not know whether an exit status other than 0 is a failure; the server then says what
// is wrong.
func (e *execution) packFiles(x *roundIO, ended Ended, result *rules.Result) (err error) {
	if len(e.task.Fetch) == 0 {
		return nil
	}
	skip := func(name string) bool { return ended.unchanged[name] }
	found, err := x.dir.Find(e.task.Fetch, skip)
	if err == nil {
		err = e.bringBack(found, result)
	}
	if err != nil && e.task.FailOn == task.FailOnUnknown && result.Exit != "0" {
		return nil
	}
	if errors.As(err, new(rounddir.TooMuchError)) {
		result.Files.Kept = fmt.Sprintf("%v; they are on worker %s in %s", err, e.s.name, e.scratchPath())
		_, err = e.keepAs(scratchPlace, x.dir.KeepScratch)
	}
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}

// bringBack stores files as blobs if they are too large for Redis. It packs them otherwise, or if there are no blobs,
// no space for them, or none that may have these names.
func (e *execution) bringBack(found *rounddir.Found, result *rules.Result) (err error) {
	if found.Bytes > mostInRedis && mayBeBlobs(found) {
		err = e.storeFiles(found, result)
		if !errors.Is(err, blob.ErrElsewhere) && task.CodeOf(err) != task.CodeFull {
			return err
		}
	}
	result.Packed, result.Files, err = found.Pack(e.s.cfg.MaxFetch)
	return err
}

// mayBeBlobs reports whether the task may name the files as blobs, whatever their content is.
func mayBeBlobs(found *rounddir.Found) bool {
	longest := make([]string, len(found.Names))
	for i, name := range found.Names {
		longest[i] = task.Blob{SHA256: strings.Repeat("0", 64), Bytes: found.Bytes, Path: name}.String()
	}
	return task.CheckBlobs("fetch", longest) == nil
}

// mostInRedis is how many bytes of files Redis carries for a round if there are blobs.
const mostInRedis = 1 << 20

// storeFiles stores files as blobs, while the task stays with this worker. It ends with the time that a fetch may take.
func (e *execution) storeFiles(found *rounddir.Found, result *rules.Result) error {
	ctx, end := e.s.outlive(e.s.claiming, e.s.reporting, e.s.programBound(), 0)
	defer end(nil)
	defer context.AfterFunc(e.ctx, func() {
		if cause := context.Cause(e.ctx); isLost(cause) {
			end(cause)
		}
	})()
	r := e.renewal()
	r.Ended, r.Limit = true, task.For(e.s.cfg.FetchTimeout)+task.For(reportBound)
	if _, err := e.renewOne(ctx, r); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.s.cfg.FetchTimeout,
		errors.New("the copy took longer than a fetch may take"))
	defer cancel()
	store, err := e.s.broker.Blobs(ctx)
	if err != nil {
		return err
	}
	var made rules.Result
	for _, name := range found.Names {
		f, _, err := found.Open(name)
		if err != nil {
			return err
		}
		b, err := blob.Put(ctx, store, f, func(int64) {})
		f.Close()
		if err != nil {
			return err
		}
		b.Path = name
		made.Made = append(made.Made, b)
		made.Files.Count++
		made.Files.Bytes += b.Bytes
	}
	result.Made, result.Files = made.Made, made.Files
	return nil
}

// withExit adds the exit status to an error, because a refused round has no property for the exit status.
func withExit(result *rules.Result, err error) error {
	return fmt.Errorf("%w (%s ended with %s)", err, result.Subject(), result.Exit)
}

// leastFree is the free space in bytes below which the disk may have been full during the round.
const leastFree = 1 << 20

var errDiskFull = fmt.Errorf("the worker's disk is full, so output of the round may be cut: %w", syscall.ENOSPC)

// freeDisk returns how many bytes programs can write to the disk of the working directory. It is 0 if no file can be
// made.
func (w *Worker) freeDisk() int64 {
	var s syscall.Statfs_t
	switch err := syscall.Statfs(w.cfg.Directory, &s); {
	case err != nil, s.Blocks == 0:
		return math.MaxInt64
	case s.Files > 0 && s.Ffree == 0:
		return 0
	case os.Geteuid() == 0 && w.cfg.User == "": // root may use the reserve
		return int64(s.Bfree) * s.Bsize
	}
	return int64(s.Bavail) * s.Bsize
}
