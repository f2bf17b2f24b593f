package record

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

func note(n int64, path string) string {
	return fmt.Sprintf("[%d bytes are left out here; the whole output is on worker w1 in %s]\n", n, path)
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		most int64
		want func(path string) string
	}{
		"empty":          {"", 10, func(string) string { return "" }},
		"short":          {"0123456789", 10, func(string) string { return "0123456789" }},
		"long":           {"0123456789a", 10, func(p string) string { return "01234\n" + note(1, p) + "6789a" }},
		"odd":            {"0123456789", 3, func(p string) string { return "01\n" + note(7, p) + "9" }},
		"one byte":       {"0123456789", 1, func(p string) string { return "0\n" + note(9, p) }},
		"nothing":        {"0123456789", 0, func(p string) string { return note(10, p) }},
		"less than that": {"0123456789", -5, func(p string) string { return note(10, p) }},
		"at a line":      {"012\n456\n89", 8, func(p string) string { return "012\n" + note(2, p) + "6\n89" }},
		"binary, no end": {"\x00\xff\xfe\n\r", 5, func(string) string { return "\x00\xff\xfe\n\r" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t)
			prints(t, r.Stdout, "out"+c.text)
			prints(t, r.Stderr, c.text)
			_, path := keptIn(t, r)
			got, err := r.Read(c.most, "w1", nil)
			expect.NoError(t, err)
			expect.Equal(t, got.Error, c.want(path))
			size, length := int64(len(c.text)), int64(len(got.Error))
			if length > 0 && got.Error != c.text && size <= length { // the note is longer than what it stands for
				size = length + 1
			}
			expect.Equal(t, got.ErrorBytes, size, "size")
		})
	}
}

// A text that is only masked is whole: its size is that of the masked text.
func TestMaskedTextIsWhole(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "token hunter22, in JSON hunter22")
	got := expect.Result(r.Read(1000, "w1", secret(t, "hunter22"))).Value(t)
	expect.Equal(t, got.Output, "token ***, in JSON ***")
	expect.Equal(t, got.OutputBytes, int64(len(got.Output)))
}

// Output of any size takes room only on the disk, not in memory.
func TestReadEndlessFile(t *testing.T) {
	r := open(t)
	must(t, r.Stdout.Truncate(1<<40))
	got, err := r.Read(1000, "w1", secret(t, "hunter22"))
	const want = "[1099511626776 bytes are left out here; they are lost: worker w1 could not keep the file]\n"
	expect.NoError(t, err)
	expect.Equal(t, len(got.Output), 1000+len("\n"+want))
	expect.Contains(t, got.Output, want)
	expect.Equal(t, got.OutputBytes, 1<<40, "size")
}

// Without a secret, the text equals the content of the file, for any content and limit.
func TestReadToTheByte(t *testing.T) {
	s := secret(t, "hunter22", "hunter22hunter22")
	rapid.Check(t, func(rt *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(rt, "text"))
		most := rapid.Int64Range(0, int64(len(text))+2).Draw(rt, "most")
		r := open(t)
		defer r.Release()
		prints(t, r.Stdout, text)
		path, _ := keptIn(t, r)
		got := expect.Result(r.Read(most, "w1", s)).Value(t)
		if int64(len(text)) <= most {
			if got.Output != text {
				rt.Fatalf("got %q", got.Output)
			}
			return
		}
		head, tail, _ := strings.Cut(got.Output, note(int64(len(text))-most, path))
		if want := text[:most-most/2]; head != want && head != want+"\n" || tail != text[int64(len(text))-most/2:] {
			rt.Fatalf("got %q", got.Output)
		}
	})
}

// The limit also bounds the memory that Read uses: less than two copies of the text.
func TestReadTakesNoMoreMemoryThanAsked(t *testing.T) {
	const most = 8 << 20
	r := open(t)
	must(t, r.Stdout.Truncate(100*most))
	s := secret(t, "hunter22")
	prints(t, r.Stdout, "hunter22")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := r.Read(most, "w1", s)
	runtime.ReadMemStats(&after)
	must(t, err)
	expect.True(t, strings.HasSuffix(got.Output, "\x00***"), "the secret is not masked")
	took := after.TotalAlloc - before.TotalAlloc
	expect.True(t, took <= most*7/4, took, "bytes for", most)
}

// While the files change, Read returns a text of at most the allowed length.
func TestReadWhileItChanges(t *testing.T) {
	r := open(t)
	s := secret(t, "hunter22")
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_, _ = r.Stdout.WriteString(strings.Repeat("a line and hunter22\n", 50))
			if i%7 == 6 {
				_ = r.Stdout.Truncate(int64(i % 500))
			}
		}
	})
	for range 300 {
		got := expect.Result(r.Read(1000, "w1", s)).Value(t)
		expect.NotContains(t, got.Output, "hunter22")
		expect.Compare(t, len(got.Output), "<=", 1001+len(note(got.OutputBytes, "could not keep the file, and more")))
		tail, _ := r.Tail(s)
		expect.NotContains(t, tail.Text, "hunter22")
		expect.Compare(t, len(tail.Text), "<=", tailBytes)
	}
	close(stop)
	writer.Wait()
}

// If a program empties its own output with `> file`, Read returns only the text that the program prints afterwards.
func TestReadEmptiedFile(t *testing.T) {
	r := open(t)
	prints(t, r.Stdout, "before")
	must(t, os.Truncate(r.Stdout.Name(), 0))
	prints(t, r.Stdout, "after")
	expect.Equal(t, expect.Result(r.Read(10, "w1", nil)).Value(t).Output, "after")
}

func TestReadReleased(t *testing.T) {
	r := open(t)
	r.Release()
	expect.Result(r.Read(10, "w1", nil)).Fails(t, "reading stdout: ")
}
