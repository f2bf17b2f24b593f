package fetch

import (
	"cmp"
	"fmt"
)

// Limits holds the limits for a source and its unpacked files (docs/programs.md, "Limits"). 0 means the default. The
// comment of each field ends with the key in the worker's configuration and the default.
type Limits struct {
	Bytes   int64 // maximum size of the source, and of all unpacked files together; max_program_bytes, 1 GiB
	Entries int   // maximum number of files, directories and links; 100,000
}

// The defaults of [Limits].
const (
	DefaultBytes   = 1 << 30
	DefaultEntries = 100_000
)

func (l Limits) withDefaults() Limits {
	l.Bytes = cmp.Or(max(l.Bytes, 0), DefaultBytes)
	l.Entries = cmp.Or(max(l.Entries, 0), DefaultEntries)
	return l
}

// A limitError means that a limit was exceeded. It names the limit and its configuration key.
type limitError string

func (e limitError) Error() string { return string(e) }

func (l Limits) tooManyBytes() error {
	return limitError(fmt.Sprintf("more than %d bytes (max_program_bytes)", l.Bytes))
}

func (l Limits) tooManyEntries() error {
	return limitError(fmt.Sprintf("more than %d entries", l.Entries))
}

func (l Limits) tooManyNames() error {
	return limitError(fmt.Sprintf("more than %d bytes of names", maxNames))
}

// maxNames is the maximum total size in bytes of the names and link targets in an archive. Names and link targets are
// kept in memory. Names are also kept in the journal.
const maxNames = 32 << 20

// budget counts the unpacked bytes and entries of an archive.
type budget struct {
	limits  Limits
	bytes   int64 // bytes written to files
	stream  int64 // decompressed bytes, including headers and padding
	entries int
	names   int64 // bytes of names and link targets
}

// addEntry counts an entry. The arguments are the entry's name and its link target.
func (b *budget) addEntry(names ...string) error {
	for _, name := range names {
		b.names += int64(len(name))
	}
	b.entries++
	switch {
	case b.entries > b.limits.Entries:
		return b.limits.tooManyEntries()
	case b.names > maxNames:
		return b.limits.tooManyNames()
	}
	return nil
}

// addBytes counts the bytes that are written to files. A sparse file has more of these bytes than decompressed bytes.
func (b *budget) addBytes(n int) error {
	b.bytes += int64(n)
	return b.check(b.bytes, b.limits.Bytes)
}

// addStream counts decompressed bytes, including headers, padding and skipped content.
func (b *budget) addStream(n int) error {
	b.stream += int64(n)
	return b.check(b.stream, b.limits.Bytes+int64(b.limits.Entries)*headerBytes)
}

func (b *budget) check(n, limit int64) error {
	if n > limit {
		return b.limits.tooManyBytes()
	}
	return nil
}
