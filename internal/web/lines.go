package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
)

// Bounds of calls that open tasks line by line.
const (
	linesAtOnce = 250         // in one step
	linesBytes  = 1 << 20     // of the lines of one step, and of one line
	lineTime    = time.Minute // for the client to send a line
)

// addLines adds the route that opens tasks line by line.
func (a *api) addLines() {
	const path = "/tasks/stream"
	add(a, route{
		http.MethodPost, path, "open-stream", "Open any number of tasks, from JSON Lines that may still grow",
		toOpen, false,
	}, a.openLines)
	a.alsoAnswers("open-stream", jsonLines)
	o := a.huma.OpenAPI().Paths[base+path].Post
	o.Metadata = map[string]any{readsItself: true}
	o.RequestBody = &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{jsonLines: {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
}

type linesInput struct {
	Key string `header:"Idempotency-Key" maxLength:"200" doc:"a text of your own; a second call with this key and the same lines, within a day, opens nothing twice"`
}

// linesDone is a line of the answer: what has become of the lines of the body up to a line.
type linesDone struct {
	Line     int      `json:"line" doc:"the number of the last line that was read"`
	IDs      []int64  `json:"ids,omitempty" doc:"the ids of the tasks that were opened since the last line of the answer"`
	Existing []int64  `json:"existing,omitempty"`
	Opened   int      `json:"opened" doc:"the number of tasks that the call has opened so far"`
	Done     bool     `json:"done,omitempty" doc:"all lines were read, and all of their tasks were opened"`
	Error    *problem `json:"error,omitempty" doc:"why the call ended early; no task of this line or a later one was opened"`
}

// A lineOpener opens the tasks of the lines of a body.
type lineOpener struct {
	*api
	*stream
	key     string
	control *http.ResponseController
	in      *bufio.Reader
	batch   []manager.Definition
	bytes   int
	account pool.Account // of the batch
	alone   bool         // the last line waits for other tasks, which may not exist, so it has a step of its own
	steps   int
	done    linesDone
}

func (a *api) openLines(_ context.Context, c *call, in *linesInput) (*streamed, error) {
	if err := checkType(c.request, []string{jsonLines}); err != nil {
		return nil, err
	}
	control := http.NewResponseController(c.ResponseWriter)
	c.body.free = true             // each line has its own deadline
	_ = control.EnableFullDuplex() // an error means HTTP/2, which is always so, or a test
	if err := c.account.Take(2 * linesBytes); err != nil {
		return nil, err
	}
	return nil, a.stream(c, jsonLines, func(s *stream) error {
		o := &lineOpener{api: a, stream: s, key: in.Key, control: control, in: bufio.NewReaderSize(c.request.Body,
			linesBytes)}
		o.account.Begin(a.memory, c.token.Holder())
		defer o.account.End()
		err := o.openAll()
		if err != nil {
			o.done.Error = a.problemOf(c.request.Context(), bodyOrOther(err))
			if c.status == 0 {
				return o.done.Error
			}
		}
		o.done.Done = err == nil
		return o.answer()
	})
}

// bodyOrOther returns the problem for an error of openAll.
func bodyOrOther(err error) error {
	if of := new(bodyError); errors.As(err, &of) {
		return bodyProblem(of.error)
	}
	return err
}

// A bodyError is an error of reading a body.
type bodyError struct{ error }

// openAll opens the tasks of all lines. It opens what has arrived before it waits for more, unless the call may be
// repeated: then each step must have the same lines as in the first call.
func (o *lineOpener) openAll() error {
	for {
		// an error means that there is no connection, as in tests
		_ = o.control.SetReadDeadline(time.Now().Add(lineTime))
		line, err := o.in.ReadSlice('\n')
		if len(line) > 0 || err == nil {
			o.done.Line++
		}
		switch {
		case err == bufio.ErrBufferFull:
			return o.openThen(refuse(tooLarge, fmt.Sprintf("line %d has more than %d bytes", o.done.Line, linesBytes)))
		case err != nil && err != io.EOF:
			// ended because of the same error, but the client may still read
			o.stream.ctx = context.WithoutCancel(o.ctx)
			return o.openThen(&bodyError{err})
		}
		if wrong := o.add(line); wrong != nil {
			return o.openThen(wrong)
		}
		waits := o.key == "" && !o.hasLine()
		if len(o.batch) >= linesAtOnce || o.bytes >= linesBytes || o.alone || waits || err == io.EOF {
			if err := o.open(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// hasLine reports whether a whole line has arrived.
func (o *lineOpener) hasLine() bool {
	arrived, _ := o.in.Peek(o.in.Buffered())
	return bytes.IndexByte(arrived, '\n') >= 0
}

// openThen opens the tasks of the lines before the present one, and returns an error about the present line.
func (o *lineOpener) openThen(err error) error {
	o.done.Line--
	opening := o.open()
	o.done.Line++
	if opening != nil {
		return opening
	}
	return err
}

// add adds the task of a line to the batch.
func (o *lineOpener) add(line []byte) error {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	d, err := o.parse(line)
	if err != nil {
		return o.problemOf(o.request.Context(), fmt.Errorf("line %d: %w", o.done.Line, invalid(err)))
	}
	o.alone = d.After != nil || d.AfterAny != nil
	if o.alone {
		if err := o.openThen(nil); err != nil {
			return err
		}
	}
	o.batch, o.bytes = append(o.batch, d), o.bytes+len(line)
	return nil
}

func (o *lineOpener) parse(line []byte) (d manager.Definition, err error) {
	if err := wire.CheckJSON(pool.With(o.ctx, &o.account), line, reflect.TypeFor[manager.Definition]()); err != nil {
		return d, err
	}
	if err := readJSON(line, &d); err != nil {
		return d, err
	}
	if err := o.token.Claim(&d); err != nil {
		return d, err
	}
	if hasPlaces(d.After) || hasPlaces(d.AfterAny) {
		return d, errPlaces
	}
	properties := o.defaults
	d.Fill(&properties)
	return d, properties.Validate()
}

// invalid returns an error that has a code. JSON that cannot be read is invalid.
func invalid(err error) error {
	if task.CodeOf(err) == task.CodeFailed {
		return task.NewError(task.CodeInvalid, err.Error())
	}
	return err
}

var errPlaces = task.NewError(task.CodeInvalid,
	"places are not possible, because lines are opened in batches; name tasks by their ids")

func hasPlaces(d *manager.Dependencies) bool { return d != nil && len(d.Places) > 0 }

// open opens the tasks of the batch, and answers with their ids.
func (o *lineOpener) open() error {
	if len(o.batch) == 0 {
		return nil
	}
	if err := o.api.claim(o.ctx, o.call, o.batch); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(o.ctx, 10*o.Timeout)
	defer cancel()
	tasks, err := o.openStep(ctx)
	of := o.openedBy(tasks)
	o.done.IDs, o.done.Existing, o.done.Opened = of.IDs, of.Existing, o.done.Opened+len(of.IDs)-len(of.Existing)
	o.batch, o.bytes, o.steps = nil, 0, o.steps+1
	o.account.Begin(o.memory, o.token.Holder())
	if err != nil {
		return err
	}
	return o.answer()
}

func (o *lineOpener) openStep(ctx context.Context) ([]*manager.Task, error) {
	if o.key == "" {
		return o.call.manager.Open(ctx, o.batch...)
	}
	return o.call.manager.OpenOnce(ctx, o.onceKey(strconv.Itoa(o.steps)+" "+o.key), o.batch...)
}

// answer writes a line of the answer.
func (o *lineOpener) answer() error {
	err := wire.Encoder(o.stream).Encode(&o.done)
	o.done.IDs, o.done.Existing = nil, nil
	if err != nil {
		return err
	}
	return o.flush()
}
