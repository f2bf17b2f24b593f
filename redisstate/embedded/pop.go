package embedded

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// A place is a list that clients wait for.
type place struct {
	database int
	key      string
}

// waiters are the clients that wait for lists, in the order of their arrival. Redis.mu protects them.
type waiters map[place][]*waiter

// A waiter is a client that waits for lists. It gets a signal if one of the lists may have an element.
type waiter struct{ signal chan struct{} }

// wake signals the first waiter of each list that exists. The front calls wake after each command that may write, and
// after a waiter has left its queues. So if a waiter takes one of several elements, the next waiter gets a signal, too.
func (r *Redis) wake() {
	for at, waiting := range r.waiting {
		if r.mini.DB(at.database).Exists(at.key) {
			select {
			case waiting[0].signal <- struct{}{}:
			default: // the waiter already has a signal
			}
		}
	}
}

// pop answers BLPOP and BRPOP outside of a transaction. Miniredis has these commands itself, but would continue to wait
// after the client has closed its connection.
func (c *client) pop(name string, request []string) bool {
	if len(request) < 3 {
		return c.execute(name, request) // miniredis replies with the error
	}
	keys := request[1 : len(request)-1]
	timeout, problem := blockTime(request[len(request)-1])
	if problem != "" {
		c.fail(problem)
		return true
	}
	w := &waiter{signal: make(chan struct{}, 1)}
	answered, ok := c.popOrWait(name, keys, w)
	if answered {
		return ok
	}
	defer c.stopWaiting(keys, w)
	var over <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		over = timer.C
	}
	for {
		signal, gone := c.await(w, over)
		switch {
		case gone:
			return false
		case !signal:
			c.out.WriteString("*-1\r\n")
			return true
		}
		if answered, ok := c.popOrWait(name, keys, w); answered {
			return ok
		}
	}
}

// blockTime parses a timeout in seconds. A timeout of 0 means that the client waits without a limit.
func blockTime(text string) (d time.Duration, problem string) {
	seconds, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(seconds) || seconds > 1e9:
		return 0, "ERR timeout is not a float or out of range"
	case seconds < 0:
		return 0, "ERR timeout is negative"
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second))), ""
}

// popOrWait takes an element from the first list that has an element, and replies with it. If all lists are empty, the
// waiter joins the queue of each list.
func (c *client) popOrWait(name string, keys []string, w *waiter) (answered, ok bool) {
	c.redis.mu.Lock()
	defer c.redis.mu.Unlock()
	db := c.redis.mini.DB(c.database)
	for _, key := range keys {
		if db.Exists(key) {
			return true, c.popFrom(name, key)
		}
	}
	for _, key := range keys {
		at := place{c.database, key}
		if !slices.Contains(c.redis.waiting[at], w) {
			c.redis.waiting[at] = append(c.redis.waiting[at], w)
		}
	}
	return false, true
}

// popFrom makes miniredis take an element from one list. If the key is not a list, the client gets an error.
func (c *client) popFrom(name, key string) bool {
	start := c.out.Len()
	fmt.Fprintf(&c.out, "*2\r\n$%d\r\n%s\r\n", len(key), key)
	reply := c.out.Len()
	if !c.dispatch([]string{name[1:], key}) { // LPOP for BLPOP, RPOP for BRPOP
		return false
	}
	if c.out.Bytes()[reply] == '-' {
		text := slices.Clone(c.out.Bytes()[reply:])
		c.out.Truncate(start)
		c.out.Write(text)
	}
	return true
}

// stopWaiting removes the waiter from all queues. Then it signals the next waiter of each list that has elements: the
// removed waiter may have got a signal without taking an element.
func (c *client) stopWaiting(keys []string, w *waiter) {
	c.redis.mu.Lock()
	defer c.redis.mu.Unlock()
	for _, key := range keys {
		at := place{c.database, key}
		left := slices.DeleteFunc(c.redis.waiting[at], func(other *waiter) bool { return other == w })
		c.redis.waiting[at] = left
		if len(left) == 0 {
			delete(c.redis.waiting, at)
		}
	}
	c.redis.wake()
}

// await waits until the waiter has a signal, the timeout ends, or the client closes its connection. Requests that
// arrive meanwhile stay in the buffer. If they do not fit into the buffer, await treats the connection as closed.
func (c *client) await(w *waiter, over <-chan time.Time) (signal, gone bool) {
	if c.flush() != nil {
		return false, true
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := c.rd.Peek(c.rd.Buffered() + 1); err != nil {
				return
			}
		}
	}()
	select {
	case <-w.signal:
		signal = true
	case <-over:
	case <-ended:
		return false, true
	}
	_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // makes Peek in the goroutine return
	<-ended
	_ = c.conn.SetReadDeadline(time.Time{})
	return signal, false
}
