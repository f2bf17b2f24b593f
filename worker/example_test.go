package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/workertest"
)

// square is a handler: it runs rounds of one program.
func square(_ context.Context, r *worker.Round) error {
	var n int
	if err := r.Bind(&n); err != nil {
		return err // the error is permanent, because the input stays invalid
	}
	return r.SetResult(n * n)
}

// This is the worker of docs/programs.md, "Rounds without a process". It needs Redis and a server.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	w, err := worker.Load("squares-1", "worker.cfg", worker.Handle("square", square))
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

func ExampleHandler() {
	result := workertest.Run(context.Background(), square, workertest.Task{Input: "12"})
	fmt.Println(result.JSON)
	result = workertest.Run(context.Background(), square, workertest.Task{Input: "twelve"})
	fmt.Println(result.Permanent, result.Err)
	// Output:
	// 144
	// true parse the input of task 1 as JSON: invalid character 'w' in literal true (expecting 'r')
}

// count counts to 3, one step in each round.
func count(_ context.Context, r *worker.Round) error {
	if err := r.SetCheckpoint(append(r.Checkpoint, '|')); err != nil {
		return err
	}
	r.Progress(float64(len(r.Checkpoint)+1)/3, "counting")
	if len(r.Checkpoint) < 2 {
		return worker.Later(time.Minute, errors.New("not yet 3"))
	}
	return nil
}

func ExampleLater() {
	task := workertest.Task{}
	for {
		result := workertest.Run(context.Background(), count, task)
		fmt.Printf("%q, %.2f, later: %v\n", result.Checkpoint, result.Progress, result.Later)
		if !result.Released {
			return
		}
		task.Round, task.Checkpoint = task.Round+1, result.Checkpoint
	}
	// Output:
	// "|", 0.33, later: 1m0s
	// "||", 0.67, later: 1m0s
	// "|||", 1.00, later: 0s
}

func ExamplePermanent() {
	lookUp := func(_ context.Context, r *worker.Round) error {
		return worker.Permanent(fmt.Errorf("no sample %q", r.Input))
	}
	result := workertest.Run(context.Background(), lookUp, workertest.Task{Input: "A7"})
	fmt.Println(result.Exit, result.Error, result.Permanent)
	// Output:
	// 1 no sample "A7" true
}
