package dashboard

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/tdf-framework/tdf/internal/results"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/dashboard/plot"
)

// A plotted is the plot of a campaign's results. All choices are in the address.
type plotted struct {
	results.TableStatus
	*plot.Figure                                     // nil if there is a problem, or no result yet
	Kind, X, Y, Colour, Facet, XScale, YScale string // the choices
	Fields, Pattern                           string
	Problem                                   string // what is wrong with the choices

	several bool // namespaces
}

// plotted draws the plot that the address of a visit describes.
func (v *visit) plotted(ctx context.Context, campaign string) (*plotted, error) {
	of := func(name, otherwise string) string { return cmp.Or(v.query.Get(name), otherwise) }
	p := &plotted{
		Kind: of("kind", string(plot.Scatter)), X: of("x", ""), Y: of("y", ""), Colour: of("colour", ""),
		Facet:  of("facet", ""),
		XScale: of("xscale", string(plot.Auto)), YScale: of("yscale", string(plot.Auto)),
		Fields: of("fields", results.FromAuto), Pattern: of("pattern", ""), several: v.dashboard.shards.Several(),
	}
	if !slices.Contains(plot.Kinds, plot.Kind(p.Kind)) || !slices.Contains(plot.Scales, plot.Scale(p.XScale)) ||
		!slices.Contains(plot.Scales, plot.Scale(p.YScale)) ||
		!slices.Contains(results.Sources, p.Fields) {
		p.Problem = "The address has an unknown kind of plot, scale, or source of fields."
		return p, nil
	}
	var tables results.Joined
	for _, of := range v.dashboard.places {
		table, err := v.dashboard.tables.Of(results.Choice{
			Namespace: of.name, Of: len(v.dashboard.places), Group: campaign, Owner: v.owner, Fields: p.Fields,
			Pattern: p.Pattern,
		})
		if err != nil {
			p.Problem = err.Error()
			return p, nil
		}
		// a page may read results for a tenth of its time, and the next page goes on from there
		longest := v.dashboard.Timeout / time.Duration(10*len(v.dashboard.places))
		if err := table.Refresh(ctx, of.manager, longest); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	var table tableColumns = tables
	if len(tables) == 1 { // without a copy
		table = tables[0]
	}
	p.TableStatus = table.Status()
	if p.Rows == 0 {
		return p, nil
	}
	p.choose(table)
	return p, p.draw(table)
}

// tableColumns are the columns of a table, or of several tables as one.
type tableColumns interface {
	Status() results.TableStatus
	Columns(names ...string) []*results.Column
}

// choose chooses the axes that the address does not name: a parameter, and a number of the results.
func (p *plotted) choose(table tableColumns) {
	if p.X == "" && len(p.Names) > 0 {
		p.X = p.Names[0]
	}
	for _, name := range append(slices.Clone(p.Results), "seconds") {
		if c := table.Columns(name)[0]; p.Y == "" && c != nil && c.Codes == nil && name != p.X {
			p.Y = name
		}
	}
	p.Y = cmp.Or(p.Y, p.X)
}

func (p *plotted) draw(table tableColumns) error {
	names := []string{p.X, p.Y, p.Colour, p.Facet}
	columns := make([]*plot.Column, len(names))
	for i, c := range table.Columns(names...) {
		if c != nil {
			columns[i] = &plot.Column{Name: c.Name, Numbers: c.Numbers, Codes: c.Codes, Texts: c.Texts}
		} else if names[i] != "" {
			p.Problem = "No result has the column " + names[i] + "."
			return nil
		}
	}
	figure, err := plot.Draw(plot.Spec{
		Kind: plot.Kind(p.Kind), X: columns[0], Y: columns[1], Colour: columns[2], Facet: columns[3],
		XScale: plot.Scale(p.XScale), YScale: plot.Scale(p.YScale),
	})
	if task.CodeOf(err) == task.CodeInvalid {
		p.Problem, err = err.Error(), nil
	}
	p.Figure = figure
	return err
}

// Drawn returns the plot for the page. The package plot escapes all texts in it.
func (p *plotted) Drawn() template.HTML { return template.HTML(p.SVG()) }

// Choices are the values that a choice may have. The templates use them.
func (*plotted) Choices(of string) []string {
	var all []string
	switch of {
	case "kind":
		for _, k := range plot.Kinds {
			all = append(all, string(k))
		}
	case "scale":
		for _, s := range plot.Scales {
			all = append(all, string(s))
		}
	case "fields":
		all = results.Sources
	}
	return all
}

// CSV returns the address of all results of a campaign. It is "" if there are several namespaces, because the API
// serves one.
func (p *plotted) CSV(campaign string) string {
	if p.several {
		return ""
	}
	return Base + "/api/v1/results?" + url.Values{
		"group": {campaign}, "fields": {cmp.Or(p.Fields, results.FromAuto)},
		"no_output": {"true"}, "spreadsheet": {"true"},
	}.Encode()
}

// errNoPlot says that there is nothing to draw.
var errNoPlot = task.NewError(task.CodeNotFound, "the campaign has no results for this plot")

func plotSVG(f *plot.Figure) ([]byte, error) { return f.SVG(), nil }

// plotFile returns the function that draws the plot of an address as a file of a media type.
func plotFile(kind string, draw func(*plot.Figure) ([]byte, error)) func(context.Context, *visit) (string, []byte,
	error) {
	return func(ctx context.Context, v *visit) (string, []byte, error) {
		name, err := campaignName(v)
		if err != nil {
			return "", nil, err
		}
		p, err := v.plotted(ctx, name)
		if err != nil {
			return "", nil, err
		}
		if p.Figure == nil {
			return "", nil, errNoPlot
		}
		content, err := draw(p.Figure)
		return kind, content, err
	}
}
