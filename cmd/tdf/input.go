package main

import (
	"context"
	"io"
	"os"
)

// interruptible lets go of a reader that waits, when ctx ends.
func interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	pr, pw := io.Pipe()
	context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	return pr
}

// openFile is os.Open, but for a pipe that nobody writes to yet: then it goes on when ctx ends.
func openFile(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stream is what can be read once, and may keep one waiting; a file that can be read again stays as it is.
func stream(ctx context.Context, in io.Reader) io.Reader {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return in
		}
	}
	return interruptible(ctx, in)
}
