package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The commands of testdata/recording.md print the output that it shows, and docs/images/terminal.svg shows both.
func TestRecording(t *testing.T) {
	text := string(expect.Result(os.ReadFile("testdata/recording.md")).Value(t))
	steps := session(text)
	script := "serve 2\nredis set $NS:dashboard_at http://127.0.0.1:7379\n" // as tdf up does
	for _, s := range steps {
		script += s.script()
	}
	script += "-- root/run.sh --\n" + fenced(t, text, "shell") + "-- numbers.csv --\n" + fenced(t, text, "csv") + "-- keys --\n\n"
	dir := t.TempDir()
	expect.NoError(t, os.WriteFile(filepath.Join(dir, "recording.txt"), []byte(script), 0o644))
	runScripts(t, dir)

	const file = "../../docs/images/terminal.svg"
	drawn := draw(t, steps)
	if *update {
		expect.NoError(t, os.WriteFile(file, drawn, 0o644))
	}
	shown := expect.Result(os.ReadFile(file)).Value(t)
	expect.True(t, bytes.Equal(shown, drawn), file, "shows another session: draw it with -update")
	expect.Compare(t, len(shown), "<", 300_000, "bytes")
}

const (
	visible    = 24   // lines of the drawn terminal
	lineHeight = 19   // pixels
	typing     = 1.5  // seconds, as the following
	printing   = 0.07 // for each line of the output
	reading    = 2.5
)

// A drawnLine is a line of the terminal, from a moment of the recording on.
type drawnLine struct {
	Text    string
	Command bool
	Y       int
	At      float64 // seconds
}

// A scroll is a moment from which on the drawn lines are higher by some pixels.
type scroll struct {
	Percent float64 // of the recording
	Up      int
}

// draw returns an animation of a session. Without animations, its first lines are visible.
func draw(t *testing.T, steps []step) []byte {
	var lines []drawnLine
	at := 1.0
	add := func(text string, command bool, wait float64) {
		lines = append(lines, drawnLine{text, command, (len(lines)+1)*lineHeight - 5, at})
		at += wait
	}
	for _, s := range steps {
		add(s.command, true, typing)
		for _, line := range s.output {
			add(line, false, printing)
		}
		at += reading
	}
	var scrolls []scroll
	for i := visible; i < len(lines); i++ {
		scrolls = append(scrolls, scroll{lines[i].At / at * 100, (i + 1 - visible) * lineHeight})
	}
	var b bytes.Buffer
	expect.NoError(t, picture.Execute(&b, map[string]any{
		"Lines": lines, "Scrolls": scrolls, "Seconds": at, "Height": visible*lineHeight + 50,
		"Inner": visible * lineHeight,
	}))
	return b.Bytes()
}

var picture = template.Must(template.New("").Funcs(template.FuncMap{
	"xml": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace,
}).Parse(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 {{.Height}}" width="820" role="img">
<title>A terminal: tasks are opened, two causes of failures are shown, one of them is corrected and run again, and the results are printed</title>
<style>
rect { fill: #1b1f27 }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c5ccd8; white-space: pre }
.c { fill: #fff; font-weight: 600 }
.p { fill: #7bd88f }
@media (prefers-reduced-motion: no-preference) {
.l { animation: late step-end both }
g { animation: up {{printf "%.2f" .Seconds}}s step-end both }
}
@keyframes late { from { opacity: 0 } to { opacity: 1 } }
@keyframes up { from { transform: none }{{range .Scrolls}} {{printf "%.2f" .Percent}}%{{"{"}}transform: translateY(-{{.Up}}px)}{{end}}{{with .Scrolls}}{{with index . (len (slice . 1))}} to { transform: translateY(-{{.Up}}px) }{{end}}{{end}} }
</style>
<rect width="820" height="{{.Height}}" rx="8"/>
<circle cx="20" cy="18" r="6" fill="#e0605a"/><circle cx="40" cy="18" r="6" fill="#e6b450"/><circle cx="60" cy="18" r="6" fill="#7bd88f"/>
<svg x="16" y="36" width="790" height="{{.Inner}}"><g>
{{range .Lines}}<text y="{{.Y}}" class="l{{if .Command}} c{{end}}" style="animation-duration:{{printf "%.2f" .At}}s">{{if .Command}}<tspan class="p">$ </tspan>{{end}}{{xml .Text}}</text>
{{end}}</g></svg>
</svg>
`))
