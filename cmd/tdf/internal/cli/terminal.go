package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// A Terminal records whether stdout and stderr are terminals, and what stdout can show.
type Terminal struct {
	Out, Err bool
	colour   bool // stdout can show colours
	Width    int  // number of columns of stdout; 0 if stdout is not a terminal
}

func newTerminal(p *Process) Terminal {
	t := Terminal{Out: IsTerminal(p.Stdout), Err: IsTerminal(p.Stderr)}
	t.colour = t.Out && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb"
	if f, ok := p.Stdout.(*os.File); ok && t.Out {
		t.Width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			t.Width = width
		}
	}
	return t
}

func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Confirm asks the user on the terminal whether to do the action. Without a terminal, it requires --yes.
func (a *App) Confirm(ctx context.Context, action string, yes bool) error {
	if yes {
		return nil
	}
	if !IsTerminal(a.Stdin) {
		return Usagef("nothing was done: stdin is not a terminal, so the command cannot ask for confirmation; --yes " +
			"skips the question")
	}
	fmt.Fprintf(a.Stderr, "%s? [y/N] ", action)
	answer, err := bufio.NewReader(Interruptible(ctx, a.Stdin)).ReadString('\n')
	if ctx.Err() != nil {
		a.Say("")
		return context.Cause(ctx)
	}
	if err != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		a.Say("nothing was done")
		return ErrProblems
	}
	return nil
}

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

// OpenFile opens a file that the user names. If the file is a pipe without a writer, OpenFile waits for a writer until
// ctx ends.
func (a *App) OpenFile(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(a.Path(path))
		done <- opened{file, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Stream returns a reader of the input. Reads from a pipe or terminal end when ctx ends. If the input is a regular
// file, stream returns the file itself, so that it stays seekable.
func Stream(ctx context.Context, in io.Reader) io.Reader {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return in
		}
	}
	return Interruptible(ctx, in)
}
