package dashboard

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/pool"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// Bounds of the form of a new campaign.
const (
	maxCampaignForm = 32 << 20
	keptRows        = 256 << 10 // bytes of rows that the form keeps; a larger file must be chosen again
	previewed       = 5         // inputs in a preview
	mostPrograms    = 100       // stored programs to choose from
)

// A newCampaign is what the page of a new campaign shows, and what its form sends.
type newCampaign struct {
	// of this form; a form that is sent twice opens its campaign once
	Key                                          string
	Campaign, Program, Source, Input             string
	Rows, Grid, Timeout, MaxFails, FailOn, Queue string
	FileToSend                                   string
	Programs                                     []storedProgram
	Problem                                      string
	Preview                                      *Swept
	Owner                                        string
}

// Title returns the title of the page.
func (*newCampaign) Title() string { return "New campaign" }

// A storedProgram is a program that one can choose.
type storedProgram struct{ Name, Source, Label string }

// Value is the value of the choice.
func (p storedProgram) Value() string { return p.Source + " " + p.Name }

func loadNewCampaign(ctx context.Context, v *visit) (any, error) {
	f := &newCampaign{
		Owner: v.owner, Campaign: v.query.Get("campaign"), Input: v.query.Get("input"), Grid: v.query.Get("grid"),
		FailOn: string(v.dashboard.failOn),
	}
	if v.owner != "" && f.Campaign == "" {
		f.Campaign = v.owner + "/"
	}
	return f, f.readPrograms(ctx, v)
}

// readPrograms makes the list of programs: the one that the form has stored, and those that were used last, if the user
// may see them.
func (f *newCampaign) readPrograms(ctx context.Context, v *visit) error {
	if f.Source != "" {
		f.Programs = []storedProgram{{f.Program, f.Source, f.Program}}
	}
	if !v.rights.Inspect {
		return nil
	}
	all, err := program.List(ctx, v.place().manager)
	slices.SortStableFunc(all, func(a, b program.Stored) int { return b.LastUse.Compare(a.LastUse) })
	for _, p := range all[:min(len(all), mostPrograms)] {
		if source := "redis:" + p.SHA256; source != f.Source {
			name := "program-" + p.SHA256[:8]
			f.Programs = append(f.Programs, storedProgram{name, source, name + ", " + format.Size(p.Bytes)})
		}
	}
	return err
}

// openCampaign opens the campaign of a form, or shows the form again: with a preview if the user wants one, or with
// what is wrong.
func openCampaign(ctx context.Context, v *visit) (string, error) {
	form := v.request.Form
	f := &newCampaign{
		Key: form.Get("key"), Campaign: strings.TrimSpace(form.Get("campaign")), Input: form.Get("input"),
		Rows: form.Get("rows"), Grid: strings.TrimSpace(form.Get("grid")), Timeout: form.Get("timeout"),
		MaxFails: form.Get("max_fails"), FailOn: form.Get("fail_on"), Queue: form.Get("queue"), Owner: v.owner,
	}
	f.Source, f.Program, _ = strings.Cut(form.Get("stored"), " ")
	err := f.open(ctx, v, form.Has("preview"))
	switch {
	case errors.Is(err, manager.ErrGroupTaken) && f.isMine(ctx, v): // the button was pressed twice
		return CampaignAddress(f.Campaign), nil
	case err == nil && !form.Has("preview"):
		return CampaignAddress(f.Campaign), nil
	case err != nil:
		problem := v.dashboard.host.Problem(v.request, err)
		if problem.Status >= http.StatusInternalServerError {
			return "", err
		}
		f.Problem = problem.Detail
	}
	if err := f.readPrograms(ctx, v); err != nil {
		return "", err
	}
	return "", f.again(ctx, v)
}

// again returns the error that shows the form again.
func (f *newCampaign) again(ctx context.Context, v *visit) error {
	if len(f.Rows) > keptRows {
		f.Rows, f.FileToSend = "", "The file is too large for this form to keep. Choose it again to open the campaign."
	}
	status := http.StatusOK
	if f.Problem != "" {
		status = http.StatusUnprocessableEntity
	}
	main, err := mainOf(ctx, "newcampaign", shown{f, v.rights, v.request.URL.EscapedPath(), url.Values{}})
	if err != nil {
		return err
	}
	return &unfinished{status, &view{title: f.Title(), main: main}}
}

// FormKey returns the key of the form.
func (f *newCampaign) FormKey() string {
	if f.Key == "" {
		f.Key = rand.Text()
	}
	return f.Key
}

// correlation marks the tasks of a form.
func (f *newCampaign) correlation(v *visit) string {
	sum := sha256.Sum256([]byte(f.Key + " " + v.session)) // users share the page, and so the key
	return "form-" + hex.EncodeToString(sum[:16])
}

// isMine reports whether this form has opened the campaign before.
func (f *newCampaign) isMine(ctx context.Context, v *visit) bool {
	page, err := v.manager.Page(ctx, v.own(manager.Query{Group: f.Campaign}), "", 1)
	return err == nil && len(page.Tasks) > 0 && page.Tasks[0].CorrelationID == f.correlation(v)
}

// open opens the campaign, or makes the preview.
func (f *newCampaign) open(ctx context.Context, v *visit, preview bool) error {
	if f.Campaign == "" {
		return wire.Invalid("name the campaign")
	}
	if err := f.readFile(ctx, v.request); err != nil {
		return err
	}
	rows, err := f.rows()
	if err != nil {
		return err
	}
	if err := f.pushProgram(ctx, v); err != nil {
		return err
	}
	s := Sweep{Task: map[string]any{
		"campaign": f.Campaign, "program": f.Program, "source": f.Source,
		"correlation_id": f.correlation(v),
	}, Input: f.Input, Rows: rows}
	for name, text := range map[string]string{"queue": f.Queue, "fail_on": f.FailOn} {
		if text != "" {
			s.Task[name] = text
		}
	}
	for name, text := range map[string]string{"timeout": f.Timeout, "max_fails": f.MaxFails} {
		if text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return wire.Invalid(name + ": want a whole number")
		}
		s.Task[name] = n
	}
	if preview {
		s.Preview = previewed
	}
	swept, err := v.dashboard.host.OpenSweep(v.request, s)
	if err == nil && preview {
		f.Preview = &swept
	}
	return err
}

// readFile reads an uploaded file with rows.
func (f *newCampaign) readFile(ctx context.Context, r *http.Request) error {
	_, content, err := uploaded(ctx, r, "file")
	if err == nil && len(content) > 0 {
		if strings.TrimSpace(f.Rows) != "" {
			return wire.Invalid("there are rows in a file and in the text; leave one of them out")
		}
		f.Rows = string(content)
	}
	return err
}

// rows returns the function that yields the rows.
func (f *newCampaign) rows() (func() iter.Seq2[sweep.Row, error], error) {
	text := strings.TrimSpace(f.Rows)
	switch {
	case (text == "") == (f.Grid == ""):
		return nil, wire.Invalid("want either rows or a grid of parameters")
	case f.Grid != "":
		grid, err := sweep.ParseGrid(f.Grid)
		if err != nil {
			return nil, wire.Invalid(err.Error())
		}
		return grid.Rows, nil
	}
	parse := sweep.CSV
	if text[0] == '{' {
		parse = sweep.JSONL
	}
	return func() iter.Seq2[sweep.Row, error] { return parse(strings.NewReader(f.Rows)) }, nil
}

// pushProgram stores an uploaded program: an archive, or the script run.sh alone. The program of a preview stays
// stored; the server removes it after a week without tasks.
func (f *newCampaign) pushProgram(ctx context.Context, v *visit) error {
	name, content, err := uploaded(ctx, v.request, "upload")
	if err != nil {
		return err
	}
	if len(content) == 0 {
		if f.Source == "" {
			return wire.Invalid("choose a program: a stored one, or a file")
		}
		return nil
	}
	if bytes.HasPrefix(content, []byte("#!")) {
		if content, err = packed(content); err != nil {
			return err
		}
	}
	name, _, _ = strings.Cut(path.Base(name), ".")
	of, err := program.Check(ctx, name, content)
	if err != nil {
		return err
	}
	pushed, err := program.PushFor(ctx, v.manager, of, v.owner)
	f.Program, f.Source = pushed.Program, pushed.Source
	return err
}

// packed returns an archive with a script as run.sh.
func packed(script []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{
		Name: "run.sh", Mode: 0o755, Size: int64(len(script)),
		Typeflag: tar.TypeReg,
	}); err != nil {
		return nil, err
	}
	if _, err := w.Write(script); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// uploaded returns the name and the content of an uploaded file, or nothing if there is none.
func uploaded(ctx context.Context, r *http.Request, field string) (name string, content []byte, err error) {
	file, header, err := r.FormFile(field)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, wire.Invalid(fmt.Sprintf("read the file: %v", err))
	}
	defer file.Close()
	if err := pool.Take(ctx, 3*header.Size); err != nil { // with what it is copied to
		return "", nil, err
	}
	content, err = io.ReadAll(file)
	return header.Filename, content, err
}
