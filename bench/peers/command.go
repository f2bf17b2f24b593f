package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
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
	tdf := filepath.Join(dir, "tdf")
	out, err := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", tdf, "./cmd/tdf").CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("build tdf: %w: %s", err, out)
	}
	run := command("env", "XDG_CONFIG_HOME="+dir, tdf, "run", "--lines", "-j", fmt.Sprint(runSlots), "--", "true")
	return run(ctx, dir, runs)
}
