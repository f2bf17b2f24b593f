package sweep

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/lazy"
)

// A span is one value, or a range of decimal numbers: first, first + step, and so on.
type span struct {
	text        string // single value; "" for a range
	first, step int64  // in units of 10^exponent
	exponent    int
	scientific  bool // values have the format 1.5e-20, because they would have too many digits without an exponent
	count       int64
}

// numberPattern matches a JSON number.
const numberPattern = `-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?`

var (
	rangeLike   = lazy.Regexp(`^[-+]?[0-9.]*[0-9](?:[eE][-+]?[0-9]+)?\.\.`)
	rangeSyntax = lazy.Regexp(`^(` + numberPattern + `)\.\.(` + numberPattern + `)` +
		`(?:/(` + numberPattern[len("-?"):] + `))?$`)

	// foreignRange matches ranges in the notations of other programs.
	foreignRange = lazy.Regexp(`^(` + numberPattern + `)(?:-|–|…|:)(` + numberPattern + `)` +
		`(?:[:/](` + numberPattern + `))?$`)

	errRange = errors.New("is not a range such as 1..10, 10..1, 0.1..0.5/0.1 or 1e-3..5e-3/1e-3; quote it if it is " +
		"text")
)

func parseSpan(item gridItem) (span, error) {
	if item.quoted || !rangeLike().MatchString(item.text) && !betweenNumbers(item.text) {
		return span{text: item.text, count: 1}, nil
	}
	s, err := parseRange(item.text)
	if err != nil {
		return span{}, fmt.Errorf("%s %w", item.text, err)
	}
	return s, nil
}

// suggestion returns the range that the user most likely meant by an unquoted value. It returns "" if the value does
// not look like a range.
func (item gridItem) suggestion() string {
	match := foreignRange().FindStringSubmatch(item.text)
	switch {
	case match == nil || item.quoted:
		return ""
	case match[3] == "":
		return match[1] + ".." + match[2]
	case strings.Contains(item.text, "/"):
		return match[1] + ".." + match[2] + "/" + match[3]
	}
	// no exact suggestion, because some languages write first:step:last and others first:last:step
	return "FIRST..LAST/STEP"
}

// betweenNumbers reports whether a text looks like a range of numbers that rangeSyntax does not match, such as .5..1 or
// 0x10..0x20.
func betweenNumbers(text string) bool {
	from, to, found := strings.Cut(text, "..")
	return found && isAnyNumber(from) && isAnyNumber(to)
}

func isAnyNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	_, err2 := strconv.ParseInt(text, 0, 64)
	return err == nil || err2 == nil
}

func parseRange(text string) (span, error) {
	match := rangeSyntax().FindStringSubmatch(text)
	if match == nil {
		return span{}, errRange
	}
	from, to, step := parseDecimal(match[1]), parseDecimal(match[2]), decimal{digits: "1"}
	if match[3] != "" {
		step = parseDecimal(match[3])
	} else if hint := stepHint(text, from, to); hint != "" {
		return span{}, fmt.Errorf("needs a step, such as %s/%s", text, hint)
	}
	s := span{exponent: min(from.exponent, to.exponent, step.exponent)}
	var last int64
	for _, n := range []struct {
		decimal
		at *int64
	}{{from, &s.first}, {to, &last}, {step, &s.step}} {
		var ok bool
		if *n.at, ok = n.units(s.exponent); !ok {
			return span{}, errRange
		}
	}
	if s.step == 0 {
		return span{}, errors.New("has a step of 0")
	}
	s.scientific = max(plainDigits(s.first, s.exponent), plainDigits(last, s.exponent)) > maxDigits
	distance := last - s.first
	if distance < 0 {
		distance, s.step = -distance, -s.step
	}
	s.count = distance/max(s.step, -s.step) + 1
	return s, nil
}

// stepHint suggests a step for a range without a step. For a range of whole numbers, which needs no step, it returns
// "".
func stepHint(text string, from, to decimal) string {
	exponent := min(from.exponent, to.exponent)
	switch {
	case strings.ContainsAny(text, "eE"):
		return fmt.Sprintf("1e%d", exponent)
	case exponent < 0:
		return "0.1"
	}
	return ""
}

// value returns the value with index i. If values of different ranges are equal as numbers, their texts are equal, too.
func (s *span) value(i int64) string {
	if s.step == 0 {
		return s.text
	}
	n := s.first + i*s.step
	if s.scientific {
		return formatScientific(n, s.exponent)
	}
	return formatPlain(n, s.exponent)
}
