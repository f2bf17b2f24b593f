package sweep

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A span is one value, or a range of decimal numbers: first, first + step, … in units of the last decimal.
type span struct {
	text        string // of the only value; "" for a range
	first, step int64
	decimals    int
	count       int64
}

var (
	rangeLike   = regexp.MustCompile(`^[-+]?[0-9.]*[0-9]\.\.`)
	rangeSyntax = regexp.MustCompile(`^(-?[0-9.]+?)\.\.(-?[0-9.]+)(?:/([0-9.]+))?$`)

	errRange = errors.New("is no range such as 1..10, 10..1 or 0.1..0.5/0.1; quote it if it is text")
)

func parseSpan(item gridItem) (span, error) {
	if item.quoted || !rangeLike.MatchString(item.text) && !betweenNumbers(item.text) {
		return span{text: item.text, count: 1}, nil
	}
	s, err := parseRange(item.text)
	if err != nil {
		return span{}, fmt.Errorf("%s %w", item.text, err)
	}
	return s, nil
}

// betweenNumbers: 1e3..1e5 is not meant as text either.
func betweenNumbers(text string) bool {
	from, to, found := strings.Cut(text, "..")
	_, err := strconv.ParseFloat(from, 64)
	_, err2 := strconv.ParseFloat(to, 64)
	return found && err == nil && err2 == nil
}

func parseRange(text string) (span, error) {
	match := rangeSyntax.FindStringSubmatch(text)
	if match == nil {
		return span{}, errRange
	}
	from, to, step := match[1], match[2], match[3]
	decimals := max(decimalsOf(from), decimalsOf(to), decimalsOf(step))
	stepless := step == ""
	if stepless {
		step = "1"
	}
	s := span{decimals: decimals}
	var last int64
	for _, n := range []struct {
		text string
		at   *int64
	}{{from, &s.first}, {to, &last}, {step, &s.step}} {
		var ok bool
		if *n.at, ok = units(n.text, decimals); !ok {
			return span{}, errRange
		}
	}
	switch {
	case stepless && decimals > 0:
		return span{}, fmt.Errorf("needs a step, such as %s..%s/0.1", from, to)
	case s.step == 0:
		return span{}, errors.New("has a step of 0")
	}
	distance := last - s.first
	if distance < 0 {
		distance, s.step = -distance, -s.step
	}
	s.count = distance/max(s.step, -s.step) + 1
	return s, nil
}

func decimalsOf(number string) int {
	_, decimals, _ := strings.Cut(number, ".")
	return len(decimals)
}

// units returns a decimal number as a whole one of its last decimals; false where it is none, or has
// more digits than are sure to be exact.
func units(number string, decimals int) (int64, bool) {
	whole, fraction, _ := strings.Cut(number, ".")
	digits := whole + fraction + strings.Repeat("0", max(0, decimals-len(fraction)))
	if !plainNumber.MatchString(number) || len(digits) > maxDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

func (s *span) value(i int64) string {
	if s.step == 0 {
		return s.text
	}
	return decimal(s.first+i*s.step, s.decimals)
}

// decimal writes a number without zeros that say nothing: 0.5, not 0.50.
func decimal(n int64, decimals int) string {
	text := strconv.FormatInt(max(n, -n), 10)
	if len(text) <= decimals {
		text = strings.Repeat("0", decimals-len(text)+1) + text
	}
	if decimals > 0 {
		point := len(text) - decimals
		text = strings.TrimRight(text[:point]+"."+text[point:], "0")
		text = strings.TrimSuffix(text, ".")
	}
	if n < 0 {
		text = "-" + text
	}
	return text
}
