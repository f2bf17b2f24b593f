package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandBar compares tdf run with other tools that run a command for each line of stdin, two at a time. tdf run starts
// a TDF with an embedded Redis for the call, and the time includes this.
func commandBar() *bar {
	const xargsSide = "xargs"
	jobs := fmt.Sprint(runSlots)
	return &bar{
		name: "command", unit: "commands/s",
		sides: []side{
			{tdfSide, nil, runsOf(runWithTDF)},
			{parallelSide, nil, runsOf(command("parallel", "--will-cite", "-j", jobs, "true"))},
			{xargsSide, nil, runsOf(command("xargs", "-P", jobs, "-n", "1", "true"))},
		},
		wants: []want{
			atLeast(4, "× GNU parallel", ratio(tdfSide, parallelSide)),
			atLeast(0.6, "× xargs", ratio(tdfSide, xargsSide)),
		},
	}
}

// runWithTDF builds tdf, and runs commands with it. Its configuration directory is empty, so that it uses no running
// TDF.
func runWithTDF(ctx context.Context, dir string, runs int) (took, cpu time.Duration, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tdf-framework/tdf").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("find the sources of tdf: %w", err)
	}
	tdf := filepath.Join(dir, "tdf")
	build := exec.CommandContext(ctx, "go", "build", "-o", tdf, "./cmd/tdf")
	build.Dir = strings.TrimSpace(string(root))
	out, err := build.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("build tdf: %w: %s", err, out)
	}
	run := command("env", "XDG_CONFIG_HOME="+dir, tdf, "run", "--lines", "-j", fmt.Sprint(runSlots), "--", "true")
	return run(ctx, dir, runs)
}
