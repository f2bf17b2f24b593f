package doctest

import (
	"fmt"
	"go/constant"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// units are in bytes or in seconds; percent is a part of one.
var units = map[string]string{
	"": "1", "KiB": "1024", "MiB": "1048576", "GiB": "1073741824", "TiB": "1099511627776",
	"ms": "0.001", "minutes": "60", "hours": "3600", "days": "86400", "weeks": "604800", "percent": "0.01",
}

var words = strings.Fields("zero one|an? two three four five six seven eight nine ten")

// number returns a regular expression for the number of units in a constant.
func number(t testing.TB, name, unit string) string {
	t.Helper()
	v := quantity(t, name)
	size, known := units[unit]
	expect.MustTrue(t, known, "unknown unit", unit)
	v = constant.BinaryOp(constant.ToFloat(v), token.QUO, constant.MakeFromLiteral(size, token.FLOAT, 0))
	whole, exact := constant.Int64Val(constant.ToInt(v))
	if !exact {
		f, _ := constant.Float64Val(v)
		return regexp.QuoteMeta(strconv.FormatFloat(f, 'f', -1, 64))
	}
	digits := fmt.Sprint(whole)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + ",?" + digits[i:]
	}
	if whole < int64(len(words)) {
		return "(?:" + digits + "|" + words[whole] + ")"
	}
	return digits
}

// quantity returns a constant, or the default of a key. A time is in seconds.
func quantity(t testing.TB, name string) constant.Value {
	t.Helper()
	if section, key, ok := strings.Cut(name, " "); ok {
		return constant.MakeFromLiteral(strings.Trim(keyOf(t, section, key)[1], "`"), token.FLOAT, 0)
	}
	c := value(t, name)
	if strings.HasSuffix(c.Type().String(), "time.Duration") {
		return constant.BinaryOp(constant.ToFloat(c.Val()), token.QUO, constant.MakeInt64(1e9))
	}
	if c.Val().Kind() == constant.String {
		return constant.MakeFromLiteral(constant.StringVal(c.Val()), token.INT, 0)
	}
	return c.Val()
}

// keyOf returns the row of a key in docs/configuration.md, which is compared with the code in package config.
func keyOf(t testing.TB, section, key string) []string {
	t.Helper()
	for _, row := range rows(t, "docs/configuration.md", "### `"+section+"`") {
		if names(row[0])[0] == key {
			return row
		}
	}
	t.Fatal("docs/configuration.md has no key", section, key)
	return nil
}
