package sweep

import "strings"

// A quoting is what a place in an input is within.
type quoting byte

// Outside quotes, within '…', within "…": see tdf.SplitInput.
const (
	bare quoting = iota
	single
	double
)

// quote writes a value so that it stays what it is at such a place.
func (q quoting) quote(value string) string {
	switch q {
	case single:
		return strings.ReplaceAll(value, `'`, `'\''`)
	case double:
		return doubleEscapes.Replace(value)
	}
	return Quote(value)
}

var doubleEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

// Quote writes a value as one word of an input, with quotes only where it needs them: a shell would take it for the
// same word.
func Quote(value string) string {
	if value != "" && strings.Trim(value, plainCharacters) == "" {
		return value
	}
	return "'" + single.quote(value) + "'"
}

const plainCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_"
