package tdf

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
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
	if sum, found := strings.CutPrefix(u.Fragment, "sha256="); found {
		if s.SHA256, err = parseSum(sum); err != nil {
			return Source{}, err
		}
	}
	s.Location, _, _ = strings.Cut(raw, "#")
	s.Host = u.Host
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
	return Source{}, fmt.Errorf("unknown ending of %q (expected run.sh, %s)",
		shorten(path.Base(file)), strings.Join(archiveEndings, ", "))
}

// splitRsync takes PATH, HOST:PATH and rsync://HOST[:PORT]/MODULE/PATH apart as rsync does:
// a colon before the first slash makes a host of what stands before it.
func splitRsync(loc string) (host, file string, err error) {
	if rest, found := strings.CutPrefix(loc, "rsync://"); found {
		host, file, err = splitDaemon(rest)
	} else {
		host, file, err = splitShell(loc)
	}
	if err != nil {
		return "", "", err
	}
	return host, file, checkRsyncParts(host, file)
}

func splitDaemon(rest string) (host, file string, err error) {
	host, file, _ = strings.Cut(rest, "/")
	user, address, found := cutLast(host, "@")
	if found && (user == "" || strings.Contains(user, ":")) {
		return "", "", errors.New("rsync takes no password in a URL (set RSYNC_PASSWORD where the worker starts)")
	}
	if !found {
		address = host
	}
	if address == "" || strings.HasPrefix(address, ":") {
		return "", "", errors.New("no host (expected rsync:rsync://HOST/MODULE/PATH)")
	}
	if name, port, err := net.SplitHostPort(address); err == nil {
		if err := checkPort(port); err != nil || port == "" || name == "" {
			return "", "", fmt.Errorf("bad port in %q", address)
		}
	}
	module, inside, _ := strings.Cut(file, "/")
	if module == "" || inside == "" {
		return "", "", errors.New("no module or no path in it (expected rsync:rsync://HOST/MODULE/PATH)")
	}
	return host, file, nil
}

func splitShell(loc string) (host, file string, err error) {
	end := strings.IndexByte(loc, ':')
	if bracket := strings.Index(loc, "]:"); bracket >= 0 && strings.ContainsRune(loc[:bracket], '[') {
		end = bracket + 1 // an IPv6 address
	}
	if end < 0 || strings.Contains(loc[:end], "/") {
		return "", loc, nil
	}
	host, file = loc[:end], loc[end+1:]
	switch {
	case host == "" || strings.HasSuffix(host, "@"):
		return "", "", errors.New("no host before the colon")
	case strings.HasPrefix(file, ":"):
		return "", "", errors.New("two colons (a daemon is written rsync:rsync://HOST/MODULE/PATH)")
	}
	return host, file, nil
}

// checkRsyncParts keeps out what rsync, ssh or the other end would take for an option or a pattern.
func checkRsyncParts(host, file string) error {
	_, address, found := cutLast(host, "@")
	switch {
	case file == "":
		return errors.New("no path")
	case strings.HasPrefix(host, "-"), found && strings.HasPrefix(address, "-"), strings.HasPrefix(file, "-"):
		return errors.New("a part begins with - and would be taken for an option (a path can begin with ./)")
	case strings.ContainsAny(host, " \t'\"\\$`;&|<>()*?"):
		return fmt.Errorf("%q is no host name", shorten(host))
	case host != "" && strings.ContainsAny(file, "*?["):
		return errors.New("the other end would take * ? [ for a pattern (name one file)")
	}
	return nil
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

// HideCredentials returns the text of a source or URL fit for logs and error texts: user name
// and password, every value in a query, and a fragment that is no checksum become ***. No list
// of telling names (token, key, sig, …) is complete, hence all values. It works on malformed
// URLs too, and then hides too much rather than too little. A secret in the path stays visible.
func HideCredentials(s string) string {
	head, rest, found := strings.Cut(s, "://")
	if !found {
		return s
	}
	rest, fragment, hasFragment := strings.Cut(rest, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	if _, after, found := cutLast(rest, "@"); found && !plainUser(head, rest) {
		rest = "***@" + after
	}
	if hasQuery {
		rest += "?" + hideValues(query)
	}
	if hasFragment {
		rest += "#" + hideFragment(fragment)
	}
	return head + "://" + rest
}

// plainUser tells rsync's user@host, which holds no secret, from user:password@host.
func plainUser(head, rest string) bool {
	user, _, _ := strings.Cut(rest, "@")
	return strings.HasSuffix(head, "rsync") && !strings.ContainsAny(user, ":/")
}

func hideValues(query string) string {
	pairs := strings.Split(query, "&")
	for i, p := range pairs {
		key, _, found := strings.Cut(p, "=")
		if !found {
			key = ""
		} else {
			key += "="
		}
		pairs[i] = key + "***"
	}
	return strings.Join(pairs, "&")
}

func hideFragment(f string) string {
	if sum, found := strings.CutPrefix(f, "sha256="); found {
		if _, err := parseSum(sum); err == nil {
			return f
		}
	}
	return "***"
}

// shorten bounds what an error text quotes.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
