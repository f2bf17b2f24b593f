package results

import (
	"math"
	"strconv"
	"strings"
)

// Bounds of a column.
const (
	maxTexts = 2000 // different texts; all others are one text
	maxText  = 100  // bytes of a text or of a name

	maxSpelled = 20_000 // numbers whose spelling is kept
)

// OtherText stands for texts of a column beyond the first 2,000.
const OtherText = "(other)"

// A Column has a value for each row of a table: a number or a text.
type Column struct {
	Name    string
	Numbers []float64 // NaN for no value; nil in a column with texts
	Codes   []int32   // indexes of Texts, or -1 for no value; nil in a column of numbers
	Texts   []string
	known   map[string]int32

	// spelled has numbers such as 007, 1e5 or NaN as they stand in the results, by row. If a later row has a text, all
	// values of the column are texts.
	spelled map[int]string
}

// set sets a value of a column. A column is one of numbers until it gets a text.
func (c *Column) set(row int, value string) {
	v, err := strconv.ParseFloat(value, 64)
	isNumber := err == nil || v != 0 // beyond the range, v is infinite
	switch {
	case value == "":
		v = math.NaN()
	case !isNumber && c.known == nil:
		c.toTexts()
	}
	if c.known == nil {
		for len(c.Numbers) <= row {
			c.Numbers = append(c.Numbers, math.NaN())
		}
		c.Numbers[row] = v
		c.spell(row, value)
		return
	}
	for len(c.Codes) <= row {
		c.Codes = append(c.Codes, -1)
	}
	c.Codes[row] = c.code(value)
}

// spell keeps the spelling of a number, if it is not the usual one.
func (c *Column) spell(row int, value string) {
	delete(c.spelled, row)
	if value == "" || value == strconv.FormatFloat(c.Numbers[row], 'g', -1, 64) && value != "NaN" ||
		len(c.spelled) >= maxSpelled {
		return
	}
	if c.spelled == nil {
		c.spelled = map[int]string{}
	}
	c.spelled[row] = value
}

// code returns the code of a text.
func (c *Column) code(value string) int32 {
	if value == "" {
		return -1
	}
	if len(value) > maxText {
		value = strings.ToValidUTF8(value[:maxText], "") + "…"
	}
	if _, known := c.known[value]; !known {
		if len(c.Texts) >= maxTexts {
			value = OtherText
		}
		if _, known := c.known[value]; !known {
			c.known[value] = int32(len(c.Texts))
			c.Texts = append(c.Texts, value)
		}
	}
	return c.known[value]
}

// toTexts makes a column of numbers one of texts.
func (c *Column) toTexts() {
	c.known, c.Codes = map[string]int32{}, []int32{}
	for row, v := range c.Numbers {
		value := c.spelled[row]
		if value == "" && !math.IsNaN(v) {
			value = strconv.FormatFloat(v, 'g', -1, 64)
		}
		c.Codes = append(c.Codes, c.code(value))
	}
	c.Numbers, c.spelled = nil, nil
}

// move copies a value to another row.
func (c *Column) move(row, to int) {
	if c.known == nil {
		c.Numbers[to] = c.Numbers[row]
		c.spell(to, c.spelled[row])
	} else {
		c.Codes[to] = c.Codes[row]
	}
}

// pad gives a column as many values as the table has rows.
func (c *Column) pad(rows int) {
	for c.known == nil && len(c.Numbers) < rows {
		c.Numbers = append(c.Numbers, math.NaN())
	}
	for c.known != nil && len(c.Codes) < rows {
		c.Codes = append(c.Codes, -1)
	}
}
