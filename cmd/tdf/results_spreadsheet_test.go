package main

import "testing"

// Only cells that a spreadsheet would run as formulas get an apostrophe.
func TestEscapeFormulas(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-x": "'-x", "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1",
		"\r=1": "'\r=1", "\n=1": "'\n=1", "＝1": "'＝1", "－1": "'－1", "-": "'-", "=": "'=",
		"": "", "a=1": "a=1", "1-2": "1-2", "-5": "-5", "-0.5": "-0.5", "-1e-3": "-1e-3", "'=1": "'=1", "\xff=": "\xff=", "é": "é", "𝒜": "𝒜",
	} {
		row := []string{cell}
		if escapeFormulas(row); row[0] != want {
			t.Errorf("%q becomes %q, want %q", cell, row[0], want)
		}
	}
}
