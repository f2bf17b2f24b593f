package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/sweep"
)

// A sentFile is a file of --send-each that several commands need, as it was when it was stored.
type sentFile struct {
	blob    task.Blob
	size    int64
	changed time.Time
}

// mostSent is how many files the call remembers, so that it stores a file for several commands once.
const mostSent = 1000

// send stores a file of --send-each for the task of an input.
func (c *campaign) send(ctx context.Context, of *task.Properties, t *template, row *sweep.Row, number int64) error {
	name, err := t.one(row, number)
	if err != nil {
		return err
	}
	if !filepath.IsLocal(name) {
		return cli.Usagef("--send-each: input %d: %s: want a path below the current directory, because the command gets the "+
			"file at the same place below its own", number, name)
	}
	b, err := c.store(ctx, filepath.Join(c.dir, name))
	if err != nil {
		return fmt.Errorf("--send-each: input %d: %w", number, err)
	}
	b.Path = filepath.ToSlash(filepath.Clean(name))
	if of.Blobs = append(of.Blobs, b.String()); len(of.Blobs) > 1 {
		return task.CheckBlobs("--send-each", of.Blobs)
	}
	return nil
}

func (c *campaign) store(ctx context.Context, path string) (task.Blob, error) {
	f, err := os.Open(path)
	if err != nil {
		return task.Blob{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return task.Blob{}, err
	case !info.Mode().IsRegular():
		return task.Blob{}, fmt.Errorf("%s is no regular file; --send PATH sends a directory", path)
	}
	known := c.sent[path]
	if known.blob.SHA256 != "" && known.size == info.Size() && known.changed.Equal(info.ModTime()) {
		have, err := c.blobs.WriteBlob(ctx, known.blob, 0, nil) // a use, so that it stays
		if err != nil || have == known.blob.Bytes {
			return known.blob, err
		}
	}
	if c.blobs == nil {
		c.blobs, err = c.openBlobs(ctx)
		if err != nil {
			return task.Blob{}, err
		}
	}
	before := c.sentBytes.Load()
	b, err := blob.Put(ctx, c.blobs, f, func(bytes int64) { c.sentBytes.Store(before + bytes) })
	if err == nil {
		if c.sent == nil || len(c.sent) >= mostSent { // inputs that need the same file mostly follow one another
			c.sent = map[string]sentFile{}
		}
		c.sent[path] = sentFile{b, info.Size(), info.ModTime()}
	}
	return b, err
}

// openBlobs returns the store of the blobs, if this machine has their directory.
func (c *campaign) openBlobs(ctx context.Context) (blob.Store, error) {
	store := managing.Of(c.m.Manager).Store
	id, path, err := store.Blobs.BlobPlace(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := blob.FindDir(id, path)
	if err != nil {
		return nil, fmt.Errorf("%w; or run the command on the machine of the API", err)
	}
	return blob.Direct{Dir: dir, Registry: store.Blobs}, nil
}
