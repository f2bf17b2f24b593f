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

Computes the sum of M..N in buckets of P. Without -config, all of TDF runs in this process.

`

var errHelp = flag.ErrHelp

// A command is what the command line says.
type command struct {
	config  string
	program string
	run     string
	plan    *plan
}

// parse takes the last three arguments as numbers, so that they may be negative.
func parse(args []string, stderr io.Writer) (*command, error) {
	var c command
	flags := flag.NewFlagSet("sum", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.config, "config", "", "the manager's `FILE.cfg`: uses its Redis, and the server and workers there")
	flags.StringVar(&c.program, "program", "", "`RUN.SH` for the workers, which have to reach it by this path (default: the one beside the source code)")
	flags.StringVar(&c.run, "run", "", "the `NAME` of the run; that of one that was interrupted goes on with it (default: a new one)")
	split := max(0, len(args)-3)
	err := flags.Parse(args[:split])
	if errors.Is(err, flag.ErrHelp) || len(args) > 0 && strings.Trim(args[len(args)-1], "-") == "h" {
		printUsage(flags, stderr)
		return nil, errHelp
	}
	var numbers []int64
	if err == nil {
		numbers, err = parseNumbers(flags.Args(), args[split:])
	}
	if err == nil {
		c.plan, err = newPlan(numbers[0], numbers[1], numbers[2])
	}
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

func parseNumbers(rest, words []string) ([]int64, error) {
	if len(rest) > 0 {
		return nil, fmt.Errorf("%q is no option, and M N P come last", rest[0])
	}
	if len(words) != 3 {
		return nil, errors.New("three numbers are needed: M N P")
	}
	numbers := make([]int64, len(words))
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number of 64 bits", word)
		}
		numbers[i] = n
	}
	return numbers, nil
}

// check refuses what cannot be part of a group's name.
func (c *command) check() error {
	if len(c.run) > 80 || strings.ContainsFunc(c.run, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("-run %q: a name has up to 80 letters, digits and signs, and no space", c.run)
	}
	return nil
}

// group is what the tasks of this run have in common. With the numbers in it, a name that is
// used for another sum does no harm.
func (c *command) group() string {
	return fmt.Sprintf("sum-%d-%d-%d-%s", c.plan.from, c.plan.to, c.plan.bucket, c.run)
}
