package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

const minimal = "[tdf]\nnamespace=N\n"

func TestFormat(t *testing.T) {
	want := mustLoad(t, "[redis]\nhost=h\ndb=2\n[tdf]\nnamespace=N\n").server
	for name, file := range map[string]string{
		"byte order mark":      "\uFEFF[redis]\nhost=h\ndb=2\n[tdf]\nnamespace=N\n",
		"Windows line ends":    "\uFEFF[redis]\r\nhost=h\r\ndb=2\r\n[tdf]\r\nnamespace=N\r\n",
		"spaces":               " [redis] \n  host = h \n\tdb\t=\t2\t\n\n[tdf]\n namespace =N",
		"comments":             "# one\n[redis]\n ; two=2\nhost=h\n;[server]\ndb=2\n#\n[tdf]\nnamespace=N",
		"colons":               "[redis]\nhost: h\ndb:2\n[tdf]\nnamespace : N",
		"upper case keys":      "[redis]\nHOST=h\nDb=2\n[tdf]\nNameSpace=N",
		"other order":          "[tdf]\nnamespace=N\n[redis]\ndb=2\nhost=h",
		"other components":     "[redis]\nhost=h\ndb=2\n[tdf]\nnamespace=N\n[worker]\nlease=5\n[task_defaults]\nmax_fails=1\n[manager]",
		"empty value, no line": "[redis]\nhost=h\ndb=2\nusername=\n[tdf]\nnamespace=N",
	} {
		t.Run(name, func(t *testing.T) {
			expect.Equal(t, mustLoad(t, file).server, want)
		})
	}
}

func TestMalformedFiles(t *testing.T) {
	const (
		redisKeys = "host, port, username, password, db, sentinels, sentinel_username, sentinel_password, cluster, tls, tls_ca, tls_cert, tls_key, tls_server_name, replicas"
		lines     = "expected [section], key=value, or a comment that begins with # or ;"
		known     = "unknown section; known sections: [redis], [tdf], [server], [http], [notify], [worker], [manager], [task_defaults], [log]"
		isComment = " ends in a comment; move the comment to its own line; expected "
	)
	for file, want := range map[string]string{
		"":                                "[tdf] namespace: missing; expected a name of 1 to 200 bytes without spaces or parts like :task",
		"[tdf]\n":                         "[tdf] namespace: missing; expected a name of 1 to 200 bytes without spaces or parts like :task",
		"host=h\n":                        "line 1: the key comes before the first [section]",
		"[redis]\nhost=a\n[tdf]\n[redis]": "[redis]: the section is in the file twice; put its keys together",
		"[redis]\npassword=\nPassword=\n": "[redis] password: the key is in its section twice; keep one",
		"[redis]\ndb=1\ndb=1\n":           "[redis] db: the key is in its section twice; keep one",
		"[redis]\ntls_ca=x\ntls_ca=\n":    "[redis] tls_ca: the key is in its section twice; keep one",
		"[Redis]\n":                       "[Redis]: " + known,
		"[DEFAULT]\n":                     "[DEFAULT]: " + known,
		"[DEFAULT]\nhost=a\n":             "[DEFAULT]: " + known,
		"[redis.x]\n":                     "[redis.x]: " + known,
		"[redis]\npasswrod=hunter2\n":     "[redis] passwrod: unknown key; known keys: " + redisKeys,
		"[redis]\nlease=30\n":             "[redis] lease: unknown key; known keys: " + redisKeys,
		"[redis]\nhunter2\n":              "line 2: " + lines,
		"[redis]\npassword hunter2=\n":    "line 2: " + lines,
		"[redis]\n=hunter2\n":             "line 2: " + lines,
		"[redis]\n\"host\"=a\n":           "line 2: " + lines,
		"[redis]\n`host`=a\n":             "line 2: " + lines,
		"[redis]\n-=a\n":                  "line 2: " + lines,
		"[redis]hunter2\n":                "line 1: the line begins with [ but is not a [section]; remove the text after the ]",
		"[redis\n":                        "line 1: the line begins with [ but is not a [section]; remove the text after the ]",
		"[]\n":                            "line 1: the line begins with [ but is not a [section]; remove the text after the ]",
		"\n\n[redis] password=hunter2]\n": "line 3: the line begins with [ but is not a [section]; remove the text after the ]",
		"[redis]\npassword=h\xfcnter2\n":  "line 2: not UTF-8 text; save the file as UTF-8",
		"\xff\xfe[\x00t\x00":              "line 1: not UTF-8 text; save the file as UTF-8",
		"[redis]\nhost=a\x00b\n":          "line 2: the line contains a control character; expected plain text",
		"[redis]\nhost=a\rport=3\n":       "line 2: the line contains a control character; expected plain text",
		"[redis]\nport=6379  ; the port":  `[redis] port: "6379  ; the port"` + isComment + "a whole number from 1 to 65535",
		"[worker]\nlease=30\t# seconds":   `[worker] lease: "30\t# seconds"` + isComment + "a number of seconds from 0.1 up, at most 1000000000",
		"[worker]\ndirectory=. ; here":    `[worker] directory: ". ; here"` + isComment + aPath,
		"[tdf]\nnamespace=; required":     `[tdf] namespace: "; required"` + isComment + "a name of 1 to 200 bytes without spaces or parts like :task",
		"[tdf]\nnamespace=P:group\n":      `[tdf] namespace: "P:group" is not a name of 1 to 200 bytes without spaces or parts like :task`,
		"[redis]\npassword=None  ; none":  "[redis] password: the value is not a password, or None for none (a comment needs its own line)",
	} {
		t.Run(file, func(t *testing.T) {
			_, err := load(source, []byte(file), nil)
			wantError(t, err, source+": "+want)
		})
	}
}

func TestUnreadableFiles(t *testing.T) {
	clearEnvironment(t)
	dir := t.TempDir()
	good := write(t, minimal)
	pipe := filepath.Join(dir, "pipe.cfg")
	expect.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, c := range []struct {
		path   string
		is     error
		reason string
	}{
		{filepath.Join(dir, "none.cfg"), fs.ErrNotExist, "no such file or directory"},
		{dir, syscall.EISDIR, "is a directory"},
		{filepath.Join(good, "below.cfg"), syscall.ENOTDIR, "not a directory"},
		{pipe, errNotRegular, "not a regular file"},
	} {
		want := c.path + ": cannot be read: " + c.reason + "; expected a configuration file"
		for name, load := range loaders {
			t.Run(name+" "+c.reason, func(t *testing.T) {
				err := load(c.path)
				wantError(t, err, want)
				expect.FailsWith(t, err, c.is)
			})
		}
	}
}

var loaders = map[string]func(string) error{
	"server":  func(path string) error { _, err := LoadTool(path, os.Environ()); return err },
	"worker":  func(path string) error { _, err := LoadWorker(path); return err },
	"manager": func(path string) error { _, err := LoadManager(path); return err },
}

func TestHugeFile(t *testing.T) {
	path := write(t, strings.Repeat("#\n", maxFile/2)+minimal)
	_, err := LoadTool(path, nil)
	wantError(t, err, path+": the file has more than 65536 bytes; expected a configuration file")
}

// All text after the delimiter belongs to the password, whatever characters it contains.
func TestPasswords(t *testing.T) {
	for line, want := range map[string]string{
		`None`: "", ``: "", `none`: "none", `abc#def`: "abc#def", `#;% "$'`: `#;% "$'`, `; x`: `; x`, `a ; b # c`: `a ; b # c`,
		`abc\`: `abc\`, `%(host)s`: `%(host)s`, `$HOME${x}`: `$HOME${x}`, `"quoted"`: `"quoted"`, `"`: `"`, `""`: `""`,
		"`a`b": "`a`b", "`": "`", "``": "``", "`a": "`a", `"""a`: `"""a`, `"""a"""`: `"""a"""`, `a=b:c`: `a=b:c`, `[redis]`: `[redis]`, `  inner  space  `: `inner  space`, `ü€`: `ü€`,
	} {
		s := mustLoad(t, minimal+"[redis]\npassword="+line+"\nhost=next\n")
		expect.Equal(t, s.redis.Password, want, "password=", line)
		expect.Equal(t, s.redis.Host, "next", "password=", line)
	}
}

func TestAnyPassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := func(s string) bool { return s != "None" && !noneWithComment().MatchString(s) }
		want := rapid.String().Filter(given).Draw(t, "password")
		if got := mustLoad(t, minimal, "TDF_CFG_REDIS_PASSWORD="+want).redis.Password; got != want {
			t.Fatalf("environment: got %q, want %q", got, want)
		}
		if !plain(want) || strings.Trim(want, " ") != want {
			return // an environment variable can contain this password, but a file cannot (docs/configuration.md, "Passwords")
		}
		if got := mustLoad(t, minimal+"[redis]\npassword="+want).redis.Password; got != want {
			t.Fatalf("file: got %q, want %q", got, want)
		}
	})
}

// FuzzLoad loads any file with any environment variable. Loading ends, and an error is one printable line.
func FuzzLoad(f *testing.F) {
	f.Add("[tdf]\nnamespace=N\n[redis]\npassword=#;%\"\n", "TDF_CFG_REDIS_PORT", "x\ny", "a.cfg")
	f.Add("\uFEFF[a\u2028b]\n", "TDF_CFG_\n", "", "a\nb.cfg")
	f.Add("[tdf]\nnamespace=a\u2028b\n", "PATH", "", "\xff")
	f.Add("[redis]\nport=\u0085\n", "TDF_CFG_WORKER_LEASE", "1e400", strings.Repeat("/long", 100))
	for _, name := range []string{"server", "worker", "manager"} {
		data := expect.Result(os.ReadFile("../../configs/" + name + ".cfg")).Value(f)
		f.Add(string(data), "TDF_CFG_LOG_LEVEL", "", name+".cfg")
	}
	f.Fuzz(func(t *testing.T, file, variable, value, path string) {
		_, err := load(path, []byte(file), []string{variable + "=" + value})
		if err == nil {
			return
		}
		expect.True(t, !strings.ContainsFunc(err.Error(), notPrintable), "not one printable line", err)
		expect.True(t, utf8.ValidString(err.Error()), "not one printable line", err)
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("error is a %T, not an *Error", err)
		}
	})
}
