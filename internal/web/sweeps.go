package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"

	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// addSweeps adds the route of sweeps.
func (a *api) addSweeps() {
	addReading(a, route{http.MethodPost, "/sweeps", "open-sweep", "Open a campaign with a task for each row of CSV " +
		"or JSON Lines", toOpen, true}, []string{csvType, jsonLines}, a.openSweep)
}

// rowsAtOnce is the number of tasks that one step opens. The account of the call bounds the number of rows.
const (
	rowsAtOnce = 250
	maxTask    = 2 * task.MaxInput
	pointBytes = 100 // of the digest of a row, in a map that grows
)

type sweepInput struct {
	Type    string `header:"Content-Type"`
	Task    string `query:"task" maxLength:"100000" doc:"the properties of all tasks as a JSON object: program, source, campaign and others, without meta, and without an input in words; without it, the first line of JSON Lines has the object"`
	Input   string `query:"input" maxLength:"100000" doc:"a template of the input: {a} stands for the value of parameter a; without it, the input has all parameters in their order"`
	Extend  bool   `query:"extend" doc:"add the points that the campaign does not have; without it, the campaign must be new"`
	RawBody []byte `contentType:"text/csv"`
}

// swept is the answer to a call that opens a sweep.
type swept struct {
	Campaign string `json:"campaign"`
	Opened   int64  `json:"opened"`
	Known    int64  `json:"known" doc:"the number of rows whose tasks the campaign had already"`
	Repeated int64  `json:"repeated" doc:"the number of rows that repeat an earlier row; each has a task"`
	FailOn   string `json:"fail_on" doc:"the rule by which rounds of the tasks fail"`
}

// A sweeper opens the tasks of a sweep.
type sweeper struct {
	*api
	*call
	base   task.Properties
	input  *sweep.Template                    // nil for all parameters in their order
	rows   func() iter.Seq2[sweep.Row, error] // called for each walk
	extend bool
	isNew  bool // whether the campaign has no tasks yet
	points sweep.Tally
	opened int64
	before int64 // the number of tasks that this call had opened when it became an extension
	beside int64 // the number of points that another call has opened meanwhile

	preview int      // how many inputs to keep
	first   []string // the first inputs
}

func (a *api) openSweep(ctx context.Context, c *call, in *sweepInput) (*out[swept], error) {
	parse := sweep.JSONL
	if kind, _, _ := mime.ParseMediaType(in.Type); kind != jsonLines {
		parse = sweep.CSV
	} else if in.Task == "" {
		line, _, _ := bytes.Cut(in.RawBody, []byte("\n"))
		in.Task, in.RawBody = string(line[:min(len(line), maxTask)]), in.RawBody[len(line):] // the rows keep their numbers
	}
	s, err := a.sweeper(ctx, c, in, func() iter.Seq2[sweep.Row, error] { return parse(bytes.NewReader(in.RawBody)) })
	if err != nil {
		return nil, err
	}
	done, err := s.run(ctx)
	return &out[swept]{done}, err
}

// run opens the tasks of a sweep. If another call has extended the campaign that it opens, or has just opened the one
// that it extends, run starts over as an extension: only its tasks have keys, so that none is opened twice.
func (s *sweeper) run(ctx context.Context) (swept, error) {
	for {
		checked, err := s.openAll(ctx)
		if err == nil {
			known := checked.Known + s.beside - s.before
			return swept{s.base.Group, s.opened, known, checked.Repeated, string(s.base.FailOn)}, nil
		}
		if !managing.MustExtend(err) && (!s.extend || !errors.Is(err, manager.ErrGroupTaken)) {
			return swept{}, partly(int(s.opened), err)
		}
		s.extend, s.before, s.beside = true, s.opened, 0
	}
}

// openAll opens the tasks that the campaign needs, and closes the campaign.
func (s *sweeper) openAll(ctx context.Context) (*sweep.Walk, error) {
	if s.extend {
		if err := s.readPoints(ctx); err != nil {
			return nil, err
		}
	}
	checked := &sweep.Walk{Points: s.points}
	if err := s.walk(ctx, checked, nil); err != nil { // nothing is opened if any row is invalid
		return nil, err
	}
	if checked.Admitted > 0 {
		if err := s.walk(ctx, &sweep.Walk{Points: s.points, Second: true}, s.open); err != nil {
			return nil, err
		}
	}
	err := s.call.manager.CloseGroup(ctx, s.base.Group)
	if errors.Is(err, task.ErrGroupEmpty) {
		err = nil
	}
	return checked, err
}

// sweeper returns the sweeper for a call. The error is a problem if the call is invalid, or if the token may not open
// the tasks.
func (a *api) sweeper(ctx context.Context, c *call, in *sweepInput, rows func() iter.Seq2[sweep.Row, error]) (*sweeper,
	error,
) {
	var d manager.Definition
	if err := readJSON([]byte(in.Task), &d); err != nil {
		return nil, refuse(string(task.CodeInvalid), fmt.Sprintf("task: %v", err))
	}
	switch {
	case d.Group == "":
		return nil, refuse(string(task.CodeInvalid), "task: want a campaign")
	case d.Input != "" && (d.InputEncoding != task.InputBase64 || in.Input != "") || d.Meta != "" || d.Unique != "":
		return nil, refuse(string(task.CodeInvalid),
			"task: input, meta and unique would be the same for all rows; see the parameter input")
	}
	all := []manager.Definition{d}
	if err := a.claim(ctx, c, all); err != nil {
		return nil, err
	}
	s := &sweeper{
		api: a, call: c, base: a.defaults, rows: rows, extend: in.Extend, isNew: true,
		points: sweep.Tally{},
	}
	all[0].Fill(&s.base)
	if in.Input != "" {
		var err error
		if s.input, err = sweep.ParseTemplate(in.Input); err != nil {
			return nil, refuse(string(task.CodeInvalid), fmt.Sprintf("input: %v", err))
		}
	}
	return s, nil
}

// readPoints counts the tasks of the campaign. From then on, all its new tasks have keys.
func (s *sweeper) readPoints(ctx context.Context) error {
	err := managing.Of(s.call.manager).BeginExtension(ctx, s.base.Group)
	s.isNew, s.points = errors.Is(err, task.ErrGroupEmpty), sweep.Tally{}
	if err != nil && !s.isNew {
		return err
	}
	for meta, err := range s.admin.Metas(ctx, s.base.Group) {
		if err != nil {
			return err
		}
		if err := pool.Take(ctx, pointBytes); err != nil {
			return err
		}
		if point, ok := sweep.PointOf(meta.Text); ok {
			s.points.Add(point)
		}
	}
	return nil
}

// walk makes a walk through all rows. If open is not nil, it opens the tasks of the rows that need one.
func (s *sweeper) walk(ctx context.Context, w *sweep.Walk,
	open func(context.Context, []manager.Definition) error,
) error {
	var batch []manager.Definition
	charge := int64(pointBytes)
	if w.Second { // it has the points
		charge = 0
	}
	for row, err := range s.rows() {
		if err != nil {
			return err
		}
		if err := pool.Take(ctx, charge); err != nil {
			return err
		}
		c, err := row.Candidate(s.base, s.input)
		if err != nil {
			return err
		}
		if len(s.first) < s.preview {
			s.first = append(s.first, c.Task.Input)
		}
		if !w.Admits(c.Point) || open == nil {
			continue
		}
		if s.extend {
			w.Key(&c.Task, c.Point)
		}
		if batch = append(batch, c.Task.Definition()); len(batch) == rowsAtOnce {
			if err := open(ctx, batch); err != nil {
				return err
			}
			batch = nil
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return open(ctx, batch)
}

// open opens the tasks of some rows. The first ones make the campaign, or open it again.
func (s *sweeper) open(ctx context.Context, batch []manager.Definition) error {
	in := managing.Of(s.call.manager)
	open := in.OpenRest
	switch {
	case s.isNew:
		open = in.OpenFirst
	case s.extend:
		open = in.OpenExtending
	}
	opened, err := open(ctx, batch...)
	for _, t := range opened {
		if t.Existing {
			s.beside++
		} else {
			s.opened++
		}
	}
	s.isNew = s.isNew && len(opened) == 0
	return err
}
