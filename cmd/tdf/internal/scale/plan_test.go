package scale

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/redisstate/counts"
)

func TestSubmissions(t *testing.T) {
	request := func(text string) class.Request { return expect.Result(class.ParseRequest(text)).Value(t) }
	tasks := func(n int, text string) counts.Claimable { return counts.Claimable{Request: request(text), Tasks: n} }
	plain := func(n int) []counts.Claimable { return []counts.Claimable{{Tasks: n}} }
	offering := func(text string) *scaling {
		return &scaling{slots: 1, offer: class.Offer{Resources: expect.Result(class.ParseAmounts(text)).Value(t)}}
	}
	slot, big := room{slots: 1}, offering("cpus=32 gpus=1").whole()
	used := func(text string, runs ...int64) room {
		return offering("cpus=32 gpus=1").free(&admin.Worker{Slots: 128, Resources: "cpus=32 gpus=1", ResourcesUsed: text, Runs: runs})
	}
	for name, c := range map[string]struct {
		demand demand
		want   int
	}{
		"no task":                              {demand{whole: slot, most: 9}, 0},
		"a job for each task":                  {demand{waiting: plain(3), whole: slot, most: 9}, 3},
		"a job for each slot":                  {demand{waiting: plain(5), whole: room{slots: 2}, most: 9}, 3},
		"at most so many":                      {demand{waiting: plain(50), whole: slot, jobs: 7, most: 9}, 2},
		"more jobs than that, by a former max": {demand{waiting: plain(50), whole: slot, jobs: 12, most: 9}, 0},
		"jobs that start will claim":           {demand{waiting: plain(3), whole: slot, jobs: 2, starting: 2, most: 9}, 1},
		"free slots will claim":                {demand{waiting: plain(3), free: []room{slot, slot}, whole: slot, jobs: 2, most: 9}, 1},
		"tasks that no free slot claims":       {demand{waiting: plain(3), free: []room{{slots: 4}}, whole: slot, jobs: 2, most: 9}, 0},
		"a probe":                              {demand{waiting: plain(50), whole: slot, most: 9, probe: true}, 1},
		"a probe has started":                  {demand{waiting: plain(50), whole: slot, jobs: 1, starting: 1, most: 9, probe: true}, 0},

		"a full worker has free slots":   {demand{waiting: []counts.Claimable{tasks(100, "cpus=32")}, free: []room{used("cpus=32", 1)}, whole: big, most: 40}, 40},
		"what fits in a running worker":  {demand{waiting: []counts.Claimable{tasks(5, "cpus=8")}, free: []room{used("cpus=8", 1)}, whole: big, most: 40}, 1},
		"several fit in one job":         {demand{waiting: []counts.Claimable{tasks(40, "cpus=1")}, whole: big, most: 40}, 2},
		"one gpu for each":               {demand{waiting: []counts.Claimable{tasks(3, "cpus=1 gpus=1")}, whole: big, jobs: 1, starting: 1, most: 40}, 2},
		"tasks that ask for nothing":     {demand{waiting: plain(3), whole: big, most: 40}, 3},
		"small ones beside a large one":  {demand{waiting: []counts.Claimable{tasks(1, "cpus=30"), tasks(2, "cpus=1")}, whole: big, most: 40}, 1},
		"more than any new worker has":   {demand{waiting: []counts.Claimable{tasks(1, "cpus=64")}, whole: big, most: 40}, 0},
		"a running worker without offer": {demand{waiting: []counts.Claimable{tasks(1, "cpus=1")}, free: []room{slot}, whole: big, most: 40}, 1},
	} {
		expect.Equal(t, c.demand.submissions(), c.want, name)
	}
}

// Any number of rounds, whose jobs start and end at any time, submits at most the maximum.
func FuzzSubmissions(f *testing.F) {
	f.Add(3, 1, 2, 1, 1, 5)
	f.Fuzz(func(t *testing.T, waiting, free, slots, jobs, starting, most int) {
		if waiting < 0 || free < 0 || slots < 1 || jobs < 0 || starting < 0 || most < 0 || waiting > 1e9 || slots > 1e9 || starting > 1e4 || most > 1e4 {
			t.Skip("no such demand")
		}
		d := demand{
			waiting: []counts.Claimable{{Tasks: waiting}}, free: []room{{slots: free}}, whole: room{slots: slots}, jobs: jobs, starting: starting, most: most,
		}
		n := d.submissions()
		expect.Compare(t, n, ">=", 0)
		expect.Compare(t, jobs+n, "<=", max(jobs, most))
		expect.Compare(t, n, "<=", waiting)
	})
}

// Pauses double, up to half an hour, and a success ends them.
func TestPauses(t *testing.T) {
	now := time.Unix(1e9, 0)
	h := health{interval: 30 * time.Second}
	for _, minutes := range []float64{0, 0, 0.5, 1, 2, 4, 8, 16, 30, 30} {
		expect.Equal(t, h.inVain(now).Minutes(), minutes)
	}
	expect.True(t, h.probing(), "probing")
	expect.True(t, h.paused(now.Add(longestPause-1)), "paused")
	expect.True(t, !h.paused(now.Add(longestPause)), "paused at the end")
	h.worked()
	expect.True(t, !h.probing(), "probing after a worker")
	expect.Equal(t, h.refusal(now), 30*time.Second)
	expect.Equal(t, h.refusal(now), time.Minute)
	h.submitted()
	expect.Equal(t, h.refusal(now), 30*time.Second)
}

// Jobs of other namespaces, queues or tags have another name, also if their texts put together are the same.
func TestJobNames(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range [][3]string{{"a-b", "c", ""}, {"a", "b-c", ""}, {"a", "b", "c"}, {"a", "b,c", ""}, {"a/b", "c", ""}, {"a_b", "c", ""}} {
		name := jobName(of[0], of[1], of[2])
		expect.True(t, !seen[name], name)
		seen[name] = true
	}
	expect.Equal(t, jobName("P", "gpu", "big"), jobName("P", "gpu", "big"))
	expect.Compare(t, len(jobName(string(make([]byte, 1000)), "q", "")), "<", 80)
}

// Only names that the API gives to workers of the jobs' own token count, or those of workers that use Redis.
func TestNamesOfWorkers(t *testing.T) {
	for name, want := range map[string][2]string{
		"slurm-17": {"17", ""}, "slurm-17.2": {"17", ""}, "lab/slurm-17": {"", "17"}, "eve/slurm-17": {}, "lab2/slurm-17": {}, "worker-17": {}, "slurm": {},
	} {
		expect.Equal(t, [2]string{(&scaling{}).jobOf(name), (&scaling{prefix: "lab/"}).jobOf(name)}, want, name)
	}
}

// The time limit of a job, in the forms of Slurm.
func TestJobTime(t *testing.T) {
	for options, want := range map[string]time.Duration{
		"--time=90": 90 * time.Minute, "--time 90:30": 90*time.Minute + 30*time.Second, "-t 8:00:00": 8 * time.Hour, "-t8:00:00": 8 * time.Hour,
		"--time=2-12": 60 * time.Hour, "--time=2-12:30": 60*time.Hour + 30*time.Minute, "--time=1-0:0:1": 24*time.Hour + time.Second,
		"--time=5 --gres=gpu:1 --time=6": 6 * time.Minute,
		"--time=UNLIMITED":               0, "--time=": 0, "--time=1:2:3:4": 0, "--time=1-1:2:3:4": 0, "--time=-5": 0, "--time=x-1": 0, "--time": 0, "": 0,
		"--time-min=5": 0, "--time=99999999999999999999": 0,
	} {
		expect.Equal(t, jobTime(strings.Fields(options)), want, options)
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, option := range []string{"--array=1-4", "-a1-4", "--job-name=x", "-J", "--wrap=x", "-M", "--clusters=all"} {
		err := checkOptions([]string{"--time=1", option})
		expect.MustTrue(t, err != nil, option)
		expect.Contains(t, err.Error(), "tdf scale counts its jobs by name")
	}
	expect.NoError(t, checkOptions([]string{"--account=a", "-A", "b", "--partition=gpu", "--gres=gpu:1"}))
}
