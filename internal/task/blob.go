package task

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Blob names a large value by its content (docs/blobs.md).
type Blob struct {
	SHA256 string // 64 lower-case hex digits
	Bytes  int64
	Path   string // where a worker puts the file, relative to the command's directory; "" if the program reads it itself
}

// Limits of the blobs that a task names, or that a round makes.
const (
	MaxBlobs     = 1000
	maxBlobTexts = 100 << 10 // bytes of the texts together
	maxBlobBytes = 1 << 50
	maxBlobPath  = 1 << 10
)

// BlobKeep is how long the server keeps a blob after its last use, if no task names it.
const BlobKeep = Seconds(60 * 60)

// ParseBlob parses SHA256:BYTES or SHA256:BYTES:PATH.
func ParseBlob(text string) (Blob, error) {
	sum, rest, _ := strings.Cut(text, ":")
	size, at, named := strings.Cut(rest, ":")
	b := Blob{SHA256: sum, Path: at}
	var err error
	b.Bytes, err = strconv.ParseInt(size, 10, 64)
	switch {
	case !isSHA256(sum):
		return b, fmt.Errorf("%q does not begin with a SHA-256 in lower-case hex digits", shorten(text))
	case err != nil || b.Bytes < 0 || b.Bytes > maxBlobBytes || strconv.FormatInt(b.Bytes, 10) != size:
		return b, fmt.Errorf("%q has no number of bytes after the SHA-256; want SHA256:BYTES or SHA256:BYTES:PATH",
			shorten(text))
	case named && wrongBlobPath(at) != "":
		return b, fmt.Errorf("%q: the path %s", shorten(text), wrongBlobPath(at))
	}
	return b, nil
}

func isSHA256(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == 32 && strings.ToLower(s) == s
}

func wrongBlobPath(p string) string {
	if len(p) > maxBlobPath {
		return fmt.Sprintf("has more than %d bytes", maxBlobPath)
	}
	return wrongPath(p)
}

// wrongPath says why a path below a directory is invalid. It returns "" for a valid one.
func wrongPath(p string) string {
	parts := strings.Split(p, "/")
	switch {
	case p == "":
		return "is empty; want a path such as out/*.csv"
	case p[0] == '/':
		return "is absolute; want a path below the directory of the command"
	case !utf8.ValidString(p), strings.ContainsFunc(p, unicode.IsControl):
		return "contains a control character, or is not UTF-8"
	case strings.Contains(p, ","):
		return "contains a comma, which separates patterns"
	case strings.TrimSpace(p) != p:
		return "begins or ends with a blank"
	case slices.Contains(parts, ""), slices.Contains(parts, "."), slices.Contains(parts, ".."):
		return "has an empty element, . or ..; want a path such as out/*.csv"
	}
	return ""
}

// String returns the text that [ParseBlob] parses.
func (b Blob) String() string {
	text := b.SHA256 + ":" + strconv.FormatInt(b.Bytes, 10)
	if b.Path != "" {
		text += ":" + b.Path
	}
	return text
}

// ParseBlobs parses a list of blobs that [JoinBlobs] has made. It leaves out invalid ones.
func ParseBlobs(text string) (all []Blob) {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		b, err := ParseBlob(part)
		if err == nil {
			all = append(all, b)
		}
	}
	return all
}

// JoinBlobs returns blobs as one text.
func JoinBlobs(all []Blob) string {
	texts := make([]string, len(all))
	for i, b := range all {
		texts[i] = b.String()
	}
	return strings.Join(texts, ",")
}

// CheckBlobs checks the texts of the blobs that a task names, or that a round has made. Each path occurs only once, and
// none is the directory of another one.
func CheckBlobs(name string, all []string) error {
	if len(all) > MaxBlobs {
		return invalidProperty(name, "there are %d blobs; at most %d are allowed", len(all), MaxBlobs)
	}
	if n := len(joinPatterns(all)); n > maxBlobTexts {
		return invalidProperty(name, "the blobs have %d bytes as text; at most %d are allowed", n, maxBlobTexts)
	}
	paths := map[string]bool{}
	for _, text := range all {
		b, err := ParseBlob(text)
		if err != nil {
			return invalidProperty(name, "%v", err)
		}
		if b.Path != "" && paths[b.Path] {
			return invalidProperty(name, "two files are at %q", shorten(b.Path))
		}
		paths[b.Path] = true
	}
	for p := range paths {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if paths[dir] {
				return invalidProperty(name, "%q is a file and a directory", shorten(dir))
			}
		}
	}
	return nil
}

// CheckNoBlobs returns an error if tasks name blobs that are opened at a later time, when the blobs may be gone.
func CheckNoBlobs(all []Properties, what string) error {
	for i := range all {
		if len(all[i].Blobs) > 0 {
			return invalidProperty(FieldBlobs, "%s cannot name blobs, because nothing keeps the blobs until they are opened",
				what)
		}
	}
	return nil
}

func blobs() kind[[]string, []string] {
	return list("up to "+strconv.Itoa(MaxBlobs)+" blobs as SHA256:BYTES or SHA256:BYTES:PATH, separated by commas",
		CheckBlobs, joinPatterns)
}

// NamedBlobs returns the SHA-256 sums of all blobs that the task names: those that it was opened with, and those that
// its rounds have made.
func (t *Task) NamedBlobs() (sums []string) {
	for _, text := range t.Blobs {
		sums = append(sums, text[:min(len(text), 64)])
	}
	for _, b := range t.Made {
		sums = append(sums, b.SHA256)
	}
	return sums
}
