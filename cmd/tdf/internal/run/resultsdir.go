package run

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/sweep"
)

// A resultsDir is the directory of --results, with files for each command: stdout, stderr, and seq with the number of
// the input. A nil resultsDir has none.
type resultsDir struct {
	root  string
	dir   string    // below which the names of the template are
	names *template // nil if the names come from the values
}

// writesTable reports whether --results names a table. Anything that is there and no regular file, such as a pipe, gets
// a table, too.
func (r *run) writesTable() bool {
	info, err := os.Stat(r.a.Path(r.results))
	special := err == nil && !info.IsDir() && !info.Mode().IsRegular()
	return r.results != "" && (strings.HasSuffix(r.results, ".csv") || special)
}

// openResultsDir makes the directory, so that the call ends before its first command if it cannot.
func (r *run) openResultsDir(names *template) (*resultsDir, error) {
	if r.results == "" || r.writesTable() {
		return nil, nil
	}
	d := &resultsDir{root: r.a.Path(r.results), dir: r.a.Path("."), names: names}
	if names != nil {
		return d, nil
	}
	return d, os.MkdirAll(d.root, 0o755)
}

// create makes the files of a task.
func (d *resultsDir) create(t *manager.Task, of item) (files [2]*os.File, err error) {
	names, err := d.paths(of.values(t), of.number)
	if err != nil {
		return files, err
	}
	err = os.MkdirAll(filepath.Dir(names[0]), 0o755)
	if err == nil {
		err = os.WriteFile(names[2], []byte(strconv.FormatInt(of.number, 10)), 0o644)
	}
	for i := range files {
		if err == nil {
			files[i], err = os.Create(names[i])
		}
	}
	return files, err
}

// paths returns the names of the files with stdout, stderr and seq.
func (d *resultsDir) paths(params []sweep.Param, number int64) (all [3]string, err error) {
	at := d.root + "/"
	if d.names != nil {
		name, err := d.names.one(&sweep.Row{Params: params}, number)
		if err != nil {
			return all, err
		}
		at = below(d.dir, name)
		if !strings.HasSuffix(name, "/") {
			return [3]string{at, at + ".err", at + ".seq"}, nil
		}
		at += "/"
	} else {
		for _, p := range params {
			at += fileName(p.Name) + "/" + fileName(p.Text) + "/"
		}
	}
	return [3]string{at + "stdout", at + "stderr", at + "seq"}, nil
}

// maxFileName is the longest name of a file, in bytes.
const maxFileName = 255

var inFileName = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\x00", `\0`, "/", `\_`)

// fileName returns the name of the directory for a value, as GNU parallel has it. A value that is too long ends with
// its hash, so that no two values share a directory.
func fileName(value string) string {
	name := inFileName.Replace(value)
	if name == "." || name == ".." {
		return `\` + name
	}
	if len(name) <= maxFileName {
		return name
	}
	sum := sha256.Sum256([]byte(value))
	hash := hex.EncodeToString(sum[:16])
	return name[:maxFileName-len(hash)] + hash
}
