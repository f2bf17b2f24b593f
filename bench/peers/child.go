package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// A child is a process of a measurement. The parent writes verbs to its stdin, one on each line, and the child answers
// each with one line of JSON. Its first line says that it is ready. It ends when its stdin ends.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
}

type answer struct {
	Error string          `json:"error,omitempty"`
	Reply json.RawMessage `json:"reply,omitempty"`
}

func start(cmd *exec.Cmd) *child {
	cmd.Stderr = os.Stderr
	c := &child{cmd, must(cmd.StdinPipe()), json.NewDecoder(must(cmd.StdoutPipe()))}
	check(cmd.Start())
	check(c.read(nil))
	return c
}

// call sends a verb, and decodes the child's answer into reply if it is not nil.
func (c *child) call(verb string, reply any) error {
	if _, err := fmt.Fprintln(c.in, verb); err != nil {
		return err
	}
	return c.read(reply)
}

func (c *child) read(reply any) error {
	var a answer
	err := c.answers.Decode(&a)
	switch {
	case err != nil:
		return fmt.Errorf("%s has ended: %w", c.cmd.Path, err)
	case a.Error != "":
		return errors.New(a.Error)
	case reply == nil:
		return nil
	}
	return json.Unmarshal(a.Reply, reply)
}

func (c *child) stop() error {
	c.in.Close()
	return c.cmd.Wait()
}

// cpu returns the CPU time of a command that has ended, with its ended children.
func cpu(cmd *exec.Cmd) time.Duration {
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// A verb is a function of a child. Its result is encoded as JSON.
type verb func(ctx context.Context) any

// serve answers the verbs of the parent until its input ends.
func serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]verb) error {
	lines, encoder := bufio.NewScanner(in), json.NewEncoder(out)
	err := encoder.Encode(answer{})
	for err == nil && lines.Scan() {
		err = encoder.Encode(carryOut(ctx, verbs[lines.Text()]))
	}
	return errors.Join(err, lines.Err())
}

func carryOut(ctx context.Context, v verb) (a answer) {
	var err error
	func() {
		defer caught(&err)
		a.Reply = must(json.Marshal(v(ctx)))
	}()
	if err != nil {
		a.Error = err.Error()
	}
	return a
}
