package fetch

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf"
)

// Defaults of a [Fetcher].
const (
	DefaultTimeout     = 600 * time.Second
	DefaultIdleTimeout = 30 * time.Second
	DefaultRetryPause  = 500 * time.Millisecond
)

// A Fetcher makes programs' directories below one working directory, which other workers, also
// in other processes, may share. It may be used by many goroutines. Its fields are not changed
// once it is in use; zero values mean the defaults.
type Fetcher struct {
	Dir     string        // the working directory; "" is the process's own
	Timeout time.Duration // of one Fetch, waiting and setup.sh included (fetch_timeout); 600 s
	Limits  Limits

	// Blob opens what is stored for redis:SHA256. Where it is nil, such sources are refused.
	// It returns an error that wraps fs.ErrNotExist where nothing is stored under that sum.
	Blob func(ctx context.Context, sha256 string) (io.ReadCloser, error)

	// Setup runs ./setup.sh in a program's directory, with all of its environment given, to its end or
	// that of ctx, ends what it started, and returns the last that was printed. Where it is nil,
	// setup.sh has a process group of its own, and what leaves that is out of reach.
	Setup func(ctx context.Context, dir string, env []string) (printed []byte, err error)

	// OtherUser: programs run as another user than this process. Then whoever can read run.sh may
	// execute it, too.
	OtherUser bool
	User      int // that user's id: what belongs to it is trusted as what belongs to this process's own

	IdleTimeout time.Duration     // how long http and rsync wait for the next byte; 30 s
	RetryPause  time.Duration     // before the first retry of a download, then doubled; 0.5 s
	Transport   http.RoundTripper // for http and https; nil: one that minds HTTP_PROXY and its kin
	Log         *slog.Logger      // nil: no log
}

// A Program is a program's directory, complete.
type Program struct {
	Dir     string // absolute
	SHA256  string // of what came from the source; "" for a directory made by hand
	Fetched bool   // by this call, that is; false where it was there
}

// Fetch makes ./$program/ complete if it is not, and returns it. Of many calls at once, in any
// number of processes, one fetches and the others wait for it. If it fails, ./$program/ is as
// it was. The error is an *[Error], or what [tdf.Properties.Validate] says of the two names.
func (f *Fetcher) Fetch(ctx context.Context, program, source string) (Program, error) {
	j, err := f.job(program, source)
	if err != nil {
		return Program{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, timeoutError{j.Timeout})
	defer cancel()
	if p, ok, err := j.ready(); ok || err != nil {
		return p, failed(ctx, j.src, StepCheck, err)
	}
	unlock, err := j.lock(ctx)
	if err != nil {
		return Program{}, failed(ctx, j.src, StepWait, err)
	}
	defer unlock()
	if p, ok, err := j.ready(); ok || err != nil {
		return p, failed(ctx, j.src, StepCheck, err)
	}
	return j.fetch(ctx)
}

// Ready is the cheap check for the usual case: that ./$program/run.sh is there, and came from
// this source or was made by hand. It makes run.sh executable where it is not for those who run it.
// False without an error means that Fetch has something to do.
func (f *Fetcher) Ready(program, source string) (Program, bool, error) {
	j, err := f.job(program, source)
	if err != nil {
		return Program{}, false, err
	}
	p, ok, err := j.ready()
	return p, ok, failed(context.Background(), j.src, StepCheck, err)
}

// A job is one call of Fetch or Ready, with every default filled in.
type job struct {
	Fetcher
	program string
	src     tdf.Source
	dir     string // ./$program/, absolute
	stage   string // where only the lock's holder writes, absolute
}

func (f *Fetcher) job(program, source string) (*job, error) {
	d := tdf.Defaults(program, source, "")
	if err := d.Validate(); err != nil {
		return nil, err
	}
	src, err := tdf.ParseSource(source)
	if err != nil {
		return nil, err
	}
	j := &job{Fetcher: *f, program: program, src: src}
	j.defaults()
	if j.Dir, err = filepath.Abs(f.Dir); err != nil {
		return nil, failed(context.Background(), src, StepCheck, err)
	}
	j.dir = filepath.Join(j.Dir, program)
	j.stage = filepath.Join(j.Dir, stagingDir, program)
	return j, nil
}

func (j *job) defaults() {
	if j.Timeout <= 0 {
		j.Timeout = DefaultTimeout
	}
	if j.IdleTimeout <= 0 {
		j.IdleTimeout = DefaultIdleTimeout
	}
	if j.RetryPause <= 0 {
		j.RetryPause = DefaultRetryPause
	}
	if j.Log == nil {
		j.Log = slog.New(slog.DiscardHandler)
	}
	j.Limits = j.Limits.withDefaults()
}

// fetch is what the lock's holder does.
func (j *job) fetch(ctx context.Context) (Program, error) {
	began := time.Now()
	if err := j.checkTarget(); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	if err := j.repair(); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	if err := j.openStage(); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	defer j.closeStage()
	sum, err := j.obtain(ctx)
	if err != nil {
		return Program{}, failed(ctx, j.src, j.obtainStep(), err)
	}
	if err := j.makeTree(ctx); err != nil {
		return Program{}, failed(ctx, j.src, StepUnpack, err)
	}
	if err := j.install(ctx, sum); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	j.Log.Info("fetched", "program", j.program, "source", j.src.String(), "sha256", sum, "took", time.Since(began))
	return Program{Dir: j.dir, SHA256: sum, Fetched: true}, nil
}

// makeTree turns the payload into the staged tree, which has a good run.sh at its top.
func (j *job) makeTree(ctx context.Context) error {
	tree := j.staged(stagedTree)
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	if j.src.Script {
		if err := os.Rename(j.staged(stagedPayload), filepath.Join(tree, runScript)); err != nil {
			return err
		}
	} else if err := unpack(ctx, j.staged(stagedPayload), tree, j.Limits); err != nil {
		return err
	}
	return j.checkRunScript(tree)
}
