package record

import (
	"bytes"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// tailBytes is the largest number of bytes that Tail returns.
const tailBytes = 4 << 10

// lineBytes limits how much Tail skips so that its text begins with a whole line.
const lineBytes = 512

// Tail returns the last 4 KiB that the program printed to stdout and stderr together. Each call adds the new text of
// stdout, and then the new text of stderr. The text is valid UTF-8. If the last bytes are the beginning of a character,
// Tail leaves them out for now. If the program has secrets, the text has only whole lines, and Tail masks each as a
// whole. changed says whether the text has changed since the last call.
func (r *Record) Tail(s *secrets.Secrets) (tail task.Tail, changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.streams {
		changed = r.streams[i].follow(&r.tail, s) || changed
	}
	end := task.TailEnd{All: r.tail.end, Stdout: r.streams[0].masked, Stderr: r.streams[1].masked}
	return task.Tail{Text: r.tail.text(), TailEnd: end}, changed
}

// Silent returns how long ago the program last printed something, by the times of its files.
func (r *Record) Silent() time.Duration {
	var last time.Time
	for i := range r.outputs {
		if size, changed, err := r.outputs[i].state(); err == nil && size > 0 && changed.After(last) {
			last = changed
		}
	}
	return max(time.Since(last), 0)
}

// A stream is stdout or stderr of a round. It is read while it grows.
type stream struct {
	source *output
	size   int64 // the size at the last call of follow
	shown  int64 // the offset up to which the text was shown or skipped
	// the length of the text up to there with secrets masked; -1 if it is unknown, because secrets may have been
	// skipped
	masked int64
}

// follow adds the new text of the file to the tail, but at most the last tailBytes. It returns whether the file has
// changed.
func (f *stream) follow(tail *ring, s *secrets.Secrets) (changed bool) {
	size, _, err := f.source.state()
	if err != nil || size == f.size {
		return false
	}
	if size < f.size { // the program emptied the file
		f.shown, f.masked = 0, 0
	}
	f.size = size
	from := max(f.shown, size-tailBytes)
	if skipped := from - f.shown; skipped > 0 {
		tail.skip(skipped)
		f.count(skipped, s == nil)
	}
	raw := make([]byte, size-from)
	n, err := f.source.ReadAt(raw, from)
	if err != nil && !errors.Is(err, io.EOF) {
		tail.skip(size - from)
		f.shown, f.masked = size, -1
		return true
	}
	raw = raw[:n-unfinished(raw[:n], s)]
	f.shown = from + int64(len(raw))
	part := s.Mask(string(raw))
	tail.add([]byte(part))
	f.count(int64(len(part)), true)
	return true
}

// count adds n bytes to f.masked, if n is known.
func (f *stream) count(n int64, known bool) {
	if f.masked += n; !known || f.masked < n {
		f.masked = -1
	}
}

// unfinished returns how many bytes at the end wait for those that follow: the beginning of a character, or with
// secrets, of a line.
func unfinished(b []byte, s *secrets.Secrets) int {
	if s != nil {
		return len(b) - 1 - bytes.LastIndexByte(b, '\n')
	}
	return cutLetter(b)
}

// cutLetter returns the length of the incomplete UTF-8 sequence at the end of b.
func cutLetter(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// A ring keeps the end of the text that is added to it.
type ring struct {
	buf []byte // valid UTF-8, but its first character may be cut off
	cut bool   // earlier text is missing
	end int64  // how many bytes were added or skipped
}

func (r *ring) add(b []byte) {
	if len(r.buf) == 0 && r.cut {
		whole := trimLetter(b)
		r.end += int64(len(b) - len(whole))
		b = whole
	}
	b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	r.end += int64(len(b))
	r.buf = append(r.buf, b...)
	if over := len(r.buf) - tailBytes; over > 0 {
		r.buf, r.cut = append(r.buf[:0], r.buf[over:]...), true
	}
}

// skip drops the kept text, because n bytes are missing before the text that is added next.
func (r *ring) skip(n int64) { r.buf, r.cut, r.end = r.buf[:0], true, r.end+n }

// text returns the kept text. If earlier text is missing, the result begins with a whole line, or with a whole
// character if the first lineBytes contain no line end.
func (r *ring) text() string {
	b := r.buf
	if r.cut {
		if i := bytes.IndexByte(b[:min(len(b), lineBytes)], '\n'); i >= 0 {
			b = b[i+1:]
		}
		b = trimLetter(b)
	}
	return string(b)
}

// trimLetter returns b without the end of a character that began earlier.
func trimLetter(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && len(b) > 0 && !utf8.RuneStart(b[0]); n++ {
		b = b[1:]
	}
	return b
}
