package class

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Names of resources that TDF itself knows. All other names are the user's, such as "licence".
const (
	CPUs   = "cpus"
	Memory = "memory" // in bytes
	GPUs   = "gpus"

	// Slots bounds how many tasks that ask for nothing run at once (the worker's key concurrency). No task can
	// ask for it.
	Slots = "concurrency"
)

// Limits for resources.
const (
	MaxAlternatives  = 8       // of a request
	MaxResources     = 16      // names in one alternative, and in the offer of a worker
	MaxResourceName  = 32      // bytes
	MaxResource      = 1e9     // the largest amount, except of memory
	MaxMemory        = 1 << 50 // bytes
	maxRequestLength = 4096    // bytes of a request as a user writes it
)

// Scale is how many units the amount 1 has. So amounts are exact to 1/10,000. Memory is counted in bytes.
const Scale = 10_000

// An Amount is how much of a resource a task asks for or a worker has, in 1/10,000, or in bytes for memory.
type Amount struct {
	Name  string
	Units int64
}

// String returns the amount as users write it, such as "cpus=0.5" or "memory=2G".
func (a Amount) String() string { return a.Name + "=" + a.Value() }

// Value returns the amount without the name.
func (a Amount) Value() string {
	if a.Name == Memory {
		return memoryText(a.Units)
	}
	whole, rest := a.Units/Scale, a.Units%Scale
	text := strconv.FormatInt(whole, 10)
	if rest > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%04d", rest), "0")
	}
	return text
}

const memoryUnits = "KMGT"

// memoryText returns a number of bytes with the largest unit of which it is a multiple.
func memoryText(bytes int64) string {
	unit := -1
	for bytes > 0 && bytes%1024 == 0 && unit+1 < len(memoryUnits) {
		bytes, unit = bytes/1024, unit+1
	}
	text := strconv.FormatInt(bytes, 10)
	if unit >= 0 {
		text += memoryUnits[unit : unit+1]
	}
	return text
}

// Amounts are amounts of several resources, in alphabetical order of the names.
type Amounts []Amount

// String returns the amounts as users write them, separated by blanks.
func (all Amounts) String() string {
	parts := make([]string, len(all))
	for i, a := range all {
		parts[i] = a.String()
	}
	return strings.Join(parts, " ")
}

// Of returns the units of a resource, or 0.
func (all Amounts) Of(name string) int64 {
	for _, a := range all {
		if a.Name == name {
			return a.Units
		}
	}
	return 0
}

// Sum returns the sum of the units of all resources.
func (all Amounts) Sum() (sum int64) {
	for _, a := range all {
		sum += a.Units
	}
	return sum
}

// ParseAmounts reads amounts such as "cpus=4 memory=2G", separated by blanks or commas. It refuses a name that occurs
// twice. The error has no subject: it says what the text should be.
func ParseAmounts(text string) (all Amounts, err error) {
	for _, word := range resourceWords(text) {
		a, err := parseAmount(word)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(b Amount) bool { return b.Name == a.Name }) {
			return nil, fmt.Errorf("%s occurs twice", a.Name)
		}
		all = append(all, a)
		if len(all) > MaxResources {
			return nil, fmt.Errorf("more than %d resources are named; at most %d are allowed", MaxResources, MaxResources)
		}
	}
	all.sort()
	return all, nil
}

func (all Amounts) sort() {
	slices.SortFunc(all, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
}

func resourceWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
}

func parseAmount(word string) (a Amount, err error) {
	name, value, found := strings.Cut(word, "=")
	if !found {
		return a, fmt.Errorf("%.40q is no amount; want NAME=AMOUNT, such as cpus=4", word)
	}
	if err := checkResourceName(name); err != nil {
		return a, err
	}
	units, ok := parseUnits(name, value)
	switch {
	case !ok && name == Memory:
		return a, fmt.Errorf("memory=%.40s: want bytes with or without one of the units K, M, G and T, at most %s",
			value, memoryText(MaxMemory))
	case !ok:
		return a, fmt.Errorf("%s=%.40s: want a number up to %.0f with at most 4 decimal places", name, value,
			float64(MaxResource))
	case units == 0 && name != CPUs:
		return a, fmt.Errorf("%s=%.40s: want an amount above 0; leave out what you do not need", name, value)
	}
	return Amount{name, units}, nil
}

// misspelled has the right names for what users may write instead.
var misspelled = map[string]string{
	"cpu": CPUs, "core": CPUs, "cores": CPUs, "gpu": GPUs, "mem": Memory,
	"ram": Memory,
}

func checkResourceName(name string) error {
	valid := func(r rune) bool {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./", r)
	}
	switch {
	case misspelled[name] != "":
		return fmt.Errorf("%q is no resource; want %s", name, misspelled[name])
	case name == Slots:
		return fmt.Errorf("%s is a key of workers, and no resource", name)
	case name == "" || len(name) > MaxResourceName || name[0] < 'a' || name[0] > 'z',
		strings.ContainsFunc(name, func(r rune) bool { return !valid(r) }):
		return fmt.Errorf("%.40q is no name of a resource; want a small letter and then up to %d small letters, "+
			"digits and the characters . _ - /", name, MaxResourceName-1)
	}
	return nil
}

// parseUnits reads an amount. It reads digits and not numbers of Go, because 1e400, NaN and 0x1p9 are no amounts.
func parseUnits(name, value string) (int64, bool) {
	if name != Memory {
		return scaled(value, Scale, MaxResource*Scale)
	}
	scale := int64(1)
	upper := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(value), "B"), "I")
	if upper == "" {
		return 0, false
	}
	if i := strings.IndexByte(memoryUnits, upper[len(upper)-1]); i >= 0 {
		upper, scale = upper[:len(upper)-1], 1<<(10*(i+1))
	}
	return scaled(upper, scale, MaxMemory)
}

// scaled returns a decimal number times scale, if this is a whole number up to most.
func scaled(text string, scale, most int64) (int64, bool) {
	const mostDigits, mostPlaces = 16, 4 // so that no product overflows
	whole, rest, point := strings.Cut(text, ".")
	isDigits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	if whole == "" || len(whole) > mostDigits || point && rest == "" || len(rest) > mostPlaces || !isDigits(whole+rest) {
		return 0, false
	}
	n, _ := strconv.ParseInt(whole, 10, 64)
	if n > most/scale {
		return 0, false
	}
	part, _ := strconv.ParseInt(rest+strings.Repeat("0", mostPlaces-len(rest)), 10, 64)
	if part > 0 && scale == 1 || part*scale%Scale != 0 {
		return 0, false
	}
	units := n*scale + part*scale/Scale
	return units, units <= most
}
