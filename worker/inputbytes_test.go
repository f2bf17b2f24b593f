package worker

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

func encoded(d *task.Properties) { d.InputEncoding = task.InputBase64 }

// A program finds an input of any bytes in a file, and gets no arguments, also in a later round. The next round of another task in the same
// directory has no such file.
func TestInputsOfAnyBytes(t *testing.T) {
	w := newWorld(t)
	w.script("p", `echo "$# arguments"; cat "$TDF_DIR/input" 2>/dev/null || echo none; [ $TDF_ROUND = 0 ] && [ $TDF_TASK_ID = 1 ] && exit 1; exit 0`)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	onExit := func(d *task.Properties) { d.FailOn = tdf.FailOnExit }
	for i, data := range [][]byte{every, {}, bytes.Repeat([]byte{0}, task.MaxInput/4*3)} {
		id := w.open(base64.StdEncoding.EncodeToString(data), encoded, onExit)
		w.runOnce(w.worker())
		got := w.finished(id)
		if i == 0 {
			m := expect.Result(rules.Reopen(got)).Value(t)
			must(t, w.applied(m))
			w.runOnce(w.worker())
			got = w.finished(id)
			expect.Equal(t, got.Round, 1, "round of task", id)
		}
		expect.Equal(t, got.State, tdf.Succeeded, id)
		expect.Equal(t, got.Current().Output, "0 arguments\n"+string(data), id)
	}
	plain := w.open("a b")
	w.runOnce(w.worker())
	expect.Equal(t, w.finished(plain).Current().Output, "2 arguments\nnone\n")
}

// A handler gets the bytes as its input, and finds them in the round's directory.
func TestHandlersGetInputsOfAnyBytes(t *testing.T) {
	w := newWorld(t)
	data := "\x00\xff'\" \n"
	id := w.open(base64.StdEncoding.EncodeToString([]byte(data)), forHandler("p"), encoded)
	w.runOnce(w.worker(Handle("p", func(_ context.Context, r *Round) error {
		dir, err := r.Dir()
		if err != nil {
			return err
		}
		file, err := os.ReadFile(filepath.Join(dir, "input"))
		if r.Input != data || len(r.Args) > 0 || string(file) != data {
			err = errors.Join(err, fmt.Errorf("the handler got %q, %q and %q", r.Input, r.Args, file))
		}
		return err
	})))
	expect.Equal(t, w.finished(id).LastError(), "")
}
