// Command tdf-worker claims tasks, runs them and reports what they printed:
//
//	tdf-worker NAME FILE.cfg
//
// docs/operations.md tells how to run it, docs/configuration.md what the file holds.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/worker"
)

const (
	name = "tdf-worker"
	what = "Claims tasks, fetches their programs, runs them and stores what they print. The name is unique\n" +
		"among the workers of a namespace, and has no slash and no dot at its beginning."
)

func main() {
	command.Hide()
	told, toldAgain := command.Signals()
	os.Exit(run(told, toldAgain, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole command; it stops when told ends, and at once when toldAgain does, too.
func run(told, toldAgain context.Context, args []string, stdout, stderr io.Writer) int {
	err := work(told, toldAgain, args, stdout, stderr)
	return command.Status(told, name, err, stderr)
}

func work(told, toldAgain context.Context, args []string, stdout, stderr io.Writer) error {
	arguments, err := command.Parse(name, what, args, stdout)
	if err != nil {
		return err
	}
	if err := worker.CheckName(arguments.Name); err != nil {
		return &command.UsageError{Problem: err.Error()}
	}
	cfg, err := config.LoadWorker(arguments.File)
	if err != nil {
		return err
	}
	syscall.Umask(0o022) // what programs make is readable, whoever started the worker
	log := cfg.Log.Logger(stderr).With("worker", arguments.Name)
	w, err := worker.New(arguments.Name, cfg, worker.WithLog(log), worker.WithVersion(command.Version()), worker.WithSole())
	if err == nil {
		defer context.AfterFunc(toldAgain, w.StopNow)()
		err = w.Run(told)
	}
	if wrong := new(config.Error); errors.As(err, &wrong) {
		wrong.Locate(arguments.File)
	}
	return err
}
