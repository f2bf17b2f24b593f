package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// What is packed is read, but only a file whose name was asked for is executable.
func TestRoundTrip(t *testing.T) {
	var p Packer
	packed, files, err := p.Bundle()
	expect.NoError(t, err)
	expect.Equal(t, packed, "")
	expect.Equal(t, files, task.Files{})
	expect.NoError(t, p.Add("a", 0o755, 5, strings.NewReader("hello and more")))
	expect.NoError(t, p.Add("b/c", 0o755, 0, strings.NewReader("")))
	packed, files, err = p.Bundle()
	expect.NoError(t, err)
	expect.Equal(t, files, task.Files{Count: 2, Bytes: 5})
	var got []string
	err = Read(packed, []string{"a", "*"}, MaxBytes, func(name string, mode fs.FileMode, content io.Reader) error {
		text, err := io.ReadAll(content)
		got = append(got, name+" "+mode.String()+" "+string(text))
		return err
	})
	expect.NoError(t, err)
	expect.Equal(t, strings.Join(got, "|"), "a -rwxr-xr-x hello|b/c -rw-r--r-- ")
	expect.Equal(t, expect.Result(Check(packed, []string{"*"}, 5)).Value(t), files)
	expect.Result(Check(packed, []string{"*"}, 4)).Fails(t, "more bytes than are allowed")
	expect.Fails(t, new(Packer).Add("d", 0o644, 3, strings.NewReader("12")), "it shrank from 3 to 2 bytes")
}

func tarOf(t *testing.T, headers ...tar.Header) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for _, h := range headers {
		expect.NoError(t, w.WriteHeader(&h))
	}
	expect.NoError(t, w.Close())
	expect.NoError(t, z.Close())
	return packed.String()
}

func TestHostileBundles(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	link := tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}
	good := tarOf(t, file("a"))
	many := make([]tar.Header, MaxFiles+1)
	for i := range many {
		many[i] = file("f" + strconv.Itoa(i))
	}
	for want, packed := range map[string]string{
		`it is no tar.gz`:                 "hello",
		`".bashrc" matches none of`:       tarOf(t, file("a"), file(".bashrc")),
		`".git/x" matches none of`:        tarOf(t, file(".git/x")),
		`"../a" is no name`:               tarOf(t, file("../a")),
		`"a/../../b" is no name`:          tarOf(t, file("a/../../b")),
		`"/etc/passwd" is no name`:        tarOf(t, file("/etc/passwd")),
		`"./a" is no name`:                tarOf(t, file("./a")),
		`"a//b" is no name`:               tarOf(t, file("a//b")),
		`"a\\b" is no name`:               tarOf(t, file(`a\b`)),
		`"l" is no regular file`:          tarOf(t, link),
		`"l/a" is no`:                     tarOf(t, file("a"), tar.Header{Typeflag: tar.TypeLink, Name: "l/a", Linkname: "a"}),
		`"d/" is no name`:                 tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "d/"}),
		`"p" is no regular file`:          tarOf(t, tar.Header{Typeflag: tar.TypeFifo, Name: "p"}),
		`"a" is there twice`:              tarOf(t, file("a"), file("a")),
		`"a" is a file and a directory`:   tarOf(t, file("a"), file("a/b")),
		`"x/y" is there twice`:            tarOf(t, file("x/y/z"), file("x/y")),
		`it has more than 10000 files`:    tarOf(t, many...),
		`it is damaged: unexpected EOF`:   good[:len(good)-20],
		`it is damaged: archive/tar: inv`: gzipped(t, strings.Repeat("x", 1024)),
	} {
		expect.Result(Check(packed, []string{"*"}, MaxBytes)).Fails(t, want)
	}
	bomb := gzipped(t, strings.Repeat("\x00", 1<<20))
	expect.Result(Check(bomb, nil, 0)).OK(t)
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	expect.NoError(t, err)
	expect.NoError(t, z.Close())
	return packed.String()
}
