package fetch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tdf-framework/tdf/internal/task"
)

// In a program's directory, files whose names begin with reservedPrefix belong to this package.
const (
	reservedPrefix = ".tdf-"
	recordName     = reservedPrefix + "program.json"
)

// A record identifies the source of a fetched program (docs/programs.md, "The record"). It contains no credentials,
// because programs can read it.
type record struct {
	Source string `json:"source"`    // without credentials
	ID     string `json:"source_id"` // SHA-256 of the source's text, including credentials
	SHA256 string `json:"sha256"`    // SHA-256 of the source's content
}

// newRecord returns the record of the job's program. The record of a copy has no source that a task can name.
func (j *job) newRecord(sum string) record {
	if j.original != "" {
		return record{Source: copySource + j.original, ID: "copy", SHA256: cmp.Or(sum, "none")}
	}
	return record{Source: j.src.String(), ID: sourceID(j.src), SHA256: sum}
}

func sourceID(src task.Source) string {
	sum := sha256.Sum256([]byte(src.Raw))
	return hex.EncodeToString(sum[:])
}

// readRecord returns the record in dir. It returns nil if dir contains no record, for example because a user made the
// directory by hand. If the content is wrong, because a program has written to the file, the error is a damagedError.
func readRecord(dir string) (*record, error) {
	var r record
	err := readJSON(filepath.Join(dir, recordName), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (r.ID == "" || r.SHA256 == "") {
		err = errors.New("incomplete")
	}
	if err != nil {
		return nil, damaged(recordName, err)
	}
	return &r, nil
}

// A damagedError says that a program has written to a file that belongs to this package. Another host may be able to
// run the task.
type damagedError struct{ error }

// damaged returns a damagedError, or another error if the file could not be read.
func damaged(name string, err error) error {
	wrong := fmt.Errorf("read %s: %w; remove the program's directory", name, err)
	if errors.As(err, new(syscall.Errno)) && !errors.Is(err, errNotRegular) {
		return wrong
	}
	return damagedError{wrong}
}

// readJSON reads a JSON file. If a program has replaced the file by a link or a pipe, readJSON returns an error.
func readJSON(name string, v any) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	data, err := readRegular(root, filepath.Base(name), maxJournal)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// putJSON writes a JSON file to ./$program/ atomically.
func (j *job) putJSON(into *os.Root, name string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(j.staged(stagedFile), append(data, '\n'), 0o644); err != nil {
		return err
	}
	return j.move(into, stagedFile, name)
}
