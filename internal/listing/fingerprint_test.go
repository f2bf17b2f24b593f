package listing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestTellingLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":       {"", ""},
		"blanks":        {" \n\t\n\r\n", ""},
		"last line":     {"one\ntwo\n\n", "two"},
		"without end":   {"one\ntwo", "two"},
		"python":        {"Traceback (most recent call last):\n  File \"run.py\", line 3, in <module>\n    f()\nValueError: bad\n", "ValueError: bad"},
		"java":          {"Exception in thread \"main\" java.lang.Error: bad\n\tat Main.main(Main.java:3)\n\t... 5 more\n", `Exception in thread "main" java.lang.Error: bad`},
		"rust":          {"thread 'main' panicked at src/main.rs:2:5:\nbad\nnote: run with `RUST_BACKTRACE=1`\n", "bad"},
		"node":          {"Error: bad\n    at f (x.js:1:7)\n\nNode.js v18.1.0\n", "Error: bad"},
		"go":            {"starting\npanic: bad\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:5 +0x1d\nexit status 2\n", "panic: bad"},
		"go, fatal":     {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.main()\n", "fatal error: all goroutines are asleep - deadlock!"},
		"only a word":   {"don't panic: it is fine\nreal cause\n", "real cause"},
		"long go trace": {"panic: bad\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f()\n\t/x.go:5 +0x1d\n", 20_000), "panic: bad"},
		"much below":    {"real cause\n" + strings.Repeat("   \t\n    more\n", 3_000), "real cause"},
		"only remarks":  {"real cause\n" + strings.Repeat("note: x\n", 3_000), ""},
		"all indented":  {"  one\n  two\n", "two"},
		"colours":       {"\x1b[1;31merror:\x1b[0m bad \x1b]8;;http://x\x07link\x1b]8;;\x07\n", "error: bad link"},
		"bar":           {" 10%\r 50%\rfailed at 50%\n", "failed at 50%"},
		"windows":       {"one\r\ntwo\r\n", "two"},
		"controls":      {"a\x00b\x07c\u202ed\n", "a b c d"},
		"binary":        {"\xff\xfe\x00\x01", "\uFFFD"},
	} {
		expect.Equal(t, tellingLine(c.text), c.want, name)
	}
}

func TestNormalise(t *testing.T) {
	for line, want := range map[string]string{
		"":                                    "",
		"ValueError: bad value 17":            "ValueError: bad value <n>",
		"ValueError: bad value -3.25e-07":     "ValueError: bad value <n>",
		"at 0x7ffd12, sum deadbeef01":         "at <n>, sum <n>",
		"a decade of facades":                 "a decade of facades",
		"can't open 'a b.txt': it isn't here": "can't open \"…\": it isn't here",
		`KeyError: "x"`:                       `KeyError: "…"`,
		"no `foo` here":                       `no "…" here`,
		"2026-11-21 19:38:23,123 ERROR bad":   "<n>-<n>-<n> <n>:<n>:<n>,<n> ERROR bad",
		"task 123e4567-e89b-12d3-a456-426614174000 is gone": "task <uuid> is gone",
		"/tmp/xyz.Ab3/run.sh: line 3: foo: not found":       "<path>: line <n>: foo: not found",
		"cannot read /srv/data/x":                           "cannot read /srv/data/x",
	} {
		expect.Equal(t, normalise(line), want, line, "becomes")
	}
}

// The fingerprint of any text is one short line of valid UTF-8 without digits.
func FuzzFingerprint(f *testing.F) {
	for _, text := range []string{"", "a\nb", "\x1b[", "\xff'", `"`, "panic: \n\ngoroutine ", strings.Repeat("é", 900), "/tmp/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := normalise(tellingLine(text))
		expect.True(t, utf8.ValidString(line), text, "becomes", line)
		expect.Compare(t, utf8.RuneCountInString(line), "<=", lineKept, line)
		expect.True(t, !strings.ContainsAny(line, "\n\r\x1b\x00"), text, "becomes", line)
		expect.True(t, !strings.ContainsAny(strings.ReplaceAll(line, "<n>", ""), "0123456789"), text, "becomes", line, "with digits in it")
	})
}

func TestHowRoundsFailed(t *testing.T) {
	task := func(outcome string, rounds ...tdf.Round) *tdf.Task {
		t := &tdf.Task{Outcome: outcome, Round: len(rounds) - 1, Rounds: tdf.Rounds{}}
		for i := range rounds {
			t.Rounds[i] = &rounds[i]
		}
		return t
	}
	executed := map[tdf.State]tdf.Time{tdf.Executed: 5}
	for name, c := range map[string]struct {
		task *tdf.Task
		want string
	}{
		"open":               {task("", tdf.Round{}), ""},
		"succeeded":          {task("succeeded", tdf.Round{Exit: "0", Worker: "w"}), ""},
		"failed":             {task("failed", tdf.Round{Exit: "3", FailedAt: 1}), "exit status 3"},
		"printed":            {task("failed", tdf.Round{Exit: "0", FailedAt: 1}), "exit status 0"},
		"killed":             {task("failed", tdf.Round{Exit: "signal: killed", FailedAt: 1}), "signal: killed"},
		"could not run":      {task("failed", tdf.Round{FailedAt: 1, Worker: "w", Claim: "c"}), HowNotRun},
		"original":           {task("failed", tdf.Round{FailedAt: 1, Worker: "w"}), HowNoExit},
		"refused":            {task("failed", tdf.Round{FailedAt: 1, Worker: "w", Claim: "c", Seconds: 3}), HowRefused},
		"rejected":           {task("failed", tdf.Round{Error: "no"}), HowNotRun},
		"timed out":          {task("timed_out", tdf.Round{TimedOutAt: 1, Exit: "signal: killed"}), HowTimedOut},
		"timed out, no time": {task("timed_out", tdf.Round{}), HowTimedOut},
		"lost":               {task("failed", tdf.Round{LostAt: 1, Worker: "w"}), HowLost},
		"forgiven":           {task("succeeded", tdf.Round{FailedAt: 1, Exit: "1"}, tdf.Round{Exit: "0"}), "exit status 1"},
		"never ran":          {task("expired", tdf.Round{}), HowNeverRan},
		"ran too long":       {task("expired", tdf.Round{Worker: "w"}), HowRanTooLong},
		"late":               {task("expired", tdf.Round{Worker: "w", Entered: executed}), HowLate},
		"cancelled":          {task("cancelled", tdf.Round{Worker: "w"}), ""},
	} {
		how := ""
		if f := LastFailure(c.task); f != nil {
			how = f.How
		}
		expect.Equal(t, how, c.want, name)
	}
}

func TestLiteral(t *testing.T) {
	for _, name := range []string{"p", "a*b", "a?", "[x]", `a\b`, "*"} {
		q := tdf.Query{Program: Literal(name), States: []tdf.State{tdf.Open}}
		for _, other := range []string{name, "p", "aXb", "x", "ab"} {
			task := &tdf.Task{Properties: tdf.Properties{Program: other}, State: tdf.Open}
			expect.Equal(t, head(&q, task), other == name, name, "matches", other)
		}
	}
}
