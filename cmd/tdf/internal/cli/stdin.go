package cli

import (
	"context"
	"io"
	"os"
)

// Interruptible returns a reader whose reads end when ctx ends.
func Interruptible(ctx context.Context, r io.Reader) io.ReadCloser {
	pr, pw := io.Pipe()
	context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(pw, r)
		pw.CloseWithError(err)
	}()
	return pr
}

// OpenFile opens a file. If the file is a pipe without a writer, openFile waits for a writer until ctx ends.
func OpenFile(ctx context.Context, path string) (*os.File, error) {
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

// Stream returns a reader of the input. Reads from a pipe or terminal end when ctx ends. If the input is a regular file, stream
// returns the file itself, so that it stays seekable.
func Stream(ctx context.Context, in io.Reader) io.Reader {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return in
		}
	}
	return Interruptible(ctx, in)
}
