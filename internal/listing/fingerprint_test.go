package listing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
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
		"only remarks":  {"real cause\n" + strings.Repeat("note: x\n", 3_000), "note: x"},
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

// What runtimes and tools print below the error is the same for all causes.
func TestTellingLineOfRuntimes(t *testing.T) {
	const mpi = "--------------------------------------------------------------------------\n"
	for name, c := range map[string]struct{ text, want string }{
		"C++": {
			"terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad rate\n", "terminate called after throwing an instance of 'std::runtime_error' what():  bad rate",
		},
		"C++ below a shell": {
			"terminate called after throwing an instance of 'X'\n  what():  bad rate\nb.sh: line 2:  8103 Aborted                 ./cc\n",
			"terminate called after throwing an instance of 'X' what():  bad rate",
		},
		"assert":     {"d: d.c:2: main: Assertion `0' failed.\nd.sh: line 2:  8714 Aborted                 (core dumped) ./d\n", "d: d.c:2: main: Assertion `0' failed."},
		"only shell": {"d.sh: line 2:  8714 Segmentation fault      ./d\n", "d.sh: line 2:  8714 Segmentation fault      ./d"},
		"PHP": {
			"PHP Fatal error:  Uncaught Exception: bad rate in /x/a.php:1\nStack trace:\n#0 /x/a.php(1): f()\n#1 {main}\n  thrown in /x/a.php on line 1\n",
			"PHP Fatal error:  Uncaught Exception: bad rate in /x/a.php:1",
		},
		"Julia": {
			"ERROR: LoadError: bad rate\nStacktrace:\n [1] error(s::String)\n   @ Base ./error.jl:35\n [2] top-level scope\n   @ ~/x.jl:1\nin expression starting at /x/x.jl:1\n",
			"ERROR: LoadError: bad rate",
		},
		"Node.js": {
			"node:fs:573\n  return binding.open(\n                 ^\n\nError: ENOENT: no such file or directory, open '/no/such'\n" +
				"    at Object.openSync (node:fs:573:18)\n    at node:internal/main/run_main_module:28:49 {\n  errno: -2,\n  code: 'ENOENT'\n}\n\nNode.js v20.20.2\n",
			"Error: ENOENT: no such file or directory, open '/no/such'",
		},
		"Lua":     {"lua5.4: a.lua:1: bad rate\nstack traceback:\n\t[C]: in function 'error'\n\t[C]: in ?\n", "lua5.4: a.lua:1: bad rate"},
		"Ruby":    {"a.rb:1:in `f': bad rate (RuntimeError)\n\tfrom a.rb:1:in `<main>'\n", "a.rb:1:in `f': bad rate (RuntimeError)"},
		"R":       {"Error in f(1) : bad rate\nCalls: f\nExecution halted\n", "Error in f(1) : bad rate"},
		"R, long": {"Error in f(1) : \n  the rate must be a number\nExecution halted\n", "Error in f(1) : the rate must be a number"},
		"Octave":  {"error: bad rate\nerror: called from\n    f at line 1 column 3\n", "error: bad rate"},
		"CUDA": {
			"Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\nRuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n" +
				"For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n", "RuntimeError: CUDA error: out of memory",
		},
		"Snakemake": {
			"Select jobs to execute...\n\n[Mon Nov 23 10:00:00 2026]\nrule a:\n    output: x\n\nbad rate\n[Mon Nov 23 10:00:01 2026]\nError in rule a:\n    jobid: 0\n    output: x\n    shell:\n        ./a\n\n" +
				"Removing output files of failed job a since they might be corrupted:\nx\nShutting down, this might take some time.\nExiting because a job execution failed. Look above for error message\nComplete log: .snakemake/log/2026.snakemake.log\n", "bad rate",
		},
		"Fortran": {
			"At line 3 of file a.f90 (unit = 10)\nFortran runtime error: Cannot open file\n\nError termination. Backtrace:\n#0  0x7f2f402218c2 in ???\n#7  0x7f2f40045249 in main\n\tat ../x.h:58\n",
			"Fortran runtime error: Cannot open file",
		},
		"Haskell": {"hs: bad rate\nCallStack (from HasCallStack):\n  error, called at a.hs:1:8 in main:Main\n", "hs: bad rate"},
		"OCaml":   {"Exception: Failure \"bad rate\".\n", `Exception: Failure "bad rate".`},
		"Perl":    {"bad rate at a.pl line 1.\n", "bad rate at a.pl line 1."},
		"Java": {
			"Exception in thread \"main\" java.lang.RuntimeException: bad\n\tat A.main(A.java:1)\nCaused by: java.lang.IllegalStateException: bad rate\n\tat A.f(A.java:1)\n",
			"Caused by: java.lang.IllegalStateException: bad rate",
		},
		"make": {"bad rate\nmake[1]: *** [Makefile:2: all] Error 3\nmake: *** [Makefile:5: all] Error 2\nmake: Target 'all' not remade because of errors.\n", "bad rate"},
		"Python, a long message": {
			"Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    f()\nValueError: bad rate\nof the input\n", "ValueError: bad rate of the input",
		},
		"pydantic": {
			"Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\npydantic_core.ValidationError: 1 validation error for M\nrate\n" +
				"  Input should be a valid integer [type=int_parsing]\n    For further information visit https://errors.pydantic.dev/2.10/v/int_parsing\n",
			"pydantic_core.ValidationError: 1 validation error for M rate Input should be a valid integer [type=int_parsing]",
		},
		"a traceback that was logged": {
			"Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\nValueError: bad\n1: trying again\n2: trying again\n3: the disk is full\n", "3: the disk is full",
		},
		"MPI": {
			"rank 0: bad rate\n" + mpi + "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n\nexactly when Open MPI kills them.\n" + mpi, "rank 0: bad rate",
		},
		"only MPI":       {mpi + "MPI_ABORT was invoked on rank 0\nwith errorcode 1.\n" + mpi, "MPI_ABORT was invoked on rank 0"},
		"its own banner": {"begin\n==========\nERROR: bad rate\n==========\n", "ERROR: bad rate"},
		"Slurm":          {"bad rate\nsrun: error: n1: task 0: Exited with exit code 1\n", "bad rate"},
		"punctuation":    {"---\n", ""},
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
		"no `foo' here":                       `no "…" here`,
		"no ‘foo’, “foo”, „foo“ or «foo»": `no "…", "…", "…" or "…"`,
		"don’t, can’t":                                                     "don’t, can’t",
		"2026-11-21 19:38:23,123 ERROR bad":                                "<n>-<n>-<n> <n>:<n>:<n>,<n> ERROR bad",
		"task 123e4567-e89b-12d3-a456-426614174000 is gone":                "task <uuid> is gone",
		"/tmp/xyz.Ab3/run.sh: line 3: foo: not found":                      "<path>: line <n>: foo: not found",
		"cannot read /srv/data/x":                                          "cannot read /srv/data/x",
		"run.sh ended with exit status 3 and printed nothing to stderr":    "run.sh ended with exit status <n> and printed nothing to stderr",
		"the round ended with exit status 3 and printed nothing to stderr": "run.sh ended with exit status <n> and printed nothing to stderr",
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
	one := func(outcome string, rounds ...task.Round) *task.Task {
		t := &task.Task{Outcome: outcome, Round: len(rounds) - 1, Rounds: task.Rounds{}}
		for i := range rounds {
			t.Rounds[i] = &rounds[i]
		}
		return t
	}
	executed := map[task.State]task.Time{task.Executed: 5}
	for name, c := range map[string]struct {
		task *task.Task
		want string
	}{
		"open":               {one("", task.Round{}), ""},
		"succeeded":          {one("succeeded", task.Round{Exit: "0", Worker: "w"}), ""},
		"failed":             {one("failed", task.Round{Exit: "3", FailedAt: 1}), "exit status 3"},
		"printed":            {one("failed", task.Round{Exit: "0", FailedAt: 1}), "exit status 0"},
		"killed":             {one("failed", task.Round{Exit: "signal: killed", FailedAt: 1}), "signal: killed"},
		"could not run":      {one("failed", task.Round{FailedAt: 1, Worker: "w", Claim: "c"}), HowNotRun},
		"original":           {one("failed", task.Round{FailedAt: 1, Worker: "w"}), HowNoExit},
		"refused":            {one("failed", task.Round{FailedAt: 1, Worker: "w", Claim: "c", Seconds: 3}), HowRefused},
		"rejected":           {one("failed", task.Round{Error: "no"}), HowNotRun},
		"timed out":          {one("timed_out", task.Round{TimedOutAt: 1, Exit: "signal: killed"}), HowTimedOut},
		"timed out, no time": {one("timed_out", task.Round{}), HowTimedOut},
		"lost":               {one("failed", task.Round{LostAt: 1, Worker: "w"}), HowLost},
		"forgiven":           {one("succeeded", task.Round{FailedAt: 1, Exit: "1"}, task.Round{Exit: "0"}), "exit status 1"},
		"never ran":          {one("expired", task.Round{}), HowNeverRan},
		"ran too long":       {one("expired", task.Round{Worker: "w"}), HowRanTooLong},
		"late":               {one("expired", task.Round{Worker: "w", Entered: executed}), HowLate},
		"cancelled":          {one("cancelled", task.Round{Worker: "w"}), ""},
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
		q := task.Query{Program: Literal(name), States: []task.State{task.Open}}
		for _, other := range []string{name, "p", "aXb", "x", "ab"} {
			one := &task.Task{Properties: task.Properties{Program: other}, State: task.Open}
			expect.Equal(t, head(&q, one), other == name, name, "matches", other)
		}
	}
}
