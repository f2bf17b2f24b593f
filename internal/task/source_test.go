package task

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

const someSum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestParseSource(t *testing.T) {
	upper := strings.ToUpper(someSum)
	tests := []struct {
		in   string
		want Source // without Raw
	}{
		{"http://h/run.sh", Source{Scheme: "http", Location: "http://h/run.sh", Host: "h", Script: true}},
		{"https://h:8443/a/b.tar", Source{Scheme: "https", Location: "https://h:8443/a/b.tar", Host: "h:8443"}},
		{"http://h/x.zip?v=1.exe", Source{Scheme: "http", Location: "http://h/x.zip?v=1.exe", Host: "h"}},
		{"http://h/x.tgz#sha256=" + someSum, Source{Scheme: "http", Location: "http://h/x.tgz", Host: "h", SHA256: someSum}},
		{"http://h/x.tgz?a#sha256=" + upper, Source{Scheme: "http", Location: "http://h/x.tgz?a", Host: "h", SHA256: someSum}},
		{"http://u:p@h/my-run.sh", Source{Scheme: "http", Location: "http://u:p@h/my-run.sh", Host: "h", Script: true}},
		{"http://[::1]:80/x.tar.xz", Source{Scheme: "http", Location: "http://[::1]:80/x.tar.xz", Host: "[::1]:80"}},
		{"rsync:/a b/x.tar.gz", Source{Scheme: "rsync", Location: "/a b/x.tar.gz"}},
		{"rsync:a/x.tar.bz", Source{Scheme: "rsync", Location: "a/x.tar.bz"}},
		{"rsync:./-x/a:b/run.sh", Source{Scheme: "rsync", Location: "./-x/a:b/run.sh", Script: true}},
		{"rsync:a#b.zip#sha256=" + someSum, Source{Scheme: "rsync", Location: "a#b.zip", SHA256: someSum}},
		{"rsync:h:x.tar.bz2", Source{Scheme: "rsync", Location: "h:x.tar.bz2", Host: "h"}},
		{"rsync:u@h:/x.tar.zst", Source{Scheme: "rsync", Location: "u@h:/x.tar.zst", Host: "u@h"}},
		{"rsync:[::1]:/x.zip", Source{Scheme: "rsync", Location: "[::1]:/x.zip", Host: "[::1]"}},
		{"rsync:u@[fe80::1%eth0]:/x.zip", Source{Scheme: "rsync", Location: "u@[fe80::1%eth0]:/x.zip", Host: "u@[fe80::1%eth0]"}},
		{"rsync:a_b-1.c:/x.zip", Source{Scheme: "rsync", Location: "a_b-1.c:/x.zip", Host: "a_b-1.c"}},
		{"rsync:a/[-x]:/run.sh", Source{Scheme: "rsync", Location: "a/[-x]:/run.sh", Script: true}},
		{"rsync:rsync://[::1]:873/m/x.zip", Source{Scheme: "rsync", Location: "rsync://[::1]:873/m/x.zip", Host: "[::1]:873"}},
		{"rsync:rsync://h:873/m/x.zip", Source{Scheme: "rsync", Location: "rsync://h:873/m/x.zip", Host: "h:873"}},
		{"rsync:rsync://u@h/m/d/x.zip", Source{Scheme: "rsync", Location: "rsync://u@h/m/d/x.zip", Host: "u@h"}},
		{"redis:" + upper, Source{Scheme: "redis", Location: someSum, SHA256: someSum}},
		{"exec:", Source{Scheme: "exec"}},
		{"exec:/home/a b#c", Source{Scheme: "exec", Location: "/home/a b#c"}},
	}
	for _, tt := range tests {
		tt.want.Raw = tt.in
		expect.Result(ParseSource(tt.in)).Is(t, tt.want, "ParseSource", tt.in, "=")
	}
}

func TestParseSourceRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "empty"},
		{"run.sh", "no scheme"},
		{"ftp://h/run.sh", `unknown scheme "ftp" (http, https, rsync, redis and exec are known)`},
		{"HTTP://h/run.sh", `unknown scheme "HTTP"`},
		{"file:///x/run.sh", `unknown scheme "file"`},
		{":x/run.sh", `unknown scheme ""`},
		{"http:run.sh", "no host"},
		{"http:///run.sh", "no host"},
		{"http://:80/run.sh", "no host"},
		{"http://h:0/run.sh", "invalid port"},
		{"http://h:65536/run.sh", "invalid port"},
		{"http://h:x/run.sh", "not a valid URL"},
		{"http://h/%zz/run.sh", "not a valid URL"},
		{"http://h/", `unknown ending of "/"`},
		{"http://h/x.exe", `unknown ending of "x.exe"`},
		{"http://h/x.exe?f=run.sh", "unknown ending"},
		{"http://h/x.exe#run.sh", "unknown fragment"},
		{"http://h/x.rar", "unknown ending"},
		{"http://h/x.gz", "unknown ending"},
		{"http://h/x.tar#sha256=12", "not a SHA-256 sum"},
		{"http://h/x.tar#sha256=" + someSum + "0", "not a SHA-256 sum"},
		{"http://h/x.tgz#part.exe", "unknown fragment after #: want sha256= and 64 hex digits"},
		{"http://h/x.tgz#", "unknown fragment"},
		{"http://h/x.tgz##sha256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz#SHA256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz#sha256:" + someSum, "unknown fragment"},
		{"http://h/x.tgz#x#sha256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz#x&sha256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz# sha256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz#%73ha256=" + someSum, "unknown fragment"},
		{"http://h/x.tgz#sha256=" + someSum + "#x", "not a SHA-256 sum"},
		{"http://h/x.tgz#sha256=%30" + someSum[1:], "not a SHA-256 sum"},
		{"rsync:/x.tgz#SHA256=" + someSum, "only #sha256= and 64 hex digits may follow the ending"},
		{"rsync:/x.tgz#x#sha256=" + someSum, "only #sha256= and 64 hex digits may follow the ending"},
		{"rsync:/x.tgz#sha256=" + someSum + "#x", "not a SHA-256 sum"},
		{"rsync:rsync://h/m/x.tgz#", "only #sha256= and 64 hex digits may follow the ending"},
		{"rsync:[-oProxyCommand=x]:/run.sh", "begins with -"},
		{"rsync:[[-oProxyCommand=x]:/run.sh", "begins with -"},
		{"rsync:u@[-oProxyCommand=x]:/run.sh", "begins with -"},
		{"rsync:[x]:/run.sh", "invalid host name"},
		{"rsync:a@-ox@h:/run.sh", "invalid host name"},
		{"rsync:-a@h:/run.sh", "begins with -"},
		{"rsync:h,x:/run.sh", "invalid host name"},
		{"rsync:%h:/run.sh", "invalid host name"},
		{"rsync:rsync://[::1]x/m/run.sh", "invalid host name"},
		{"rsync:rsync://[-x]/m/run.sh", "begins with -"},
		{"rsync:rsync://[x]/m/run.sh", "invalid host name"},
		{"rsync:rsync://u@[-x]:1/m/run.sh", "begins with -"},
		{"http://h/a\x00/run.sh", "control character"},
		{"http://h/a\n/run.sh", "control character"},
		{"http://h/\xff/run.sh", "not valid UTF-8"},
		{"http://h/" + strings.Repeat("a", MaxSource) + "/run.sh", "bytes long (at most 4096)"},
		{"rsync:", "no path"},
		{"rsync:h:", "no path"},
		{"rsync:/a/", "unknown ending"},
		{"rsync:/a/run.sh/", "unknown ending"},
		{"rsync::/run.sh", "no host before the colon"},
		{"rsync:u@:/run.sh", "no host before the colon"},
		{"rsync:h::m/run.sh", "two colons"},
		{"rsync:-e sh/run.sh", "begins with -"},
		{"rsync:--rsh=x:run.sh", "begins with -"},
		{"rsync:u@-oProxyCommand=x:run.sh", "begins with -"},
		{"rsync:h:-x/run.sh", "begins with -"},
		{"rsync:h;x:run.sh", "invalid host name"},
		{"rsync:$(x):run.sh", "invalid host name"},
		{"rsync:h:*/run.sh", "pattern"},
		{"rsync:h:x#sha256=1", "not a SHA-256 sum"},
		{"rsync:rsync://", "no host"},
		{"rsync:rsync:///m/run.sh", "no host"},
		{"rsync:rsync://:1/m/run.sh", "no host"},
		{"rsync:rsync://h:x/m/run.sh", "invalid port"},
		{"rsync:rsync://h:/m/run.sh", "invalid port"},
		{"rsync:rsync://h/run.sh", "no module"},
		{"rsync:rsync://h//run.sh", "no module"},
		{"rsync:rsync://-h/m/run.sh", "begins with -"},
		{"rsync:rsync://h/-m/run.sh", "begins with -"},
		{"rsync:rsync://h/m/?/run.sh", "pattern"},
		{"rsync:rsync://u:p@h/m/run.sh", "takes no password"},
		{"rsync:rsync://@h/m/run.sh", "takes no password"},
		{"redis:", "want redis: and the archive's SHA-256: not a SHA-256 sum (64 hex digits)"},
		{"exec:x", "want exec: and an absolute path"},
		{"redis:xyz", "not a SHA-256 sum"},
		{"redis:" + someSum + "#sha256=" + someSum, "not a SHA-256 sum"},
	}
	for _, tt := range tests {
		_, err := ParseSource(tt.in)
		expect.MustTrue(t, err != nil, "ParseSource", tt.in, err, "want", tt.want)
		expect.True(t, strings.HasPrefix(err.Error(), `source "`), "ParseSource", tt.in, err, "want", tt.want)
		expect.Contains(t, err.Error(), tt.want, "ParseSource", tt.in)
	}
}

func TestHideCredentials(t *testing.T) {
	tests := []struct{ in, want string }{
		{"http://h/run.sh", "http://h/run.sh"},
		{"http://u:pw@h/run.sh", "http://***@h/run.sh"},
		{"http://token@h/run.sh", "http://***@h/run.sh"},
		{"http://u:p@w@h/run.sh", "http://***@h/run.sh"},
		{"http://u:p/w@h/run.sh", "http://***@h/run.sh"},
		{"http://h/x.zip?token=pw&v=1&pw", "http://h/x.zip?token=***&v=***&***"},
		{"http://h/x.zip?pw#pw", "http://h/x.zip?***#***"},
		{"http://h/x.zip#sha256=" + someSum, "http://h/x.zip#sha256=" + someSum},
		{"http://h/x.zip#sha256=pw", "http://h/x.zip#***"},
		{"ftp://u:pw@h/x", "ftp://***@h/x"},
		{"http:/u:pw@h/x?k=pw", "http:***@h/x?k=***"},
		{"mailto:u@h?subject=pw", "mailto:***@h?subject=***"},
		{"HTTP:h/x?pw", "HTTP:h/x?***"},
		{"rsync:/a?b@c:d", "rsync:/a?b@c:d"},
		{"rsync:rsync://u@h/m/a@b/x", "rsync:rsync://u@h/m/a@b/x"},
		{"rsync:rsync://u:pw@h/m/x", "rsync:rsync://***@h/m/x"},
		{"rsync:rsync://u/p:pw@h/m/x", "rsync:rsync://***@h/m/x"},
		{"rsync:u@h:x", "rsync:u@h:x"},
		{"", ""},
	}
	for _, tt := range tests {
		expect.Equal(t, HideCredentials(tt.in), tt.want, "HideCredentials", tt.in, "=")
	}
}

func TestSourceShowsNoCredentials(t *testing.T) {
	src := expect.Result(ParseSource("https://u:hush@h/x.zip?sig=hush")).Value(t)
	asJSON := expect.Result(json.Marshal(src)).Value(t)
	for _, s := range []string{src.String(), fmt.Sprint(src), fmt.Sprintf("%+v", src), string(asJSON)} {
		expect.NotContains(t, s, "hush")
		expect.Contains(t, s, "https://***@h/x.zip")
	}
	for _, bad := range []string{"http://u:hush@h:x/run.sh", "http://u:1/hush@h/x.exe", "ftp://u:hush@h/", "http://u:hush@h/x?k=hush", "http:/u:hush@h/run.sh?k=hush"} {
		_, err := ParseSource(bad)
		expect.MustTrue(t, err != nil, "ParseSource", bad, err)
		expect.NotContains(t, err.Error(), "hush", "ParseSource", bad)
	}
}

// FuzzParseSource checks that no input makes ParseSource panic. If ParseSource accepts a text, it must also accept the
// field Raw of the result. The location and the host of an rsync source must not begin with -, because rsync would read
// them as options.
func FuzzParseSource(f *testing.F) {
	for _, s := range []string{"http://u:p@h/run.sh?x#y", "rsync:h:p.zip", "rsync:rsync://h/m/x.tar", "redis:" + someSum, "rsync:[::1]:x.zip"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		_ = HideCredentials(in)
		src, err := ParseSource(in)
		if err != nil {
			return
		}
		expect.Result(ParseSource(src.Raw)).Is(t, src, in, "parsed again")
		if src.Scheme == SchemeRsync {
			expect.True(t, !strings.HasPrefix(src.Location, "-"), in, "a part is an option", src)
			expect.True(t, !strings.HasPrefix(src.Host, "-"), in, "a part is an option", src)
		}
	})
}

func TestOriginalFetches(t *testing.T) {
	for source, want := range map[string]bool{
		"rsync:/p/run.sh": true, "rsync:run.sh": true, "rsync:h:p.tar.bz2": true, "http://h/p.zip": true, "https://h/p.tar.gz": true,
		"redis:" + strings.Repeat("0", 64): false, "rsync:/p.tar.zst": false, "rsync:/p.tgz": false, "rsync:/p.tar.xz": false, "": false,
		"rsync:/p.tar#sha256=" + strings.Repeat("0", 64): false, "rsync:/my-run.sh": false,
	} {
		expect.Equal(t, OriginalFetches(source), want, source)
		d := Defaults("p", source, "")
		apart := d
		apart.Apart = true
		if source != "" {
			expect.Equal(t, d.Place(), "", source)
			expect.NotEqual(t, apart.Place() == class.Plain, want, source)
		}
	}
}

// The original TDF accepts these values.
func TestTimesAsTheOriginalReadsThem(t *testing.T) {
	h := Hash{"program": "p", "source": "rsync:/p/run.sh", "start_after": "-1", "end_before": "1e18", "timeout": " 5 "}
	one := expect.Result(ParseTask(1, h)).Value(t)
	expect.Equal(t, one.StartAfter, 0)
	expect.Equal(t, one.EndBefore, Never)
	expect.Equal(t, one.Timeout, 5)
}

func TestUnusedBefore(t *testing.T) {
	const week = 604_800
	for _, c := range []struct{ now, walked, want Time }{
		{10 * week, 9.5 * week, 9 * week},
		{10 * week, 8 * week, 8 * week},
		{10 * week, 11 * week, 9 * week}, // the clock was set back since the walk
		{10 * week, 0, 0},
		{10 * week, -1, 0},
		{5, 5, 0},
	} {
		expect.Equal(t, UnusedBefore(c.now, c.walked, ProgramKeep), c.want, "now", c.now, "walked", c.walked)
	}
}
