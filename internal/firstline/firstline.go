// Package firstline says why the kernel would not see the #! of a script.
package firstline

import (
	"bytes"
	"errors"
)

var marks = []struct {
	begin string
	err   error
}{
	{"\xef\xbb\xbf", errors.New("run.sh begins with a byte order mark (BOM), so the kernel does not see its #!; " +
		"save it as UTF-8 without BOM")},
	{"\xff\xfe", errUTF16},
	{"\xfe\xff", errUTF16},
}

var (
	errUTF16 = errors.New("run.sh is a text in UTF-16, which no interpreter reads; save it as UTF-8 without BOM")
	errBlank = errors.New("run.sh has a blank or an empty line before its #!, which counts only at the very " +
		"beginning; remove what is before it")
	errCRLF = errors.New("run.sh has the line ends of Windows (CRLF), which become a part of its first line; " +
		"convert it to LF")
)

// Check returns an error if a script begins with a mark, a blank or an empty line before its #!, or if its first line
// ends with a carriage return. Its parameter is the beginning of the script.
func Check(head []byte) error {
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.begin)) {
			return m.err
		}
	}
	begin := bytes.TrimLeft(head, " \t\r\n")
	if !bytes.HasPrefix(begin, []byte("#!")) {
		return nil
	}
	if len(begin) < len(head) {
		return errBlank
	}
	if line, _, ended := bytes.Cut(head, []byte("\n")); ended && bytes.HasSuffix(line, []byte("\r")) {
		return errCRLF
	}
	return nil
}
