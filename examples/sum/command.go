package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const usage = `usage: sum [-config FILE.cfg [-program RUN.SH] [-run NAME]] M N P

Compute the sum of M..N in buckets of P. Without -config, sum runs Redis, a server and workers in its own process.

`

var errHelp = flag.ErrHelp

// A command is the parsed command line.
type command struct {
	config  string
	program string
	run     string
	plan    *plan
}

// parse parses the arguments. The last three arguments are always numbers. So a negative number is not a flag.
func parse(args []string, stderr io.Writer) (*command, error) {
	var c command
	flags := flag.NewFlagSet("sum", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.config, "config", "",
		"the manager's `FILE.cfg`; a server and workers must use the same Redis and namespace")
	flags.StringVar(&c.program, "program", "",
		"path of `RUN.SH` on the workers' machines (default: the file beside the source code)")
	flags.StringVar(&c.run, "run", "",
		"`NAME` of the run; use the name of an interrupted run to continue that run (default: a new name)")
	split := max(0, len(args)-3)
	err := flags.Parse(args[:split])
	if errors.Is(err, flag.ErrHelp) || len(args) > 0 && strings.Trim(args[len(args)-1], "-") == "h" {
		printUsage(flags, stderr)
		return nil, errHelp
	}
	if err != nil {
		printUsage(flags, stderr)
		return nil, err
	}
	c.plan, err = parsePlan(flags.Args(), args[split:])
	if err != nil {
		printUsage(flags, stderr)
		return nil, err
	}
	if c.run == "" {
		c.run = rand.Text()
	}
	return &c, c.check()
}

func printUsage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprint(w, usage)
	flags.SetOutput(w)
	flags.PrintDefaults()
	fmt.Fprintln(w)
}

func parsePlan(rest, words []string) (*plan, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("unknown option %q; M N P come last", rest[0])
	}
	if len(words) != 3 {
		return nil, errors.New("want three numbers: M N P")
	}
	numbers := make([]int64, len(words))
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("invalid number %q: want a whole number of 64 bits", word)
		}
		numbers[i] = n
	}
	return newPlan(numbers[0], numbers[1], numbers[2])
}

// check returns an error if the run's name cannot be part of a group's name.
func (c *command) check() error {
	if len(c.run) > 80 || strings.ContainsFunc(c.run, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("invalid name %q for -run: want up to 80 printable ASCII characters without spaces", c.run)
	}
	return nil
}

// group returns the name of the group of the run's tasks. It contains the numbers, so that runs of the same name for
// different sums have different groups.
func (c *command) group() string {
	return fmt.Sprintf("sum-%d-%d-%d-%s", c.plan.from, c.plan.to, c.plan.bucket, c.run)
}
