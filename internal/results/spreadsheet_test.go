package results

import "testing"

// Only cells that a spreadsheet would run as formulas get an apostrophe.
func TestEscapeFormulas(t *testing.T) {
	for cell, want := range map[string]string{
		"=1+1": "'=1+1", "+1": "'+1", "-x": "'-x", "-1+cmd|' /C calc'!A0": "'-1+cmd|' /C calc'!A0", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t'=1",
		"\r=1": "'\r'=1", "\n=1": "'\n'=1", "＝1": "'＝1", "－1": "'－1", "-": "'-", "=": "'=",
		"": "", " =1+1": "' =1+1", "\u00a0=1": "'\u00a0=1", "\ufeff=1": "'\ufeff=1", "\u3000\u200b @x": "'\u3000\u200b @x", "\u2028=1": "'\u2028=1", "\x00=1": "'\x00=1",
		"x;=1+1": "x;'=1+1", "x; \ufeff=1;-5;-x": "x;' \ufeff=1;-5;'-x", "x\t+1": "x\t'+1", "x\n=1\r\n@y": "x\n'=1\r\n'@y", ";=1": ";'=1", "\xff;=1": "\xff;'=1", `"=1`: `'"=1`, `x;"=1"`: `x;'"=1"`,
		"a=1": "a=1", "a;b": "a;b", "a; b": "a; b", " a": " a", "[1,-2]": "[1,-2]", " -5": " -5", `"a"`: `"a"`, "x;\n": "x;\n", "\n": "'\n", "1-2": "1-2", "-5": "-5", "-0.5": "-0.5", "-1e-3": "-1e-3", "'=1": "'=1", "\xff=": "\xff=", "é": "é", "𝒜": "𝒜",
	} {
		row := []string{cell}
		if escapeFormulas(row); row[0] != want {
			t.Errorf("%q becomes %q, want %q", cell, row[0], want)
		}
	}
}
