package class

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Request is what a round of a task needs: one of the alternatives, the first that fits.
// Nil means that the task asks for nothing.
type Request []Amounts

const alternativeWord = "or"

// String returns the text from which [ParseRequest] makes the same request, such as "cpus=1 gpus=1 or cpus=16".
func (r Request) String() string {
	parts := make([]string, len(r))
	for i, all := range r {
		parts[i] = all.String()
	}
	return strings.Join(parts, " "+alternativeWord+" ")
}

// ParseRequest reads a request such as "gpus=1 memory=2G or cpus=16". An alternative without cpus gets cpus=1.
// The text "" is a request for nothing. The error has no subject: it says what the text should be.
func ParseRequest(text string) (r Request, err error) {
	if len(text) > maxRequestLength {
		return nil, fmt.Errorf("has %d bytes; at most %d are allowed", len(text), maxRequestLength)
	}
	return parseRequest(text)
}

func parseRequest(text string) (r Request, err error) {
	words := resourceWords(text)
	for len(words) > 0 {
		end := slices.Index(words, alternativeWord)
		last := end < 0
		if last {
			end = len(words)
		}
		all, err := parseAlternative(words[:end])
		if err != nil {
			return nil, err
		}
		r = r.with(all)
		if last {
			break
		}
		words = words[end+1:]
		if len(words) == 0 {
			return nil, errNoAlternative
		}
	}
	if len(r) > MaxAlternatives {
		return nil, fmt.Errorf("there are %d alternatives; at most %d are allowed", len(r), MaxAlternatives)
	}
	return r, nil
}

var errNoAlternative = errors.New("an alternative is empty; want amounts before and after each \"or\"")

func parseAlternative(words []string) (Amounts, error) {
	if len(words) == 0 {
		return nil, errNoAlternative
	}
	all, err := ParseAmounts(strings.Join(words, " "))
	if err != nil {
		return nil, err
	}
	hasCPUs := func(a Amount) bool { return a.Name == CPUs }
	if slices.ContainsFunc(all, hasCPUs) {
		return all, nil
	}
	if len(all) == MaxResources {
		return nil, fmt.Errorf("an alternative has no cpus, and so it gets cpus=1; at most %d resources are allowed",
			MaxResources)
	}
	all = append(all, Amount{CPUs, Scale})
	all.sort()
	return all, nil
}

// The separators of a request in the name of a requirement, such as "cpus:10000,gpus:10000|cpus:160000". Lua reads it,
// so its amounts are whole numbers of units.
const (
	alternativeSeparator = "|"
	amountSeparator      = ","
	unitsSeparator       = ":"
)

// Part returns the request as the name of a requirement has it.
func (r Request) Part() string {
	alternatives := make([]string, len(r))
	for i, all := range r {
		amounts := make([]string, len(all))
		for k, a := range all {
			amounts[k] = a.Name + unitsSeparator + strconv.FormatInt(a.Units, 10)
		}
		alternatives[i] = strings.Join(amounts, amountSeparator)
	}
	return strings.Join(alternatives, alternativeSeparator)
}

// parsePart reads a request in the name of a requirement. It returns nil for a text that Part does not return. Rounded
// amounts may have made it longer than what a user may write.
func parsePart(text string) Request {
	var words []string
	for alternative := range strings.SplitSeq(text, alternativeSeparator) {
		if len(words) > 0 {
			words = append(words, alternativeWord)
		}
		for amount := range strings.SplitSeq(alternative, amountSeparator) {
			name, digits, _ := strings.Cut(amount, unitsSeparator)
			units, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || units < 0 {
				return nil
			}
			words = append(words, Amount{name, units}.String())
		}
	}
	r, err := parseRequest(strings.Join(words, " "))
	if err != nil || r.Part() != text {
		return nil
	}
	return r
}
