package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tdf-framework/tdf"
)

// Names in a program's directory that begin so are this package's own.
const (
	reservedPrefix = ".tdf-"
	recordName     = reservedPrefix + "program.json"
)

// A record says what a fetched program is (docs/programs.md, "The record"). The program itself
// can read it, so there are no credentials in it, only a sum that tells sources apart.
type record struct {
	Source string `json:"source"`    // as shown to users
	ID     string `json:"source_id"` // SHA-256 of the source with everything in it
	SHA256 string `json:"sha256"`    // of what came from the source
}

func sourceID(src tdf.Source) string {
	sum := sha256.Sum256([]byte(src.Raw))
	return hex.EncodeToString(sum[:])
}

// readRecord returns nil where there is none: a directory made by hand.
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
		return nil, fmt.Errorf("%s cannot be read (%w); remove the program's directory", recordName, err)
	}
	return &r, nil
}

// readJSON reads a file that a program may have replaced by anything.
func readJSON(name string, v any) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	data, err := readRegular(root, filepath.Base(name), mostJournal)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// putJSON writes to ./$program/ so that the file is there as a whole or not at all.
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
