package conn

import (
	"bytes"
	"fmt"
	"math"
	"sync"
)

// answers checks the answers of Redis on a connection before the library go-redis reads them. This library trusts
// Redis: it allocates memory for the length that the header of an answer names, and accepts a number instead of a text.
// A connection with a wrong answer is given up.
type answers struct {
	mu     sync.Mutex
	calls  []sentCall // without an answer yet
	sent   frames
	got    frames
	failed error
}

// A sentCall is a call that Redis has not answered yet.
type sentCall struct {
	name  string // in lower case; "" for a name that is not in answerKinds
	words int
}

// answerKinds are the types of the answers to those commands for which go-redis also accepts other types.
var answerKinds = map[string]byte{
	"auth": '+', "ping": '+', "select": '+', "type": '+', "get": '$', "hget": '$', "info": '$', "hmget": '*',
	"blpop": '*',
}

// answerLimits are the maximum lengths of answers. The longest string that Redis stores by default has 512 MiB.
var (
	answerLimits = frameLimits{line: 64 << 10, text: 512 << 20, list: 1 << 20, depth: 8}
	callLimits   = frameLimits{line: 64 << 10, text: math.MaxInt - 2, list: math.MaxInt, depth: 1}
)

func newAnswers() *answers {
	a := &answers{}
	a.sent = frames{limits: callLimits, begin: a.noteCall, word: a.noteName}
	a.got = frames{limits: answerLimits, begin: a.check}
	return a
}

// pass reads the next bytes that were sent or received. After an error, all later calls return this error.
func (a *answers) pass(f *frames, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil {
		a.failed = f.pass(data)
	}
	return a.failed
}

func (a *answers) noteCall(_ byte, words int) error {
	a.calls = append(a.calls, sentCall{words: words})
	return nil
}

func (a *answers) noteName(word []byte) {
	if word = bytes.ToLower(word); answerKinds[string(word)] != 0 {
		a.calls[len(a.calls)-1].name = string(word)
	}
}

// check checks the header of the answer to the first call without an answer.
func (a *answers) check(kind byte, length int) error {
	if len(a.calls) == 0 {
		return &answerError{reason: "an answer without a call"}
	}
	call := a.calls[0]
	a.calls = a.calls[1:]
	if kind == '-' {
		return nil
	}
	want := answerKinds[call.name]
	switch {
	case want != 0 && kind != want,
		kind == '*' && length < 0 && call.name != "blpop", // only BLPOP may find nothing
		call.name == "blpop" && length != -1 && length != 2,
		call.name == "hmget" && length != call.words-2:
		return &answerError{reason: fmt.Sprintf("unexpected answer to %s: the type %q and the length %d", call.name,
			kind, length)}
	}
	return nil
}
