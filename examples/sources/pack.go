package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"

	"github.com/mholt/archives"
)

//go:embed run.sh
var script []byte

// endings are those of all archives that there can be (docs/programs.md, "Sources").
var endings = []string{"tar", "tar.gz", "tgz", "tar.bz", "tar.bz2", "tar.xz", "tar.zst", "zip"}

// pack returns an archive with run.sh under the name given.
func pack(ending, name string) ([]byte, error) {
	if ending == "zip" {
		return packZip(name)
	}
	packed, err := packTar(name)
	if err != nil || ending == "tar" {
		return packed, err
	}
	var c archives.Compressor
	switch ending {
	case "tar.gz", "tgz":
		c = archives.Gz{}
	case "tar.bz", "tar.bz2":
		c = archives.Bz2{}
	case "tar.xz":
		c = archives.Xz{}
	case "tar.zst":
		c = archives.Zstd{}
	default:
		return nil, fmt.Errorf("%s is no ending of an archive", ending)
	}
	var buf bytes.Buffer
	w, err := c.OpenWriter(&buf)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(packed); err != nil {
		return nil, err
	}
	err = w.Close()
	return buf.Bytes(), err
}

func packTar(name string) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(script))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(script); err != nil {
		return nil, err
	}
	err := w.Close()
	return buf.Bytes(), err
}

func packZip(name string) ([]byte, error) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	var file io.Writer
	file, err := w.Create(name)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(script); err != nil {
		return nil, err
	}
	err = w.Close()
	return buf.Bytes(), err
}
