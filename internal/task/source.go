package task

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSource is the maximum length of a source in bytes.
const MaxSource = 4096

// The schemes of sources (docs/programs.md, "Sources").
const (
	SchemeHTTP  = "http"
	SchemeHTTPS = "https"
	SchemeRsync = "rsync"
	SchemeRedis = "redis"
	SchemeExec  = "exec" // no program: the input is a command of the worker's machine
)

// A Source is the parsed address of a program (docs/programs.md, "Sources"). [ParseSource] returns it. Two sources are
// equal if their original texts are equal, including credentials.
//
// The formatted or marshalled text of a Source shows no credentials. The fields Raw and Location may contain them.
type Source struct {
	Raw    string // the original text
	Scheme string // http, https, rsync, redis or exec
	// the URL (http, https), the part after "rsync:", or the checksum (redis), each without #sha256=…; or the directory of
	// the command (exec), "" for the round's own
	Location string
	Host     string // the host in Location; "" for a local file and for redis
	SHA256   string // required checksum of the content, 64 lower-case hex digits; "" if the source contains no checksum
	Script   bool   // whether the source is run.sh itself and not an archive
}

// String returns the source without credentials, for logs and error texts ([HideCredentials]).
func (s Source) String() string { return HideCredentials(s.Raw) }

// MarshalText returns the same text as String, so that structured logs show no credentials.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSource parses a source. It refuses a source that no worker could fetch: one with an unknown scheme or ending,
// without a host or file, or with a malformed checksum. The error quotes the source, but without credentials.
func ParseSource(s string) (Source, error) {
	src, err := parseSource(s)
	if err != nil {
		return Source{}, fmt.Errorf("source %q: %w", shorten(HideCredentials(s)), err)
	}
	return src, nil
}

func parseSource(s string) (Source, error) {
	if err := checkText(s); err != nil {
		return Source{}, err
	}
	scheme, rest, found := strings.Cut(s, ":")
	if !found {
		return Source{}, errors.New("no scheme (http, https, rsync, redis and exec are known)")
	}
	src := Source{Raw: s, Scheme: scheme}
	switch scheme {
	case SchemeHTTP, SchemeHTTPS:
		return src.parseURL(s)
	case SchemeRsync:
		return src.parseRsync(rest)
	case SchemeRedis:
		return src.parseRedis(rest)
	case SchemeExec:
		return src.parseExec(rest)
	}
	return Source{}, fmt.Errorf("unknown scheme %q (http, https, rsync, redis and exec are known)", shorten(scheme))
}

func checkText(s string) error {
	switch {
	case s == "":
		return errors.New("empty")
	case len(s) > MaxSource:
		return fmt.Errorf("%d bytes long (at most %d)", len(s), MaxSource)
	case !utf8.ValidString(s):
		return errors.New("not valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errors.New("contains a control character")
	}
	return nil
}

func (s Source) parseURL(raw string) (Source, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's error is not wrapped, because it may quote a password.
		return Source{}, errors.New("not a valid URL (in a user name or password, write : / ? # @ % as %XX)")
	}
	if u.Opaque != "" || u.Hostname() == "" {
		return Source{}, fmt.Errorf("no host (expected %s://HOST/PATH)", s.Scheme)
	}
	if err := checkPort(u.Port()); err != nil {
		return Source{}, err
	}
	location, fragment, found := strings.Cut(raw, "#")
	if found {
		if s.SHA256, err = parseFragment(fragment); err != nil {
			return Source{}, err
		}
	}
	s.Location, s.Host = location, u.Host
	return s.withEnding(u.Path)
}

func (s Source) parseRsync(rest string) (Source, error) {
	// Only #sha256= begins a checksum, because a path may contain #.
	loc, sum, found := strings.Cut(rest, "#sha256=")
	if found {
		var err error
		if s.SHA256, err = parseSum(sum); err != nil {
			return Source{}, err
		}
	}
	host, file, err := splitRsync(loc)
	if err != nil {
		return Source{}, err
	}
	s.Location, s.Host = loc, host
	return s.withEnding(file)
}

func (s Source) parseRedis(rest string) (Source, error) {
	sum, err := parseSum(rest)
	if err != nil {
		return Source{}, fmt.Errorf("want redis: and the archive's SHA-256: %w", err)
	}
	s.Location, s.SHA256 = sum, sum
	return s, nil
}

func (s Source) parseExec(rest string) (Source, error) {
	if rest != "" && !path.IsAbs(rest) {
		return Source{}, errors.New("want exec: and an absolute path, or exec: alone for a directory of the round's own")
	}
	s.Location = rest
	return s, nil
}

// parseFragment returns the checksum in a fragment. It refuses all other fragments, because it may be a mistyped
// checksum.
func parseFragment(fragment string) (string, error) {
	sum, found := strings.CutPrefix(fragment, "sha256=")
	if !found {
		return "", errFragment
	}
	return parseSum(sum)
}

var errFragment = errors.New("unknown fragment after #: want sha256= and 64 hex digits")

// parseSum checks a SHA-256 sum and returns it in lower case.
func parseSum(s string) (string, error) {
	if b, err := hex.DecodeString(s); err != nil || len(b) != 32 {
		return "", errors.New("not a SHA-256 sum (64 hex digits)")
	}
	return strings.ToLower(s), nil
}

// archiveEndings are the endings that the name of an archive may have. A worker recognizes the format of an archive
// from its content, and not from this ending.
var archiveEndings = []string{
	".tar", ".tar.gz", ".tgz", ".tar.bz", ".tar.bz2", ".tar.xz", ".tar.zst", ".zip",
}

func (s Source) withEnding(file string) (Source, error) {
	if strings.HasSuffix(file, "run.sh") {
		s.Script = true
		return s, nil
	}
	for _, e := range archiveEndings {
		if strings.HasSuffix(file, e) {
			return s, nil
		}
	}
	err := fmt.Errorf("unknown ending of %q (expected run.sh, %s)", shorten(path.Base(file)),
		strings.Join(archiveEndings, ", "))
	if strings.Contains(file, "#") {
		err = fmt.Errorf("%w; only #sha256= and 64 hex digits may follow the ending", err)
	}
	return Source{}, err
}

func checkPort(port string) error {
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("invalid port %q: want 1 to 65535", shorten(port))
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// shorten cuts a text to 200 bytes, so that an error that quotes it is not too long.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// originalEndings are the endings of the sources from which workers of the original TDF fetch programs.
var originalEndings = []string{".zip", ".tar", ".tar.gz", ".tar.bz", ".tar.bz2", "/run.sh", ":run.sh"}

// OriginalFetches reports whether workers of the original TDF can fetch a program from the source. They know neither
// stored programs, nor the endings .tgz, .tar.xz and .tar.zst, nor checksums (docs/redis.md, "Beside the original").
func OriginalFetches(source string) bool {
	scheme, _, _ := strings.Cut(source, ":")
	known := scheme == SchemeRsync || scheme == SchemeHTTP || scheme == SchemeHTTPS
	return known && slices.ContainsFunc(originalEndings, func(ending string) bool {
		return strings.HasSuffix(source, ending)
	})
}

// ProgramKeep is how long the server keeps a stored program after its last use, if no task names the program.
const ProgramKeep = Seconds(7 * 24 * 60 * 60)

// UnusedBefore returns the time before which the last use of a removable program or blob lies, which the server keeps
// for the time keep. The server has begun its last complete walk through all tasks at the time walked. A walk renews
// the last use of each program that a task names, so a program with an earlier use has no task. It returns 0 if there
// was no complete walk: then no program is removable.
func UnusedBefore(now, walked Time, keep Seconds) Time {
	if walked <= 0 {
		return 0
	}
	return max(0, min(now.Add(-keep), walked))
}

// StoredProgram returns the SHA-256 of the stored program that a source names. It returns "" for any other source.
func StoredProgram(source string) string {
	if len(source) < len(SchemeRedis) || source[:len(SchemeRedis)] != SchemeRedis { // most sources are no such sources
		return ""
	}
	src, err := ParseSource(source)
	if err != nil || src.Scheme != SchemeRedis {
		return ""
	}
	return src.Location
}
