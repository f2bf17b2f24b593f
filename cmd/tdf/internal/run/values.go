package run

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
)

// A jobCount is the value of --jobs and --load: a number, or one that depends on the cores of this machine.
type jobCount struct {
	n, cores int
	given    bool
}

func (j *jobCount) String() string { return strconv.Itoa(j.n) }
func (*jobCount) Type() string     { return "jobs" }

var jobForm = regexp.MustCompile(`^([+-]?)([0-9]{1,7})(%?)$`)

func (j *jobCount) Set(text string) error {
	parts := jobForm.FindStringSubmatch(text)
	if parts == nil || parts[1] != "" && parts[3] != "" {
		return cli.Want("a number from 1, such as 4, or one by the cores of this machine: 50%, +1 or -1")
	}
	n, _ := strconv.Atoi(parts[2])
	switch {
	case parts[1] == "" && n == 0:
		return cli.Want("a number from 1, such as 4 or $(nproc)")
	case parts[1] == "+":
		n = j.cores + n
	case parts[1] == "-":
		n = max(1, j.cores-n)
	case parts[3] != "":
		n = max(1, j.cores*n/100)
	}
	j.n, j.given = n, true
	return nil
}

// A size is the value of a flag that is a number of bytes.
type size int64

func (s *size) String() string { return strconv.FormatInt(int64(*s), 10) }
func (*size) Type() string     { return "size" }

var sizeForm = regexp.MustCompile(`^([0-9]{1,12})([kKmMgGtT]?)$`)

// units are the factors of GNU parallel.
var units = map[string]int64{
	"": 1, "k": 1e3, "K": 1 << 10, "m": 1e6, "M": 1 << 20, "g": 1e9, "G": 1 << 30, "t": 1e12, "T": 1 << 40,
}

func (s *size) Set(text string) error {
	parts := sizeForm.FindStringSubmatch(text)
	if parts == nil {
		return cli.Want("a number of bytes, such as 100K, 1M or 2G")
	}
	n, _ := strconv.ParseInt(parts[1], 10, 64)
	if n == 0 || n > math.MaxInt64/units[parts[2]] {
		return cli.Want("a number of bytes from 1")
	}
	*s = size(n * units[parts[2]])
	return nil
}

// A halt is the value of --halt.
type halt struct {
	text    string
	now     bool
	why     string // fail, success or done; "" if the call never ends early
	n       int64
	percent bool
}

func (h *halt) String() string { return h.text }
func (*halt) Type() string     { return "halt" }

var (
	haltForm = regexp.MustCompile(`^(now|soon),(fail|success|done)=([1-9][0-9]{0,8})(%?)$`)
	oldHalts = map[string]string{
		"1": "soon,fail=1", "2": "now,fail=1", "-1": "soon,success=1", "-2": "now,success=1",
	}
)

func (h *halt) Set(text string) error {
	*h = halt{text: text}
	if text == "never" || text == "0" {
		return nil
	}
	if short, found := oldHalts[text]; found {
		text = short
	}
	parts := haltForm.FindStringSubmatch(text)
	if parts == nil {
		return cli.Want("never, or WHEN,WHY=N, such as soon,fail=1, now,fail=10% or now,success=1")
	}
	h.now, h.why, h.percent = parts[1] == "now", parts[2], parts[4] != ""
	h.n, _ = strconv.ParseInt(parts[3], 10, 64)
	if h.percent && h.n > 100 {
		return cli.Want("at most 100%")
	}
	return nil
}

// isReached reports whether the commands that have ended are enough. total is the number of all commands, or -1.
func (h *halt) isReached(failed, succeeded, done, total int64) bool {
	n, most := map[string]int64{"fail": failed, "success": succeeded, "done": done}[h.why], h.n
	if h.percent {
		n, most = 100*n, h.n*total
	}
	return h.why != "" && total != 0 && n >= most && (!h.percent || total > 0)
}

// isOne reports whether the status of one failed command is that of the call.
func (h *halt) isOne() bool { return h.why == "fail" && h.n == 1 && !h.percent }

// reason says why the call has ended early.
func (h *halt) reason() string {
	why := map[string]string{"fail": "failed", "success": "succeeded", "done": "ended"}[h.why]
	return fmt.Sprintf("enough commands have %s, so the rest was not run (--halt %s)", why, h.text)
}
