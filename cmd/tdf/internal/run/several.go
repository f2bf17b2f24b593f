package run

import (
	"iter"
	"math"
	"slices"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/sweep"
)

// lineLength is the longest command line with several inputs, in bytes. A task may have a little more.
const lineLength = 120 << 10

// groups reports whether a command gets several inputs.
func (r *run) groups() bool { return r.maxArgs > 0 || r.maxReplace > 0 || r.xargs || r.spread }

// context reports whether a word with {} in it is repeated for each of several inputs.
func (r *run) context() bool { return r.maxReplace > 0 || r.spread }

// grouped returns a row for several inputs: as many as the flags allow, and as fit into a command line.
func (r *run) grouped(all reading, t *template) iter.Seq2[sweep.Row, error] {
	most, room := max(r.maxArgs, r.maxReplace), min(r.maxChars, lineLength)
	if most == 0 {
		most = math.MaxInt
	}
	if room == 0 {
		room = lineLength
	}
	return func(yield func(sweep.Row, error) bool) {
		var batch []string
		number, length := int64(0), 0
		send := func(values []string) bool {
			number++
			return yield(rowOf(number, values), nil)
		}
		for values, err := range all {
			if err == nil && len(values) != 1 {
				err = cli.Usagef("several columns with several inputs for a command: write one of them")
			}
			if err != nil {
				yield(sweep.Row{}, err)
				return
			}
			more := t.length(values[0])
			if len(batch) > 0 && (len(batch) == most || length+more > room) {
				if !send(batch) {
					return
				}
				batch = nil
			}
			if len(batch) == 0 {
				length = t.fixedLength()
			}
			batch, length = append(batch, values[0]), length+more
		}
		per := max(1, len(batch))
		if r.spread && !r.elsewhere() {
			per = max(1, (len(batch)+r.jobs.n-1)/r.jobs.n)
		}
		for part := range slices.Chunk(batch, per) {
			if !send(part) {
				return
			}
		}
	}
}

// length returns about how many bytes a further value adds to the command line.
func (t *template) length(value string) (n int) {
	for _, pieces := range t.words {
		text := ""
		for _, p := range pieces {
			if p.kind == isValue {
				text += changed(value, p.change)
			} else if t.context {
				text += p.text
			}
		}
		if slices.ContainsFunc(pieces, func(p piece) bool { return p.kind == isValue }) {
			n += len(sweep.Quote(text)) + 1
		}
	}
	return n
}

// fixedLength returns the length of the command line without values.
func (t *template) fixedLength() (n int) {
	for _, word := range t.command {
		n += len(sweep.Quote(word)) + 1
	}
	return n
}
