package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tdf-framework/tdf/internal/task"
)

// obtain writes the source's content to the file payload, and returns the SHA-256 of the content.
func (j *job) obtain(ctx context.Context) (string, error) {
	var sum string
	var err error
	switch {
	case j.src.Scheme == task.SchemeRedis:
		sum, err = j.fromRedis(ctx)
	case j.src.Scheme != task.SchemeRsync:
		sum, err = j.download(ctx)
	case j.src.Host == "" && j.User == nil:
		sum, err = j.copyLocal(ctx)
	default:
		sum, err = j.rsync(ctx)
	}
	if err != nil {
		return "", err
	}
	if want := j.src.SHA256; want != "" && want != sum {
		return "", fmt.Errorf("the content has the SHA-256 %s; the source demands %s", sum, want)
	}
	return sum, nil
}

func (j *job) obtainStep() Step {
	switch j.src.Scheme {
	case task.SchemeRsync:
		return StepRsync
	case task.SchemeRedis:
		return StepRedis
	}
	return StepDownload
}

// spool writes all bytes of r to the file payload, and returns their SHA-256. It fails if r contains too many bytes, or
// if ctx ends.
func (j *job) spool(ctx context.Context, r io.Reader) (sum string, err error) {
	f, err := os.OpenFile(j.staged(stagedPayload), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	r = io.LimitReader(contextReader{ctx, r}, j.Limits.Bytes+1)
	n, err := io.Copy(io.MultiWriter(f, hash), r)
	switch {
	case err != nil:
		return "", err
	case n > j.Limits.Bytes:
		return "", j.Limits.tooManyBytes()
	case n == 0:
		return "", errors.New("the source is empty (0 bytes)")
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// contextReader is a reader whose reads fail after ctx has ended.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// fromRedis writes the content of a source redis:SHA256 to the file payload. The caller must check the SHA-256.
func (j *job) fromRedis(ctx context.Context) (string, error) {
	if j.Blob == nil {
		return "", errors.New("no Redis to fetch from")
	}
	r, err := j.Blob(ctx, j.src.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("nothing is stored in this namespace under that SHA-256; store the archive again")
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	return j.spool(ctx, r)
}

// copyLocal copies a source rsync:PATH, a file of this machine, to the file payload. It does not need rsync. If
// programs run as another user, rsync copies the file, because this process may read files that the user may not.
func (j *job) copyLocal(ctx context.Context) (string, error) {
	name := j.src.Location
	if !filepath.IsAbs(name) {
		name = filepath.Join(j.Dir, name)
	}
	// With O_NONBLOCK, opening a named pipe does not wait for a writer.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s is a directory; a source is one file", name)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is a %s, not a regular file", name, kind(info.Mode()))
	case info.Size() > j.Limits.Bytes:
		return "", j.Limits.tooManyBytes()
	}
	return j.spool(ctx, f)
}
