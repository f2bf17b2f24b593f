package rounddir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Result returns the content of result.json: one JSON value in UTF-8, unchanged except for masked secrets. It returns
// "" if the file does not exist. An error makes the round fail. It says which part of the file is invalid.
func (d *Dir) Result() (text string, err error) {
	b, err := d.readFile(ResultFile, d.limits.Result)
	if err == nil && b != nil {
		err = CheckJSON(b)
	}
	if err != nil {
		return "", fmt.Errorf("result.json: %s", d.secrets.Mask(err.Error()))
	}
	text = d.secrets.Mask(string(b))
	if b != nil && !json.Valid([]byte(text)) {
		return "", errors.New(
			"result.json: it contains the value of a secret outside of a string, where masking is impossible")
	}
	return text, nil
}

func (d *Dir) readFile(name string, most int64) ([]byte, error) {
	f, info, err := d.open(name)
	if f == nil {
		return nil, err
	}
	defer f.Close()
	b, err := readWhole(f, info.Size, most)
	return bytes.TrimPrefix(b, []byte("\ufeff")), err // some editors and languages begin a text with a byte order mark
}

// Opens returns the content of open.jsonl, with masked secrets. If the file does not exist, it returns an empty text.
// An error makes the round fail.
func (d *Dir) Opens(most int64) (string, error) {
	b, err := d.readFile(openFile, most)
	if err == nil && !utf8.Valid(b) {
		err = fmt.Errorf("it is not UTF-8 (byte %d)", firstInvalid(b))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %s", openFile, d.secrets.Mask(err.Error()))
	}
	return d.secrets.Mask(string(b)), nil
}

// Unfit returns why the program cannot run on this host, as the file unfit says, or "" if there is no such file.
func (d *Dir) Unfit() string {
	b, err := d.readFile(unfitFile, maxReason)
	if err != nil {
		return fmt.Sprintf("%s: %v", unfitFile, err)
	}
	reason := strings.TrimSpace(strings.ToValidUTF8(string(b), "\ufffd"))
	if reason == "" && b != nil {
		return "the program gives no reason"
	}
	return d.secrets.Mask(reason)
}

const maxReason = 4096

// CheckJSON returns an error that says which part of a result is not JSON in UTF-8.
func CheckJSON(b []byte) error {
	if len(b) == 0 {
		return errors.New("it is empty")
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("it is not UTF-8 (byte %d)", firstInvalid(b))
	}
	var wrong *json.SyntaxError
	var value json.RawMessage
	if err := json.Unmarshal(b, &value); errors.As(err, &wrong) {
		return fmt.Errorf("it is not JSON: %w (byte %d)", err, wrong.Offset)
	} else if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	return nil
}

// firstInvalid returns the position of the first byte that is not UTF-8. Positions count from 1, as in encoding/json.
func firstInvalid(b []byte) int {
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at + 1
}
