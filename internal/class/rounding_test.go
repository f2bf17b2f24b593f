package class

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/unixtime"
)

// Requirements have rounded values, so that requests which differ for each task share a few of them. Rounding leaves what users usually
// write, and never asks for more than a machine that is a little larger than the request.
func TestRoundedRequirements(t *testing.T) {
	for asked, want := range map[string]string{
		"memory=1":              "cpus=1 memory=1",
		"memory=1001":           "cpus=1 memory=1K",
		"memory=1000M":          "cpus=1 memory=1G",
		"memory=1537M":          "cpus=1 memory=1664M",
		"memory=7900M":          "cpus=1 memory=8G",
		"memory=60.5G cpus=3.3": "cpus=3.3 memory=61G",
		"memory=250G":           "cpus=1 memory=250G",
		"memory=1024T":          "cpus=1 memory=1024T",
		"gpus=1 memory=60.5G or cpus=16 or memory=60.75G gpus=1": "cpus=1 gpus=1 memory=61G or cpus=16",
		"licence=0.1001": "cpus=1 licence=0.1001",
		"":               "",
	} {
		r := Requirement{Resources: request(t, asked)}.Rounded()
		expect.Equal(t, r.Resources.String(), want, asked)
	}
	for asked, want := range map[unixtime.Seconds]unixtime.Seconds{
		0: 0, 0.5: 1, 8: 8, 17: 18, 600: 640, 3600: 3600, 3601: 3840, 6700: 6720, 23 * 3600: 23 * 3600, unixtime.Forever: unixtime.Forever,
	} {
		expect.Equal(t, Requirement{MinTime: asked}.Rounded().MinTime, want)
	}
}

func TestRoundUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.Int64Range(0, MaxMemory).Draw(r, "n")
		up := roundUp(n, memoryStep)
		if up < n || up-n > n/8 || up-n >= memoryStep || roundUp(up, memoryStep) != up || up > MaxMemory {
			r.Fatal(n, "is rounded to", up)
		}
	})
}
