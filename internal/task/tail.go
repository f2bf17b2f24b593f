package task

import "fmt"

// A Tail is the end of what the program of a round has printed so far.
type Tail struct {
	Text string
	TailEnd
}

// A TailEnd says where the tail of a round ends (docs/redis.md, "A task"), so that readers of several tails know which
// bytes they have already had.
type TailEnd struct {
	// in the text of which all tails are parts: stdout and stderr together, in the order in which the worker saw them
	All            int64
	Stdout, Stderr int64 // in each of the two as Redis gets them when the round ends; -1 if unknown
}

// String returns the three numbers, as Redis has them.
func (e TailEnd) String() string { return fmt.Sprintf("%d %d %d", e.All, e.Stdout, e.Stderr) }

// ParseTailEnd reads what String returns. From any other text, it returns that only the length of the tail is known.
func ParseTailEnd(text, tail string) TailEnd {
	var e TailEnd
	if tail == "" {
		return e
	}
	if n, err := fmt.Sscanf(text, "%d %d %d", &e.All, &e.Stdout, &e.Stderr); n != 3 || err != nil ||
		e.All < int64(len(tail)) {
		return TailEnd{int64(len(tail)), -1, -1}
	}
	return e
}
