package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/bench/internal/child"
)

// A system is a task queue that is measured.
type system interface {
	// opener starts a child process. When the process gets the verb "open", it opens the job's tasks.
	opener(t *trial, j job) (*child.Process, error)
	// worker starts a child process, and returns when the process is ready. When the process gets the verb "work", it
	// begins to process tasks.
	worker(t *trial, j job) (*child.Process, error)
	// waiting returns the number of tasks that no worker has claimed.
	waiting(t *trial) (int64, error)
	// processed returns the number of tasks for which the system has nothing left to do.
	processed(t *trial) (int64, error)
	// checkOpened and checkProcessed read a sample of the first n tasks, and return an error if a task is incomplete or
	// wrong.
	checkOpened(t *trial, n int) error
	checkProcessed(t *trial, n int) error
}

// The names of the sides that a bar compares.
const (
	tdfSide    = "TDF"
	asynqSide  = "asynq"
	bullmqSide = "BullMQ"
)

// payloadSize is the size in bytes of a task's input.
const payloadSize = 100

// payload returns the input of a task, which begins with the given number.
func payload(n int64) string {
	return (strconv.FormatInt(n, 10) + " " + strings.Repeat("x", payloadSize))[:payloadSize]
}

// numberOf returns the number at the beginning of a payload.
func numberOf(payload string) (int64, error) {
	number, rest, _ := strings.Cut(payload, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || len(payload) != payloadSize || strings.Trim(rest, "x") != "" {
		return 0, fmt.Errorf("a task has the payload %q", payload)
	}
	return n, nil
}

// sampled returns up to 20 numbers from 0 to n-1, with the first and the last.
func sampled(n int) []int {
	const most = 20
	var sample []int
	for i := range min(n, most) {
		sample = append(sample, i*(n-1)/max(min(n, most)-1, 1))
	}
	return sample
}

// expect returns an error if got and want differ.
func expect[T comparable](what string, got, want T) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("read back: %s: got %v, want %v", what, got, want)
}
