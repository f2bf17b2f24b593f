package listing

import (
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// Limits for the search for the most informative line.
const (
	endsLooked = 64 << 10 // bytes that are searched at each end of a text
	// lines that are searched; blank lines do not count, nor those below a line with less indentation
	linesLooked = 100
	lineLooked  = 1000 // bytes that are read of a line
	lineKept    = 200  // characters of a line in a fingerprint
)

// chosenLine returns the line of a program's stderr that a rule chooses (see [task.Query].FailureBy).
func chosenLine(rule, text string) string {
	switch rule {
	case "":
		return tellingLine(text)
	case task.ByFirstLine:
		text = text[:min(len(text), endsLooked)]
		first, _, _ := strings.Cut(strings.TrimLeftFunc(text, unicode.IsSpace), "\n")
		return clean(first)
	case task.ByLastLine:
		text = strings.TrimRightFunc(text[max(0, len(text)-endsLooked):], unicode.IsSpace)
		return clean(text[strings.LastIndexByte(text, '\n')+1:])
	}
	found := compiled(rule).FindStringSubmatch(text[max(0, len(text)-endsLooked):])
	if found == nil {
		return ""
	}
	return clean(found[min(1, len(found)-1)])
}

// lastRule is the regular expression that was used last, because all tasks of a query have the same one.
var lastRule atomic.Pointer[regexp.Regexp]

func compiled(rule string) *regexp.Regexp {
	if last := lastRule.Load(); last != nil && last.String() == rule {
		return last
	}
	r, err := task.ParseRegexp(rule)
	if err != nil {
		return lazyNone() // the query was checked
	}
	lastRule.Store(r)
	return r
}

// lazyNone matches nothing.
var lazyNone = lazy.Regexp(`a^`)

// tellingLine returns the line of a program's stderr that best explains the failure (docs/tdf.md, "Watching and reading
// tasks"). This is the last line without indentation that is no boilerplate, with its next line if it leads to that.
// For a Go program, it is the line of the panic, because Go prints its traces below that line.
func tellingLine(text string) string {
	if line := panicLine(text); line != "" {
		return clean(line)
	}
	lines := aboveSnakemake(lastLines(text))
	if i := pythonError(lines); i >= 0 {
		return message(lines, i, 3)
	}
	indented, boilerplate := -1, -1
	for i := len(lines) - 1; i >= 0; i-- {
		switch line := lines[i]; {
		case isBoilerplate().MatchString(line):
			if above := bannerOfMPI(lines[:i+1]); above >= 0 {
				i, boilerplate = above, max(above+1, boilerplate)
			} else if boilerplate < 0 && strings.ContainsFunc(line, isWord) {
				boilerplate = i
			}
		case line[0] == ' ':
			if indented < 0 {
				indented = i
			}
		default:
			return message(lines, i, 2)
		}
	}
	if i := max(indented, boilerplate); i >= 0 {
		return strings.TrimSpace(lines[i])
	}
	return ""
}

// aboveSnakemake returns the lines above the report of the failed rule with which Snakemake ends. The command of the
// rule has printed its error there.
func aboveSnakemake(lines []string) []string {
	report := -1
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "Error in rule "):
			report = i
		case report > 0 && strings.HasPrefix(line, "Exiting because a job execution failed."):
			return lines[:report]
		}
	}
	return lines
}

// lastLines returns the last lines of a text that are not blank, as plain text. Of lines with indentation that follow
// each other, it returns the first two and the last one, so that a long trace hides nothing.
func lastLines(text string) []string {
	var all []string
	tail := text[max(0, len(text)-endsLooked):]
	for tail != "" && len(all) < linesLooked {
		i := strings.LastIndexByte(tail, '\n')
		line := clean(tail[i+1:])
		tail = tail[:max(i, 0)]
		n := len(all)
		switch {
		case strings.TrimSpace(line) == "":
		case line[0] == ' ' && n >= 3 && all[n-1][0] == ' ' && all[n-2][0] == ' ' && all[n-3][0] == ' ':
			all[n-2], all[n-1] = all[n-1], line
		default:
			all = append(all, line)
		}
	}
	slices.Reverse(all)
	return all
}

// isBoilerplate matches lines that a runtime or a tool prints below the cause, whatever the cause is.
var isBoilerplate = lazy.Regexp(`^(?:` + strings.Join([]string{
	`[\pP\pS ]+`,                     // banners, closing brackets
	`note: .*|Node\.js v.*`,          // Rust; Node.js
	`in expression starting at .*`,   // Julia
	`(?i:stack ?trace(?:back)?:)`,    // Julia, PHP, Lua
	`#\d+ .*`,                        // frames of PHP and of Fortran
	`Error termination\. Backtrace:`, // Fortran
	`Execution halted|Calls: .*`,     // R
	`CallStack \(from .*`,            // Haskell
	`error: called from.*`,           // Octave
	// CUDA's hints, as PyTorch prints them
	`Compile with .TORCH_USE_CUDA_DSA. .*|For debugging consider passing CUDA_LAUNCH_BLOCKING=1.*`,
	`CUDA kernel errors might be asynchronously reported .*`,
	`\[[A-Z][a-z]+ [A-Z][a-z]+ +\d+ [\d:]+ \d+\]`, // Snakemake
	`make(?:\[\d+\])?: .*|ninja: .*`,              // what failed is above
	`srun: .*|slurmstepd: .*`,                     // Slurm
	`.*: line \d+: +\d+ [A-Z][a-z ]+.*`,           // a shell, about a program that a signal ended
	`(?:Aborted|Segmentation fault|Killed|Terminated)(?: \(core dumped\))?`,
}, "|") + `)$`)

func isWord(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= 0x80
}

// isRule matches the line above and below a banner.
var isRule = lazy.Regexp(`^[-=*#]{20,}$`)

// bannerOfMPI returns the index of the line with which a banner of MPI begins, or -1 if the last line ends none. The
// banner says that it has killed the processes of the program, and the error is above it.
func bannerOfMPI(lines []string) int {
	last := len(lines) - 1
	if !isRule().MatchString(lines[last]) {
		return -1
	}
	for i := last - 2; i >= 0; i-- {
		if lines[i] == lines[last] && strings.Contains(lines[i+1]+lines[i+2], "MPI") {
			return i
		}
	}
	return -1
}

// endOfMessage matches what stands at the end of a line whose next line says more.
var endOfMessage = lazy.Regexp(`:$|^terminate called after throwing `)

// message returns the line at i, with up to most-1 lines after it if they say more.
func message(lines []string, i, most int) string {
	line := lines[i]
	next := i + 1
	if most == 2 && (next == len(lines) || lines[next][0] != ' ' || !endOfMessage().MatchString(line)) {
		return line
	}
	for ; most > 1 && next < len(lines); most, next = most-1, next+1 {
		line += " " + strings.TrimSpace(lines[next])
	}
	return line[:min(len(line), lineLooked)]
}

// pythonError returns the index of the line after the last traceback of a Python program, if that begins a message of
// several lines, as those of pydantic are: it goes on to the end, or with indentation. Otherwise it returns -1.
func pythonError(lines []string) int {
	i := len(lines) - 1
	for i >= 0 && lines[i] != "Traceback (most recent call last):" {
		i--
	}
	if i < 0 {
		return -1
	}
	for i++; i < len(lines) && lines[i][0] == ' '; {
		i++
	}
	rest := lines[min(i+1, len(lines)):]
	if n := len(rest); n > 0 && (n <= 2 || rest[0][0] == ' ' || rest[1][0] == ' ') {
		return i
	}
	return -1
}

// panicLine returns the first line of a Go program's trace, or "" if the text contains no trace.
func panicLine(text string) string {
	for _, end := range []string{text[max(0, len(text)-endsLooked):], text[:min(len(text), endsLooked)]} {
		if !strings.Contains(end, "\ngoroutine ") {
			continue
		}
		for line := range strings.Lines(end) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
				return line
			}
		}
	}
	return ""
}
