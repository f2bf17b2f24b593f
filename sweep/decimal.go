package sweep

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/lazy"
)

// maxDigits is the maximum number of decimal digits with which a number can be converted to float64 and back without
// loss.
const maxDigits = 15

var numberSyntax = lazy.Regexp(`^` + numberPattern + `$`)

// isNumber reports whether a text is a number that a reader can convert to a float64 without loss. These texts do not
// count as numbers (docs/tdf.md, "Sweeps"):
//   - texts with leading zeros or with more than 15 digits
//   - numbers outside the range of a float64
//   - texts that look like ids
func isNumber(text string) bool {
	const longest = len("-0.") + maxDigits + len("e-308")
	if len(text) > longest || !numberSyntax().MatchString(text) {
		return false
	}
	mantissa, exponent, scientific := cutExponent(text)
	switch {
	case len(mantissa)-strings.Count(mantissa, "-")-strings.Count(mantissa, ".") > maxDigits:
		return false
	case !scientific:
		return true
	}
	return !looksLikeID(mantissa, exponent) && inRange(text, mantissa)
}

func cutExponent(number string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		return number[:i], number[i+1:], true
	}
	return number, "", false
}

// looksLikeID reports whether a text, such as 3e05 or 1234e56, is more likely a hexadecimal id than a number.
func looksLikeID(mantissa, exponent string) bool {
	if strings.ContainsAny(mantissa, "-.") || strings.ContainsAny(exponent, "-+") {
		return false
	}
	zeros, err := strconv.Atoi(exponent)
	return err != nil || strconv.Itoa(zeros) != exponent || len(mantissa) > 1 && len(mantissa)+zeros > maxDigits
}

// inRange reports whether a float64 represents the number with a precision of 15 digits.
func inRange(number, mantissa string) bool {
	const leastNormal = 0x1p-1022
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && (math.Abs(f) >= leastNormal || strings.Trim(mantissa, "-0.") == "")
}

// A decimal represents the number digits · 10^exponent.
type decimal struct {
	digits   string // may begin with a minus sign
	exponent int
}

// parseDecimal parses a number that matches numberPattern.
func parseDecimal(number string) decimal {
	mantissa, power, _ := cutExponent(number)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d := decimal{digits: whole + fraction}
	d.exponent, _ = strconv.Atoi(power) // for an exponent that is too large, Atoi returns the largest int
	d.exponent = max(min(d.exponent, outOfRange), -outOfRange)
	if strings.Trim(d.digits, "-0") == "" {
		d.exponent = min(d.exponent, 0) // zero needs no exponent
	}
	d.exponent -= len(fraction)
	return d
}

// outOfRange is an exponent that is too large for a float64.
const outOfRange = 1000

// units returns the number as a multiple of 10^exponent. If the number has more than 15 digits, or is outside the range
// of a float64, units returns false.
func (d decimal) units(exponent int) (int64, bool) {
	n, err := strconv.ParseInt(d.digits, 10, 64)
	zeros := d.exponent - exponent
	if err != nil || !inRange(fmt.Sprintf("%se%d", d.digits, d.exponent), d.digits) {
		return 0, false
	}
	if n == 0 {
		return 0, len(d.digits) <= maxDigits
	}
	if len(strings.TrimPrefix(d.digits, "-"))+zeros > maxDigits {
		return 0, false
	}
	for range zeros {
		n *= 10
	}
	return n, true
}

// plainDigits counts the digits of n·10^exponent, written without an exponent.
func plainDigits(n int64, exponent int) int {
	digits := len(strconv.FormatInt(max(n, -n), 10))
	if exponent < 0 {
		return max(digits, 1-exponent)
	}
	return digits + exponent
}

// formatPlain formats n·10^exponent without an exponent and without trailing zeros: 0.5, not 0.50.
func formatPlain(n int64, exponent int) string {
	text := strconv.FormatInt(max(n, -n), 10)
	switch decimals := -exponent; {
	case n == 0:
		return "0"
	case decimals <= 0:
		text += strings.Repeat("0", exponent)
	default:
		text = strings.Repeat("0", max(0, decimals+1-len(text))) + text
		point := len(text) - decimals
		text = strings.TrimSuffix(strings.TrimRight(text[:point]+"."+text[point:], "0"), ".")
	}
	if n < 0 {
		text = "-" + text
	}
	return text
}

// formatScientific formats n·10^exponent with one digit before the point: 1.5e-20.
func formatScientific(n int64, exponent int) string {
	if n == 0 {
		return "0"
	}
	digits := strconv.FormatInt(max(n, -n), 10)
	exponent += len(digits) - 1
	text := digits[:1]
	if fraction := strings.TrimRight(digits[1:], "0"); fraction != "" {
		text += "." + fraction
	}
	if n < 0 {
		text = "-" + text
	}
	return fmt.Sprintf("%se%d", text, exponent)
}
