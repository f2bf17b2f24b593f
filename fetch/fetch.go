package fetch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// Defaults of a [Fetcher].
const (
	DefaultTimeout     = 600 * time.Second
	DefaultIdleTimeout = 30 * time.Second
	DefaultRetryPause  = 500 * time.Millisecond
)

// A Fetcher fetches programs into directories below one working directory. Other processes may use the same working
// directory. A Fetcher is safe for concurrent use. Do not change its fields after its first use. The zero value of a
// field means its default.
type Fetcher struct {
	Dir string // the working directory; "" means the current directory of the process
	// maximum time of a call of Fetch, including setup.sh and waiting for other calls; default 600 s
	Timeout time.Duration
	Limits  Limits

	Compressions []Compression // of the tars that Fetch unpacks; without any, it unpacks only plain tars, and zips

	// Blob opens the content of a source redis:SHA256. If the content is not stored, Blob returns an error that wraps
	// fs.ErrNotExist. If Blob is nil, a fetch of a source redis:SHA256 fails.
	Blob func(ctx context.Context, sha256 string) (io.ReadCloser, error)

	// Setup runs ./setup.sh in a program's directory until the script ends or ctx is done. The environment of the
	// script consists of env alone. Setup ends all processes of the script, and returns the last part of the script's
	// output. If Setup is nil, setup.sh runs in a separate process group, and Fetch ends only the processes of this
	// group. The processes of the script keep the file lock open. So if this process is killed, no other process
	// changes the program while they still run.
	Setup func(ctx context.Context, dir string, env []string, lock *os.File) (printed []byte, err error)

	User *User // the user as which programs run; nil means the user of this process

	// Outputs is a directory below the directories of programs in which workers keep outputs, such as "results". A
	// failed fetch does not remove it, and the copy of a directory made by hand lacks its files. "" means that there
	// is none.
	Outputs string

	Cache *Cache // remembers the answers of Ready; nil means that each call of Ready checks everything

	IdleTimeout time.Duration // maximum time for which an http server or rsync may send no data; default 30 s
	// pause before the first retry of a download; each later pause is twice as long as the one before; default 0.5 s
	RetryPause time.Duration
	Transport  http.RoundTripper // for http and https; the default respects HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	Log        *slog.Logger      // nil means no log
}

// A Program is a program whose directory is complete.
type Program struct {
	Dir     string // absolute
	SHA256  string // SHA-256 of the source's content; "" for a directory made by hand
	Fetched bool   // whether this call fetched the program
}

// Fetch fetches the program if its directory is not complete, and returns the program. The directory is ./$program/ or,
// if that holds the program of another source, one beside it. If several calls run at once, even
// in several processes, one call fetches the program and the others wait. If a call fails, ./$program/ does not change.
// The error is an *[Error], or an error of [task.Properties.Validate] if the arguments are invalid.
func (f *Fetcher) Fetch(ctx context.Context, program, source string) (Program, error) {
	p, err := f.fetchOnce(ctx, program, source)
	if errors.Is(err, ErrOtherSource) { // that source was faster: the program goes into a directory of its own
		p, err = f.fetchOnce(ctx, program, source)
	}
	return p, err
}

func (f *Fetcher) fetchOnce(ctx context.Context, program, source string) (Program, error) {
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

// Ready reports whether ./$program/ contains a run.sh that was fetched from this source or made by hand. Ready is
// cheaper than Fetch. If the programs' user cannot execute run.sh, Ready makes run.sh executable. If Ready returns
// false without an error, call Fetch. With a Cache, Ready may return an answer that is up to a second old. It then
// checks only that run.sh and the program's record have not changed.
func (f *Fetcher) Ready(program, source string) (Program, bool, error) {
	q := question{program, source, f.User.id()}
	if f.Cache != nil {
		if p, ok := f.Cache.get(q); ok {
			return p, true, nil
		}
	}
	j, err := f.job(program, source)
	if err != nil {
		return Program{}, false, err
	}
	var before answer
	cacheable := false
	if f.Cache != nil {
		before, cacheable = f.Cache.prepare(j.dir)
	}
	p, ok, err := j.ready()
	if ok && err == nil && cacheable {
		f.Cache.put(q, before, p)
	}
	return p, ok, failed(context.Background(), j.src, StepCheck, err)
}

// A job is one call of Fetch or Ready. It contains a copy of the Fetcher, in which defaults have replaced zero values.
type job struct {
	Fetcher
	program string // the name of its directory
	src     task.Source
	dir     string // ./$program/, absolute
	stage   string // absolute path of the staging directory; only the lock's holder writes to it
	locked  *os.File

	original string // the program that is copied; "" for a fetch
	again    bool   // the program is fetched again, although it is complete
}

func (f *Fetcher) job(program, source string) (*job, error) {
	d := task.Defaults(program, source, "")
	if err := d.Validate(); err != nil {
		return nil, err
	}
	src, err := task.ParseSource(source)
	if err != nil {
		return nil, err
	}
	j := &job{Fetcher: *f, program: program, src: src}
	j.defaults()
	if j.Dir, err = filepath.Abs(f.Dir); err != nil {
		return nil, failed(context.Background(), src, StepCheck, err)
	}
	j.at(program)
	if rec, err := readRecord(j.dir); err == nil && rec != nil && rec.ID != sourceID(src) {
		j.at(program + "~x" + sourceID(src)[:asideDigits])
	}
	return j, nil
}

// at sets the name of the program's directory.
func (j *job) at(name string) {
	j.program, j.dir, j.stage = name, filepath.Join(j.Dir, name), filepath.Join(j.Dir, stagingDir, name)
}

// asideDigits is how many digits of the source's id tell the directories of programs with the same name apart, if the
// directory with the name itself holds another source's program. Otherwise, the first source would keep the name.
const asideDigits = 16

func (j *job) defaults() {
	j.Timeout = cmp.Or(max(j.Timeout, 0), DefaultTimeout)
	j.IdleTimeout = cmp.Or(max(j.IdleTimeout, 0), DefaultIdleTimeout)
	j.RetryPause = cmp.Or(max(j.RetryPause, 0), DefaultRetryPause)
	if j.Log == nil {
		j.Log = slog.New(slog.DiscardHandler)
	}
	j.Limits = j.Limits.withDefaults()
}

// fetch fetches the program. The caller must hold the program's lock.
func (j *job) fetch(ctx context.Context) (Program, error) {
	began := time.Now()
	if err := j.checkTarget(); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	if !j.again {
		if err := j.repair(); err != nil {
			return Program{}, failed(ctx, j.src, StepInstall, err)
		}
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
	if err := j.uninstall(); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	if err := j.install(ctx, sum); err != nil {
		return Program{}, failed(ctx, j.src, StepInstall, err)
	}
	j.Log.Info("program fetched", "program", j.program, "source", j.src.String(), "sha256", sum, "took",
		time.Since(began))
	return Program{Dir: j.dir, SHA256: sum, Fetched: true}, nil
}

// makeTree unpacks the source's content into the staged tree, and checks the run.sh at the top of the tree.
func (j *job) makeTree(ctx context.Context) error {
	tree := j.staged(stagedTree)
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	if j.src.Script {
		if err := os.Rename(j.staged(stagedPayload), filepath.Join(tree, runScript)); err != nil {
			return err
		}
	} else if err := unpack(ctx, j.staged(stagedPayload), tree, j.Limits, j.Compressions); err != nil {
		return err
	}
	return j.checkRunScript(tree)
}
