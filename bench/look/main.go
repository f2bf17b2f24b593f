// Command look measures the response times of tdf's commands with very many tasks. It also measures the maximum time
// for which each command blocks Redis (docs/performance.md).
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/bench/redisserver"
)

const namespace = "many"

// looks lists the commands to measure. %s stands for the id of a failed task.
var looks = []string{
	"ls",
	"ls --campaign big",
	"ls --state failed",
	"ls --campaign big --state failed --oldest-first",
	"ls --of simulate-3",
	"ls --worker node-7 --exit 3",
	"ls --campaign big --outcome timed_out",
	"ls --error-has nowhere-to-be-found",
	"show %s",
	"explain %s",
	"output %s --error",
	"watch",
	"watch big",
	"failures",
	"failures --campaign big",
	"stats",
	"stats --prometheus",
	"workers",
	"doctor",
}

func main() {
	tasks := flag.Int("tasks", 1_000_000, "number of tasks")
	repeats := flag.Int("repeats", 5, "number of runs of each command; the result is the median")
	queues := flag.Int("queues", 0, "number of queues of the open tasks; above 0, measure only scrapes of /metrics")
	pages := flag.Bool("pages", false, "measure the pages of the dashboard instead of commands")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *tasks, *queues, *repeats, *pages, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-look:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, tasks, queues, repeats int, pages bool, out io.Writer) error {
	campaigns := 0
	if pages {
		if err := checkVisited(); err != nil {
			return err
		}
		campaigns = manyCampaigns
	}
	server, err := redisserver.Start(redisserver.Shipped...)
	if err != nil {
		return err
	}
	defer server.Stop()
	dir, err := os.MkdirTemp("", "tdf-bench-look")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tdf := filepath.Join(dir, "tdf")
	build := exec.CommandContext(ctx, "go", "build", "-o", tdf, "./cmd/tdf")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build tdf: %w", err)
	}
	began := time.Now()
	if err := fill(ctx, server, tasks, queues, campaigns); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d tasks, stored in %.0f s\n\n", tasks, time.Since(began).Seconds())
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Protocol: 2})
	defer client.Close()
	l := &look{tdf: tdf, server: server, client: client, id: strconv.Itoa(idOfFailure(tasks))}
	if queues > 0 {
		if err := fillCounts(ctx, client); err != nil {
			return err
		}
		if err := client.ConfigSet(ctx, "slowlog-log-slower-than", "100").Err(); err != nil {
			return err
		}
		return l.scrape(ctx, repeats, out)
	}
	if pages {
		if err := client.ConfigSet(ctx, "slowlog-log-slower-than", "100").Err(); err != nil {
			return err
		}
		return l.visit(ctx, repeats, out)
	}
	return l.all(ctx, repeats, out)
}

// A look runs commands. From Redis's slow log, it reads for how long each command blocked Redis.
type look struct {
	tdf    string
	server *redisserver.Server
	client *redis.Client
	id     string
}

func (l *look) all(ctx context.Context, repeats int, out io.Writer) error {
	if err := l.client.ConfigSet(ctx, "slowlog-log-slower-than", "100").Err(); err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "command\tresponse time, ms\tslowest command in Redis, ms")
	yardstick := func() *exec.Cmd {
		return exec.CommandContext(ctx, "redis-cli", "-p", strconv.Itoa(l.server.Port), "zrange", namespace+":failed",
			"0", "49")
	}
	if err := l.measure(ctx, w, "redis-cli zrange, 50 ids", repeats, yardstick); err != nil {
		return err
	}
	for _, text := range looks {
		args := strings.Fields(strings.ReplaceAll(text, "%s", l.id))
		start := func() *exec.Cmd {
			cmd := exec.CommandContext(ctx, l.tdf, args...)
			cmd.Env = append(os.Environ(), "TDF_CFG_REDIS_PORT="+strconv.Itoa(l.server.Port), "TDF_CFG_TDF_NAMESPACE="+
				namespace)
			return cmd
		}
		if err := l.measure(ctx, w, "tdf "+strings.Join(args, " "), repeats, start); err != nil {
			return err
		}
	}
	return nil
}

// measure runs a command several times, and measures the time until it ends. For tdf watch, it measures the time until
// the first line.
func (l *look) measure(ctx context.Context, out io.Writer, name string, repeats int, start func() *exec.Cmd) error {
	var took []time.Duration
	if err := l.client.Do(ctx, "slowlog", "reset").Err(); err != nil {
		return err
	}
	for range repeats {
		d, err := answer(start())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took = append(took, d)
	}
	slowest, command := l.slowest(ctx)
	slices.Sort(took)
	_, err := fmt.Fprintf(out, "%s\t%.0f\t%.1f %s\n", name, ms(took[len(took)/2]), slowest, command)
	return err
}

// slowest returns the time of the slowest command in the slow log, in milliseconds, and the command. If the machine is
// busy, the time of a command may contain that of other processes, so a page and a scrape have the median of several
// visits.
func (l *look) slowest(ctx context.Context) (took float64, command string) {
	slow, _ := l.client.SlowLogGet(ctx, -1).Result()
	for _, s := range slow {
		if ms(s.Duration) > took && !strings.EqualFold(s.Args[0], "slowlog") {
			took, command = ms(s.Duration), strings.Join(s.Args[:min(3, len(s.Args))], " ")
		}
	}
	return took, command
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// answer runs a command and returns its response time. It kills tdf watch after the first line.
func answer(cmd *exec.Cmd) (time.Duration, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	lines := bufio.NewReader(stdout)
	_, err = lines.ReadString('\n')
	took := time.Since(began)
	if strings.HasPrefix(strings.Join(cmd.Args[1:], " "), "watch") {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return took, err
	}
	_, _ = io.Copy(io.Discard, lines)
	err = cmd.Wait()
	var exit *exec.ExitError
	const problemsFound = 3 // exit status of tdf's commands if they report a problem
	if errors.As(err, &exit) && exit.ExitCode() == problemsFound {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return time.Since(began), err
}
