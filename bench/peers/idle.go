package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

// idleBar measures how many commands an idle system sends to Redis.
func idleBar() *bar {
	return &bar{
		name: "idle", unit: "commands/s per worker",
		sides: []side{{tdfSide, redisserver.Shipped, countIdleCommands}},
		wants: []want{atMost(1.5, "commands/s per worker", value(tdfSide))},
	}
}

// countIdleCommands counts the commands of idle workers with one slot each, and of a server.
func countIdleCommands(t *trial) (figure, error) {
	if err := t.startServer(); err != nil {
		return figure{}, err
	}
	if _, err := t.idleWorker(tdfSystem{}, job{Slots: 1, Workers: t.workers}); err != nil {
		return figure{}, err
	}
	if err := t.sleep(t.warmup); err != nil {
		return figure{}, err
	}
	commands, err := countCommands(t.ctx, t.redis.Addr(), t.idle)
	return figure{Value: float64(commands) / t.idle.Seconds() / float64(t.workers)}, err
}

// countCommands returns the number of commands that clients send to Redis within the given time. It does not count the
// commands that scripts call.
func countCommands(ctx context.Context, addr string, within time.Duration) (int, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprint(conn, "MONITOR\r\n"); err != nil {
		return 0, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, err
	}
	commands := -1 // the first line is the reply to MONITOR
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		// A line of a script's command looks like this: +1339518083.107412 [0 lua] "get" "key"
		if _, rest, _ := strings.Cut(lines.Text(), " ["); !strings.HasPrefix(rest, "0 lua]") {
			commands++
		}
	}
	if err, ok := lines.Err().(net.Error); ok && err.Timeout() {
		return commands, nil
	}
	return 0, fmt.Errorf("MONITOR ended: %w", errors.Join(context.Cause(ctx), lines.Err()))
}
