package fetch

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-framework/tdf/internal/expect"
)

// filesDir creates a directory with the unusual kinds of files that a program can create.
func filesDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/files"
	write(t, dir+"/a.txt", []byte("a"))
	write(t, dir+"/sub/-rf --delete", []byte("odd"))
	write(t, dir+"/sub/b\n\xff", []byte("odder"))
	must(t, os.Chmod(dir+"/a.txt", 0o4755))
	must(t, os.Mkdir(dir+"/empty", 0o500))
	must(t, os.Symlink("/etc/passwd", dir+"/link"))
	must(t, os.Symlink("sub", dir+"/sublink"))
	must(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	return dir
}

// delivered is the snapshot of the target that the tests expect after a delivery of filesDir.
var delivered = map[string]string{
	"17":                    "drwxr-xr-x",
	"17/0":                  "drwxr-xr-x",
	"17/0/a.txt":            `-rwxr-xr-x "a"`,
	"17/0/sub":              "drwxr-xr-x",
	"17/0/sub/-rf --delete": `-rw-r--r-- "odd"`,
	"17/0/sub/b\n\xff":      `-rw-r--r-- "odder"`,
	"17/0/empty":            "drwx------",
	"17/0/link":             "Lrwxrwxrwx",
	"17/0/sublink":          "Lrwxrwxrwx",
}

// checkDelivered checks that dir contains the files in delivered. It ignores the targets of links, because an rsync
// daemon may change them.
func checkDelivered(t *testing.T, dir string) {
	t.Helper()
	got := snapshot(t, dir)
	for name, text := range got {
		if text[0] == 'L' {
			got[name], _, _ = strings.Cut(text, " ->")
		}
	}
	expect.Equal(t, cmp.Diff(delivered, got), "")
}

func TestDeliver(t *testing.T) {
	tmp, to, module := t.TempDir()+"/made", t.TempDir(), t.TempDir()
	log := fakeSSH(t, `ls `+tmp+` >`+to+`/during; exec sh -c "$*"`)
	t.Setenv("TMPDIR", "/no/such/directory")
	t.Setenv("RSYNC_RSH", "touch "+to+"/rsh")
	files := filesDir(t)
	before := snapshot(t, files)
	for name, c := range map[string]struct{ target, arrives string }{
		"local":          {"rsync:" + to + "/local", to + "/local"},
		"ends in /":      {"rsync:" + to + "/slash/", to + "/slash"},
		"module":         {"rsync:rsync://" + daemon(t, module) + "/in", module},
		"path in module": {"rsync:rsync://" + daemon(t, to) + "/in/path", to + "/path"},
		"ssh":            {"rsync:bob@far.example:" + to + "/a b'$(x)", to + "/a b'$(x)"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the second delivery changes nothing
				must(t, Deliver(t.Context(), tmp, files, "17/0", c.target))
				checkDelivered(t, c.arrives)
			}
			checkSame(t, files, before)
		})
	}
	expect.Result(os.Readlink(to+"/local/17/0/link")).Is(t, "/etc/passwd")
	called := expect.Result(os.ReadFile(log)).Value(t)
	expect.Contains(t, string(called), "-oBatchMode=yes")
	expect.NotContains(t, string(called), "RSYNC_RSH")
	expect.Result(os.Stat(to+"/rsh")).Fails(t, "", "RSYNC_RSH was used")
	during := expect.Result(os.ReadFile(to + "/during")).Value(t)
	expect.True(t, strings.HasPrefix(string(during), "deliver-"), during)
	expect.Len(t, expect.Result(os.ReadDir(tmp)).Value(t), 0, "temporary files left")
}

// The files of several rounds and tasks can be delivered to the same target.
func TestDeliverBesideOthers(t *testing.T) {
	needRsync(t)
	to := t.TempDir()
	for _, sub := range []string{"17/0", "17/1", "18/0", "-x/-y", "flat"} {
		must(t, Deliver(t.Context(), t.TempDir(), filesDir(t), sub, "rsync:"+to))
		expect.Equal(t, string(expect.Result(os.ReadFile(to+"/"+sub+"/a.txt")).Value(t)), "a", sub)
	}
}

func deliverFails(t *testing.T, ctx context.Context, target string, texts ...string) error {
	t.Helper()
	tmp := t.TempDir()
	err := Deliver(ctx, tmp, filesDir(t), "17/0", target)
	checkFailed(t, err, texts...)
	left, _ := os.ReadDir(tmp)
	expect.True(t, len(left) <= 0, "temporary files left", left)
	return err
}

func TestDeliverFails(t *testing.T) {
	needRsync(t)
	to := t.TempDir()
	write(t, to+"/file", nil)
	base := "rsync:rsync://" + daemon(t, to)
	for target, want := range map[string][]string{
		base + "/m":                     {"delivering to " + base + "/m/17/0: exit status ", "read only"},
		base + "/x/y":                   {"exit status 5 (the daemon refused the request): ", "Unknown module 'x'"},
		base + "/in/none/at/all":        {"all but the last part of its path must exist", "No such file or directory"},
		"rsync:" + to + "/none/at/all":  {"delivering to rsync:" + to + "/none/at/all/17/0: exit status ", "No such file or directory"},
		"rsync:" + to + "/file":         {"delivering to ", "exit status "},
		"rsync:rsync://127.0.0.1:1/m/x": {"exit status 10 (no connection): "},
		"rsync:relative":                {`target "rsync:relative": a path on the worker's machine must be absolute`},
	} {
		deliverFails(t, t.Context(), target, want...)
	}
}

func TestDeliverShellFails(t *testing.T) {
	for name, c := range map[string]struct{ command, want string }{
		"no host":    {`echo "ssh: Could not resolve hostname far.example" >&2; exit 255`, "Could not resolve hostname far.example"},
		"host key":   {`echo "Host key verification failed." >&2; exit 255`, "Host key verification failed."},
		"disk full":  {`echo "rsync: write failed: No space left on device (28)" >&2; exit 11`, "rsync:far.example:out/17/0: no space is left at the target: "},
		"no command": {`exit 127`, "the other host has no rsync"},
		"exits late": {`exec <&- >&-; sleep 0.1; exit 127`, "the other host has no rsync"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSSH(t, c.command)
			err := deliverFails(t, t.Context(), "rsync:far.example:out", c.want)
			expect.True(t, !errors.Is(err, syscall.ENOSPC), "the error says that the disk of this machine is full; want an error about the target's disk")
		})
	}
}

func TestDeliverWithoutRsync(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	deliverFails(t, t.Context(), "rsync:/x", "delivering to rsync:/x/17/0: rsync is not installed on this worker (apt-get install rsync)")
}

func TestDeliverCancelled(t *testing.T) {
	dir := t.TempDir()
	fakeSSH(t, withProcess(dir))
	err := deliverFails(t, endsWith(t, dir), "rsync:far.example:out", "delivering to rsync:far.example:out/17/0: "+errEnough.Error())
	expect.FailsWith(t, err, errEnough)
	checkEnded(t, dir+"/pids")
}

func TestDeliverOddDirectories(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/etc", dir+"/link"))
	write(t, dir+"/file", nil)
	for path, want := range map[string]string{
		"/link": "/link is not a directory", "/file": "/file is not a directory", "/none": "no such file or directory",
	} {
		checkFailed(t, Deliver(t.Context(), t.TempDir(), dir+path, "17/0", "rsync:"+dir+"/to"), want)
	}
	for _, sub := range []string{"", ".", "..", "../x", "/x", "a/../b", "a//b"} {
		checkFailed(t, Deliver(t.Context(), t.TempDir(), dir, sub, "rsync:"+dir+"/to"), "is not a path below the target")
	}
	expect.Result(os.Lstat(dir+"/to")).Fails(t, "", "something was delivered")
}

func TestParseTarget(t *testing.T) {
	for _, target := range []string{
		"rsync:/data", "rsync:/data/", "rsync:/", "rsync:/a:b/c", "rsync:host:out", "rsync:host:/out", "rsync:bob@host:./out/",
		"rsync:[::1]:/out", "rsync:rsync://host/module", "rsync:rsync://bob@host:8730/module/a b/",
	} {
		must(t, ParseTarget(target))
	}
	for target, want := range map[string]string{
		"":                                   "expected rsync:PATH",
		"/data":                              "expected rsync:PATH",
		"http://host/x":                      "expected rsync:PATH",
		"rsync:":                             "expected rsync:PATH",
		"rsync:host:":                        "expected rsync:PATH",
		"rsync:data":                         "must be absolute",
		"rsync:./data":                       "must be absolute",
		"rsync::out":                         "no host before the colon",
		"rsync:host::m/x":                    "two colons",
		"rsync:-oProxyCommand=x:/out":        "would be taken for an option",
		"rsync:bob@-oProxyCommand=x:/out":    "would be taken for an option",
		"rsync:host:-x":                      "would be taken for an option",
		"rsync:a b:/out":                     "invalid host name",
		"rsync:host:/out/*":                  "for a pattern",
		"rsync:rsync://host":                 "no module",
		"rsync:rsync:///m/x":                 "no host",
		"rsync:rsync://bob:hunter2@host/m/x": "takes no password",
		"rsync:host:/a\nb":                   "control character",
		"rsync:host:/a/..":                   "ends in ..",
	} {
		err := ParseTarget(target)
		checkFailed(t, err, want, "target ")
		if err != nil {
			expect.NotContains(t, err.Error(), "hunter2")
		}
	}
}
