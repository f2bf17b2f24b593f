package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// outputs are the two files that a program writes to directly, so that nothing of the worker
// stands between, whatever it prints and whoever goes on writing. They stay when the round is over.
type outputs struct{ out, err *os.File }

func (e *execution) openOutputs() (outputs, error) {
	out, err := createOutput(e.path(e.w.cfg.TaskOutputFilename))
	if err != nil {
		return outputs{}, fmt.Errorf("the file for stdout ([worker] task_output_filename): %w", err)
	}
	failure, err := createOutput(e.path(e.w.cfg.TaskErrorFilename))
	if err != nil {
		out.Close()
		return outputs{}, fmt.Errorf("the file for stderr ([worker] task_error_filename): %w", err)
	}
	return outputs{out, failure}, nil
}

// createOutput makes a new file, also where there is one of that name: what ran before may still
// write to that. It appends, as a shell's >> does.
func createOutput(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
}

func (o outputs) close() {
	o.out.Close()
	o.err.Close()
}

// read returns what is in the files, at most so many bytes of each.
func (o outputs) read(most int64, worker string) (out, failure string, err error) {
	out, err = readOutput(o.out, most, worker)
	if err != nil {
		return "", "", fmt.Errorf("reading stdout: %w", err)
	}
	failure, err = readOutput(o.err, most, worker)
	if err != nil {
		return "", "", fmt.Errorf("reading stderr: %w", err)
	}
	return out, failure, nil
}

// readOutput returns the file to the byte. Of a longer one the beginning and the end are returned,
// and between them a line that says what is missing and where it is.
func readOutput(f *os.File, most int64, worker string) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	size := info.Size()
	if size <= most {
		return readAt(f, 0, size)
	}
	head, err := readAt(f, 0, most-most/2)
	if err != nil {
		return "", err
	}
	tail, err := readAt(f, size-most/2, most/2)
	if err != nil {
		return "", err
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	note := fmt.Sprintf("[%d bytes are left out here; all of it is on worker %s in %s]\n", size-most, worker, f.Name())
	return head + note + tail, nil
}

// readAt reads n bytes, fewer where the file has become shorter.
func readAt(f *os.File, offset, n int64) (string, error) {
	var b strings.Builder
	b.Grow(int(n))
	_, err := io.Copy(&b, io.NewSectionReader(f, offset, n))
	return b.String(), err
}
