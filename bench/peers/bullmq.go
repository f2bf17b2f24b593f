package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tdf-framework/tdf/bench/internal/child"
)

// A bullmqSystem is BullMQ. It keeps processed jobs, as it does by default.
type bullmqSystem struct{}

//go:embed bullmq.js
var bullmqScript []byte

func (bullmqSystem) opener(t *trial, j job) (*child.Process, error) {
	return t.startBullMQ("opener", j)
}

func (bullmqSystem) worker(t *trial, j job) (*child.Process, error) {
	return t.startBullMQ("worker", j)
}

func (t *trial) startBullMQ(role string, j job) (*child.Process, error) {
	modules, err := installOnce(t.ctx)
	if err != nil {
		return nil, fmt.Errorf("BullMQ is not installed: %w", err)
	}
	script := filepath.Join(t.dir, "bullmq.js")
	if err := os.WriteFile(script, bullmqScript, 0o644); err != nil {
		return nil, err
	}
	j.System, j.Role = "bullmq", role
	return t.start(j, []string{"NODE_PATH=" + modules}, "node", script)
}

func bullmqKey(name string) string { return "bull:" + namespace + ":" + name }

func (bullmqSystem) waiting(t *trial) (int64, error) {
	return t.rdb.LLen(t.ctx, bullmqKey("wait")).Result()
}

func (bullmqSystem) processed(t *trial) (int64, error) {
	return t.rdb.ZCard(t.ctx, bullmqKey("completed")).Result()
}

func (s bullmqSystem) checkOpened(t *trial, n int) error {
	waiting, err := s.waiting(t)
	if err != nil {
		return err
	}
	if err := expect("waiting jobs", waiting, int64(n)); err != nil {
		return err
	}
	for _, i := range sampled(n) {
		if _, err := t.bullmqJob(i); err != nil {
			return err
		}
	}
	return nil
}

func (s bullmqSystem) checkProcessed(t *trial, n int) error {
	for _, i := range sampled(n) {
		fields, err := t.bullmqJob(i)
		if err != nil {
			return err
		}
		if fields["finishedOn"] == "" || fields["failedReason"] != "" {
			return fmt.Errorf("read back: job %d is not finished: %q", i+1, fields)
		}
		if err := t.rdb.ZScore(t.ctx, bullmqKey("completed"), strconv.Itoa(i+1)).Err(); err != nil {
			return fmt.Errorf("read back: job %d is not completed: %w", i+1, err)
		}
	}
	return nil
}

// bullmqJob reads the job with payload number i, and checks its data.
func (t *trial) bullmqJob(i int) (map[string]string, error) {
	fields, err := t.rdb.HGetAll(t.ctx, bullmqKey(strconv.Itoa(i+1))).Result()
	if err != nil {
		return nil, err
	}
	var data string
	if err := json.Unmarshal([]byte(fields["data"]), &data); err != nil {
		return nil, fmt.Errorf("read back: job %d: %w", i+1, err)
	}
	return fields, expect("data of a job", data, payload(int64(i)))
}
