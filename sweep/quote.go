package sweep

import "strings"

// A quoting is the kind of quotes around a place in an input (see tdf.SplitInput).
type quoting byte

const (
	bare   quoting = iota // no quotes
	single                // '…'
	double                // "…"
)

// quote returns a value with the escapes that it needs within these quotes.
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

// Quote returns a value as one word of an input. It adds quotes only if necessary. A shell reads the result as the same
// word.
func Quote(value string) string {
	if value != "" && strings.Trim(value, plainCharacters) == "" {
		return value
	}
	return "'" + single.quote(value) + "'"
}

const plainCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_"
