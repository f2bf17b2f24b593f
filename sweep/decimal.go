package sweep

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// maxDigits is how many decimal digits a float64 always holds, so that whoever reads a number of so many can write it
// again.
const maxDigits = 15

var numberSyntax = regexp.MustCompile(`^` + numberPattern + `$`)

// isNumber reports whether a text may become a number without losing anything to those who read it as a float64. So
// these stay text: numbers with leading zeros, with more than 15 digits, out of a float64's range, and what
// may as well be an id (docs/tdf.md, "Sweeps").
func isNumber(text string) bool {
	const longest = len("-0.") + maxDigits + len("e-308")
	if len(text) > longest || !numberSyntax.MatchString(text) {
		return false
	}
	mantissa, exponent, scientific := cutExponent(text)
	switch {
	case len(mantissa)-strings.Count(mantissa, "-")-strings.Count(mantissa, ".") > maxDigits:
		return false
	case !scientific:
		return true
	}
	return !likeID(mantissa, exponent) && inRange(text, mantissa)
}

func cutExponent(number string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		return number[:i], number[i+1:], true
	}
	return number, "", false
}

// likeID: nobody writes a number as 3e05 or 1234e56, and hexadecimal ids such as hashes look like this.
func likeID(mantissa, exponent string) bool {
	if strings.ContainsAny(mantissa, "-.") || strings.ContainsAny(exponent, "-+") {
		return false
	}
	zeros, err := strconv.Atoi(exponent)
	return err != nil || strconv.Itoa(zeros) != exponent || len(mantissa) > 1 && len(mantissa)+zeros > maxDigits
}

// inRange reports whether a float64 holds the number to 15 digits.
func inRange(number, mantissa string) bool {
	const leastNormal = 0x1p-1022
	f, err := strconv.ParseFloat(number, 64)
	return err == nil && (math.Abs(f) >= leastNormal || strings.Trim(mantissa, "-0.") == "")
}

// A decimal is digits, with a sign, times 10 to the power of the exponent.
type decimal struct {
	digits   string
	exponent int
}

// parseDecimal takes a number apart that numberPattern matches.
func parseDecimal(number string) decimal {
	mantissa, power, _ := cutExponent(number)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d := decimal{digits: whole + fraction}
	d.exponent, _ = strconv.Atoi(power) // of an exponent that is too large it is the largest int
	if d.exponent = max(min(d.exponent, outOfRange), -outOfRange); strings.Trim(d.digits, "-0") == "" {
		d.exponent = min(d.exponent, 0) // a zero has none
	}
	d.exponent -= len(fraction)
	return d
}

// outOfRange is an exponent that no float64 has.
const outOfRange = 1000

// units returns the number as a whole one of units of 10 to the power of exponent; false where it has more digits than
// are sure to be exact, or is out of a float64's range.
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

// plainDigits counts the digits of n units when they are written without an exponent.
func plainDigits(n int64, exponent int) int {
	digits := len(strconv.FormatInt(max(n, -n), 10))
	if exponent < 0 {
		return max(digits, 1-exponent)
	}
	return digits + exponent
}

// plain writes n units of 10 to the power of exponent without zeros that say nothing: 0.5, not 0.50.
func plain(n int64, exponent int) string {
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

// scientific writes n units with one digit before the point: 1.5e-20.
func scientific(n int64, exponent int) string {
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
