package fetch

import "fmt"

// Limits bound what a source may be and become (docs/programs.md, "Limits"). Zero values mean
// the defaults. The key of the worker's configuration stands with each.
type Limits struct {
	Bytes   int64   // of what comes, and again of all files unpacked; max_program_bytes, 1 GiB
	Entries int     // files, directories and links; max_program_entries, 100,000
	Depth   int     // of nested directories; max_program_depth, 32
	Ratio   float64 // decompressed : packed, once more than 1 MiB is decompressed; max_program_ratio, 200
}

// The defaults of [Limits].
const (
	DefaultBytes   = 1 << 30
	DefaultEntries = 100_000
	DefaultDepth   = 32
	DefaultRatio   = 200
)

// ratioFrom is how much any archive may unpack to: small files full of blanks pack well.
const ratioFrom = 1 << 20

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Entries <= 0 {
		l.Entries = DefaultEntries
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if !(l.Ratio > 0) {
		l.Ratio = DefaultRatio
	}
	return l
}

// A limitError says which limit was reached, and the key that sets it.
type limitError string

func (e limitError) Error() string { return string(e) }

func (l Limits) tooManyBytes() error {
	return limitError(fmt.Sprintf("more than %d bytes (max_program_bytes)", l.Bytes))
}

func (l Limits) tooManyEntries() error {
	return limitError(fmt.Sprintf("more than %d entries (max_program_entries)", l.Entries))
}

func (l Limits) tooManyNames() error {
	return limitError(fmt.Sprintf("more than %d bytes of names", mostNames))
}

// mostNames is how many bytes the names of an archive, and what its links point to, may have
// together: they are kept in memory, and in the journal.
const mostNames = 32 << 20

// budget counts what an archive has become so far.
type budget struct {
	limits  Limits
	packed  int64 // the archive's own size
	bytes   int64 // of files
	stream  int64 // of all that was decompressed around them, too
	entries int
	names   int64 // bytes
}

// addEntry takes the names of an entry: its own, and that which it links to.
func (b *budget) addEntry(names ...string) error {
	for _, name := range names {
		b.names += int64(len(name))
	}
	b.entries++
	switch {
	case b.entries > b.limits.Entries:
		return b.limits.tooManyEntries()
	case b.names > mostNames:
		return b.limits.tooManyNames()
	}
	return nil
}

// addBytes counts what is written to files, which may be more than was decompressed: holes.
func (b *budget) addBytes(n int) error {
	b.bytes += int64(n)
	return b.check(b.bytes, b.limits.Bytes)
}

// addStream counts what was decompressed. What is no file (headers, padding, content that is
// skipped) costs time, and has an end too.
func (b *budget) addStream(n int) error {
	b.stream += int64(n)
	return b.check(b.stream, b.limits.Bytes+int64(b.limits.Entries)*headerBytes)
}

func (b *budget) check(n, most int64) error {
	switch {
	case n > most:
		return b.limits.tooManyBytes()
	case n > ratioFrom && float64(n) > b.limits.Ratio*float64(b.packed):
		return limitError(fmt.Sprintf("unpacks to more than %g times its size (max_program_ratio)", b.limits.Ratio))
	}
	return nil
}
