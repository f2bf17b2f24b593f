package fetch

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// hostile lists archives that unpack must refuse. The expected error contains the text want.
var hostile = []struct {
	name    string
	items   []item
	want    string
	tarOnly bool // the case applies only to a tar, because a zip cannot contain this entry or packZip cannot write it
}{
	{"parent", []item{{name: "../evil", body: "x"}}, `entry "../evil": has .. in its name`, false},
	{"parent inside", []item{{name: "a/../../evil", body: "x"}}, "has .. in its name", false},
	{"parent harmless", []item{{name: "a/../evil", body: "x"}}, "has .. in its name", false},
	{"absolute", []item{{name: "/tmp/evil", body: "x"}}, "has an absolute name", false},
	{"backslash", []item{{name: `..\evil`, body: "x"}}, "has a backslash in its name", false},
	{"control", []item{{name: "a\x1b[2Jb", body: "x"}}, "has a control character in its name", false},
	{"latin-1", []item{{name: "a\xff", body: "x"}}, "has a name that is not UTF-8", true},
	{"huge name", []item{{name: strings.Repeat("a/", 3000) + "x", body: "x"}}, "has a name of 6001 bytes", false},
	{"huge part", []item{{name: strings.Repeat("a", 256), body: "x"}}, "a part of more than 255 bytes", false},
	{"deep", []item{{name: strings.Repeat("a/", 60) + "x", body: "x"}}, "more than 50 entries", false},
	{"link up", []item{{name: "l", kind: '2', link: "../x"}}, `entry "l": is a symbolic link out of the archive, to "../x"`, false},
	{"link absolute", []item{{name: "l", kind: '2', link: "/etc/passwd"}}, `a symbolic link to the absolute path "/etc/passwd"`, false},
	{"link then write", []item{{name: "l", kind: '2', link: ".."}, {name: "l/evil", body: "x"}}, "is a symbolic link out of the archive", false},
	{"link inside then write", []item{{name: "d", kind: '5', mode: 0o755}, {name: "l", kind: '2', link: "d"}, {name: "l/x", body: "x"}}, `entry "l": is in the archive twice`, false},
	{"link chain", []item{{name: "d/e/x", body: "x"}, {name: "d/e/up", kind: '2', link: "../.."}, {name: "l", kind: '2', link: "d/e/up/../x"}}, "cannot be followed inside the archive", false},
	{"link circle", []item{{name: "a", kind: '2', link: "b"}, {name: "b", kind: '2', link: "a"}}, "in a cycle", false},
	{"link to nothing", []item{{name: "a", kind: '2', link: "b"}}, `to "b", which is not in the archive`, false},
	{"link without target", []item{{name: "a", kind: '2'}}, "with an invalid target", false},
	{"link over a file", []item{{name: "a", body: "x"}, {name: "a", kind: '2', link: "run.sh"}}, "is in the archive twice", false},
	{"hard link up", []item{{name: "l", kind: '1', link: "../x"}}, `is a hard link to "../x", which has .. in its name`, true},
	{"hard link absolute", []item{{name: "l", kind: '1', link: "/etc/passwd"}}, "which has an absolute name", true},
	{"hard link to nothing", []item{{name: "l", kind: '1', link: "x"}}, "no earlier file of the archive has this name", true},
	{"hard link to a directory", []item{{name: "d", kind: '5', mode: 0o755}, {name: "l", kind: '1', link: "d"}}, "no earlier file of the archive has this name", true},
	{"hard link through a link", []item{{name: "s", kind: '2', link: "run.sh"}, {name: "l", kind: '1', link: "s"}}, "no earlier file of the archive has this name", true},
	{"device", []item{{name: "dev", kind: '3'}}, "is a device; only files, directories and links", false},
	{"block device", []item{{name: "dev", kind: '4'}}, "is a device", true},
	{"fifo", []item{{name: "pipe", kind: '6'}}, "is a named pipe", false},
	{"unknown kind", []item{{name: "odd", kind: '7'}}, "is a special file", true},
	{"twice", []item{{name: "a", body: "x"}, {name: "a", body: "y"}}, `entry "a": is in the archive twice`, false},
	{"twice by another name", []item{{name: "a", body: "x"}, {name: "./a", body: "y"}}, "is in the archive twice", false},
	{"file as directory", []item{{name: "a", body: "x"}, {name: "a/b", body: "y"}}, "conflicts with another entry", false},
	{"directory as file", []item{{name: "a/b", body: "y"}, {name: "a", body: "x"}}, "conflicts with another entry", false},
	{"reserved", []item{{name: recordName, body: "{}"}}, "names that begin with .tdf- are reserved", false},
	{"many entries", many(60), "more than 50 entries", false},
	{"many directories", []item{{name: "1/2/3/4/5/6/7/8/x"}, {name: "b/2/3/4/5/6/7/8/x"}, {name: "c/2/3/4/5/6/7/8/x"}, {name: "d/2/3/4/5/6/7/8/x"}, {name: "e/2/3/4/5/6/7/8/x"}, {name: "f/2/3/4/5/6/7/8/x"}}, "50 entries", false},
}

var hostileLimits = Limits{Bytes: 3_000_000, Entries: 50}

func many(n int) []item {
	items := make([]item, n)
	for i := range items {
		items[i] = item{name: fmt.Sprint("f", i)}
	}
	return items
}

// noise returns n bytes that cannot be compressed.
func noise(n int) string {
	var b bytes.Buffer
	for i := uint32(1); b.Len() < n; i++ {
		_ = binary.Write(&b, binary.LittleEndian, i*2654435761)
	}
	return b.String()[:n]
}

func TestHostileArchives(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			items := append(tt.items, runItem)
			checkUnpackFails(t, "tar", pack(t, "tar", items...), tt.want)
			if !tt.tarOnly {
				checkUnpackFails(t, "zip", pack(t, "zip", items...), tt.want)
			}
		})
	}
}

// checkUnpackFails checks that a fetch of an archive fails, and does not change files in the working directory.
func checkUnpackFails(t *testing.T, ending string, data []byte, want string) {
	t.Helper()
	f := newFetcher(t)
	f.Limits = hostileLimits
	src := write(t, filepath.Join(t.TempDir(), "x."+ending), data)
	write(t, filepath.Join(f.Dir, "prog", "results", "1.out"), []byte("kept"))
	step := "unpack: "
	if strings.Contains(want, "reserved") {
		step = "install: "
	}
	err := fetchFails(t, f, "rsync:"+src, "x."+ending+": "+step, want)
	expect.True(t, !strings.ContainsAny(err.Error(), "\x00\x1b"), "control characters in the error", err)
}

// One hostile entry for each compression is enough, because all compressions use the same code for entries.
func TestHostileInEveryCompression(t *testing.T) {
	for _, ending := range tarEndings {
		checkUnpackFails(t, ending, pack(t, ending, item{name: "../evil", body: "x"}, runItem), "has .. in its name")
	}
}

func TestBombs(t *testing.T) {
	for _, ending := range append([]string{"zip"}, tarEndings[1:]...) {
		t.Run(ending, func(t *testing.T) {
			data := pack(t, ending, item{name: "zeros", body: string(make([]byte, 3_000_001))}, runItem)
			checkUnpackFails(t, ending, data, `entry "zeros": more than 3000000 bytes (max_program_bytes)`)
		})
	}
}

func mkdir(t testing.TB, name string) string {
	must(t, os.Mkdir(name, 0o755))
	return name
}

func TestSkippedContentIsBounded(t *testing.T) {
	// Global headers do not count as entries. The test's tar consists mostly of global headers with random content.
	data := append(globalHeaders(t, 8), packTar(t, item{name: "noise", body: noise(100_000)})...)
	data = bytes.ReplaceAll(data, []byte(strings.Repeat("x", 400_000)), []byte(hex.EncodeToString([]byte(noise(200_000)))))
	checkUnpackFails(t, "tar.gz", compress(t, "tar.gz", data), "more than 3000000 bytes (max_program_bytes)")
}

func TestInvalidArchives(t *testing.T) {
	tests := map[string]struct {
		data []byte
		want string
	}{
		"garbage":    {[]byte(strings.Repeat("garbage ", 200)), "the content is not a supported archive"},
		"a page":     {[]byte("<html>Please log in</html>"), "the content is not a supported archive"},
		"rar":        {[]byte("Rar!\x1a\x07\x01\x00 and so on"), "the content is not a supported archive"},
		"gz only":    {compress(t, "tgz", []byte(strings.Repeat("text ", 200))), "the gz file contains no tar"},
		"empty tar":  {make([]byte, 1024), "the archive is empty"},
		"empty tgz":  {compress(t, "tgz", make([]byte, 1024)), "the archive is empty"},
		"empty zip":  {packZip(t), "the archive is empty"},
		"bad gz":     {[]byte("\x1f\x8b and no more"), "damaged or truncated"},
		"bad xz":     {[]byte("\xfd7zXZ\x00 and no more"), "damaged or truncated"},
		"bad zst":    {[]byte("\x28\xb5\x2f\xfd and no more"), "damaged or truncated"},
		"bad bz2":    {[]byte("BZh9 and no more"), "damaged or truncated"},
		"bad zip":    {[]byte("PK\x03\x04 and no more"), "damaged or truncated"},
		"nul in zip": {bytes.ReplaceAll(packZip(t, item{name: "aXb", body: "x"}), []byte("aXb"), []byte("a\x00b")), "has a control character in its name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { checkUnpackFails(t, "zip", tt.data, tt.want) })
	}
}

// zipField changes a field of a zip that contains one entry. It changes the local header and the central directory.
func zipField(data []byte, local, central int, value []byte) []byte {
	data = bytes.Clone(data)
	copy(data[local:], value)
	copy(data[bytes.Index(data, []byte("PK\x01\x02"))+central:], value)
	return data
}

func TestZipsThatLie(t *testing.T) {
	data := packZip(t, item{name: "run.sh", body: goodScript})
	checkUnpackFails(t, "zip", zipField(data, 22, 24, []byte{5, 0, 0, 0}), "damaged or truncated")
	checkUnpackFails(t, "zip", zipField(data, 22, 24, []byte{0xff, 0xff, 0xff, 0x7f}), "damaged or truncated")
	checkUnpackFails(t, "zip", zipField(data, 14, 16, []byte{1, 2, 3, 4}), "damaged or truncated")
	checkUnpackFails(t, "zip", zipField(data, 6, 8, []byte{1, 0}), `entry "run.sh": is encrypted`)
	checkUnpackFails(t, "zip", zipField(data, 8, 10, []byte{95, 0}), "is compressed by method 95")
}

func TestModesAreMasked(t *testing.T) {
	for _, ending := range []string{"zip", "tar"} {
		f := newFetcher(t)
		src := write(t, filepath.Join(t.TempDir(), "x."+ending), pack(t, ending,
			item{name: "suid", body: "x", mode: 0o4777}, item{name: "closed", body: "x", mode: 0o200},
			item{name: "dir", kind: tar.TypeDir, mode: 0o7777}, runItem))
		p := fetchWorks(t, f, "rsync:"+src)
		got := snapshot(t, p.Dir)
		expect.Equal(t, got["suid"], `-rwxr-xr-x "x"`, ending)
		expect.Equal(t, got["closed"], `-rw-r--r-- "x"`, ending)
		expect.Equal(t, got["dir"], "drwxr-xr-x", ending)
	}
}

func TestGoodLinks(t *testing.T) {
	f := newFetcher(t)
	src := write(t, filepath.Join(t.TempDir(), "x.tar"), packTar(t,
		item{name: "./", kind: tar.TypeDir, mode: 0o755}, item{name: "early", kind: '2', link: "bin/tool"},
		item{name: "bin/tool", body: "x"}, item{name: "bin/tool2", kind: '1', link: "./bin/tool"},
		item{name: "lib/up", kind: '2', link: "../bin"}, item{name: "bin/", kind: tar.TypeDir, mode: 0o755}, runItem))
	p := fetchWorks(t, f, "rsync:"+src)
	for _, name := range []string{"early", "bin/tool2", "lib/up/tool"} {
		expect.Equal(t, string(expect.Result(os.ReadFile(filepath.Join(p.Dir, name))).Value(t)), "x", name)
	}
}
