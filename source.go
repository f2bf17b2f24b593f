package tdf

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxSource is the length that a source may have, in bytes.
const MaxSource = 4096

// The schemes of sources (docs/programs.md, "Sources").
const (
	SchemeHTTP  = "http"
	SchemeHTTPS = "https"
	SchemeRsync = "rsync"
	SchemeRedis = "redis"
)

// A Source says where workers get a program from (docs/programs.md, "Sources"). [ParseSource]
// makes one. Two sources are equal when their original texts are, credentials included.
//
// What formats or marshals a Source as a whole gets it without credentials; Raw, and Location
// of http and https, contain them.
type Source struct {
	Raw      string // the original text
	Scheme   string // http, https, rsync or redis
	Location string // http(s): the URL; rsync: what follows "rsync:"; redis: the sum. Without #sha256=…
	Host     string // where Location is; "" for a local file and for redis
	SHA256   string // what the content must sum to, 64 lower-case hex digits; "" if it was not said
	Script   bool   // it is run.sh itself, and no archive
}

// String returns the source as [HideCredentials] shows it: fit for logs and error texts.
func (s Source) String() string { return HideCredentials(s.Raw) }

// MarshalText does as String does, so that a structured log shows no credentials either.
func (s Source) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSource reads a source and refuses, before anything is fetched, whatever no worker could
// fetch: an unknown scheme or ending, a location without a host or file, a malformed checksum.
// The error names the source, without credentials, and what is wrong with it.
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
		return Source{}, errors.New("no scheme (http, https, rsync and redis are known)")
	}
	src := Source{Raw: s, Scheme: scheme}
	switch scheme {
	case SchemeHTTP, SchemeHTTPS:
		return src.parseURL(s)
	case SchemeRsync:
		return src.parseRsync(rest)
	case SchemeRedis:
		return src.parseRedis(rest)
	}
	return Source{}, fmt.Errorf("unknown scheme %q (http, https, rsync and redis are known)", shorten(scheme))
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
		// The parser's own words may quote a password.
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
	// A path may contain #, so only the checksum itself is split off.
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
		return Source{}, fmt.Errorf("redis: wants the archive's SHA-256: %w", err)
	}
	s.Location, s.SHA256 = sum, sum
	return s, nil
}

// parseFragment refuses every fragment but a checksum, so that a mistyped one is not taken for none.
func parseFragment(fragment string) (string, error) {
	sum, found := strings.CutPrefix(fragment, "sha256=")
	if !found {
		return "", errFragment
	}
	return parseSum(sum)
}

var errFragment = errors.New("unknown fragment after #: want sha256= and 64 hex digits")

// parseSum keeps a mistyped checksum from being taken for none.
func parseSum(s string) (string, error) {
	if b, err := hex.DecodeString(s); err != nil || len(b) != 32 {
		return "", errors.New("not a SHA-256 sum (64 hex digits)")
	}
	return strings.ToLower(s), nil
}

// archiveEndings are the names by which an archive is known before it is fetched. What it
// really is, its content decides.
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
	err := fmt.Errorf("unknown ending of %q (expected run.sh, %s)", shorten(path.Base(file)), strings.Join(archiveEndings, ", "))
	if strings.Contains(file, "#") {
		err = fmt.Errorf("%w; after it only #sha256= and 64 hex digits may follow", err)
	}
	return Source{}, err
}

func checkPort(port string) error {
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
		return fmt.Errorf("bad port %q", shorten(port))
	}
	return nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// shorten bounds what an error text quotes.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
