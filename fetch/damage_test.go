package fetch

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// unpackFiles unpacks an archive, and returns its files or the error.
func unpackFiles(t testing.TB, data []byte) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	tree := mkdir(t, dir+"/tree")
	err := unpack(t.Context(), write(t, dir+"/archive", data), tree, Limits{}, TestCompressions)
	defer os.RemoveAll(dir)
	if err != nil {
		return nil, err
	}
	return snapshot(t, tree), nil
}

// smallArchives returns a small archive for each compression. An archive whose name begins with "two" consists of two
// compressed parts.
func smallArchives(t testing.TB) map[string][]byte {
	t.Helper()
	plain := packTar(t, item{name: "a", body: noise(150)}, runItem, item{name: "zeros", body: string(make([]byte, 700))})
	found := map[string][]byte{}
	for _, ending := range []string{"tar.gz", "tar.bz2", "tar.xz", "tar.zst"} {
		found[ending] = compress(t, ending, plain)
		found["two "+ending] = append(compress(t, ending, plain[:1536]), compress(t, ending, plain[1536:])...)
	}
	return found
}

// If one bit of an archive is wrong, unpacking fails or returns the same files. Each run tries every ninth byte, from a
// random one on.
func TestBitFlipIsFound(t *testing.T) {
	for name, data := range smallArchives(t) {
		t.Run(name, func(t *testing.T) {
			want := expect.Result(unpackFiles(t, data)).Value(t)
			refused, tried := 0, 0
			for i := rand.IntN(9); i < len(data); i += 9 {
				tried++
				bit := 8*i + i*5%8
				bad := bytes.Clone(data)
				bad[bit/8] ^= 1 << (bit % 8)
				got, err := unpackFiles(t, bad)
				if err != nil {
					refused++
				} else if !maps.Equal(want, got) {
					t.Fatalf("flipping bit %d of %d changes the files, without an error", bit, 8*len(data))
				}
			}
			expect.Compare(t, refused, ">=", tried*7/10, tried)
		})
	}
}

// Unpacking a truncated archive fails, even if only checksums after the last entry are missing. Each run tries the last
// bytes and, from a random one on, every ninth of the others.
func TestTruncationIsFound(t *testing.T) {
	archives := smallArchives(t)
	archives["zip"] = packZip(t, item{name: "a", body: noise(150)}, runItem)
	for name, data := range archives {
		want := expect.Result(unpackFiles(t, data)).Value(t)
		for end, step := rand.IntN(9), 9; end < len(data); end += step {
			if end >= len(data)-32 {
				step = 1
			}
			if got, err := unpackFiles(t, data[:end]); err == nil && !maps.Equal(want, got) {
				t.Errorf("%s: the first %d of %d bytes unpack to other files, without an error", name, end, len(data))
			} else if err == nil && end > len(data)-8 {
				t.Errorf("%s: the first %d of %d bytes unpack without an error", name, end, len(data))
			}
		}
	}
}

// If bytes follow the end of an archive, the unpacker accepts or refuses them as GNU tar and the usual decompressors
// do.
func TestTrailingBytes(t *testing.T) {
	zeros, text := make([]byte, 4096), []byte("something else\n")
	plain := packTar(t, runItem)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	tests := map[string]struct {
		data []byte
		want string // "" if no error is expected
	}{
		"tar zeros":          {join(plain, zeros), ""},
		"tar, more":          {join(plain, text), ""},
		"tar, another":       {join(plain, packTar(t, item{name: "b", body: "x"})), ""},
		"tar without end":    {withoutEnd(t, runItem), ""},
		"gz, zeros inside":   {compress(t, "tgz", join(plain, zeros)), ""},
		"gz, more inside":    {compress(t, "tgz", join(plain, text)), ""},
		"gz without end":     {compress(t, "tgz", withoutEnd(t, runItem)), ""},
		"gz, zeros":          {join(compress(t, "tgz", plain), zeros), ""},
		"gz, a member":       {join(compress(t, "tgz", plain), compress(t, "tgz", zeros)), ""},
		"gz, empty member":   {join(compress(t, "tgz", plain), compress(t, "tgz", nil), zeros), ""},
		"gz, more":           {join(compress(t, "tgz", plain), text), "damaged"},
		"gz, zeros and more": {join(compress(t, "tgz", plain), zeros, text), "damaged"},
		"xz, padding":        {join(compress(t, "tar.xz", plain), zeros), ""},
		"xz, more":           {join(compress(t, "tar.xz", plain), text), "damaged"},
		"bz2, more":          {join(compress(t, "tar.bz2", plain), text), "damaged"},
		"zst, more":          {join(compress(t, "tar.zst", plain), text), "damaged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := unpackFiles(t, tt.data)
			switch {
			case tt.want != "":
				checkFailed(t, err, "the archive is damaged or truncated", tt.want)
			case err != nil:
				t.Error(err)
			case len(got) != 1 || got["run.sh"] == "":
				t.Errorf("%v", got)
			}
		})
	}
}

// Archives of GNU tar can be unpacked, with any record size and any compressor.
func TestArchivesOfGNUTar(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/p/run.sh", []byte(goodScript))
	write(t, dir+"/p/data/noise", []byte(noise(200_000)))
	for _, ending := range tarEndings {
		for _, factor := range []string{"1", "20", "2048"} {
			expect.Result(exec.LookPath("tar")).OK(t, "tar is not installed: apt-get install tar")
			name := filepath.Join(dir, factor+"."+ending)
			option := map[string]string{"tar.bz": "-cjf"}[ending]
			if option == "" {
				option = "-caf"
			}
			if out, err := exec.Command("tar", "-b", factor, option, name, "-C", dir+"/p", ".").CombinedOutput(); err != nil {
				t.Logf("%s: %v: %s", ending, err, out) // the compressor is not installed
				continue
			}
			fetchWorks(t, newFetcher(t), "rsync:"+name)
		}
	}
}
