package main

import (
	"strings"

	"github.com/tdf-framework/tdf"
)

// A detailsJSON has the fields that tdf show --json adds to those of tdf ls --json.
type detailsJSON struct {
	Source        string      `json:"source"`
	StartAfter    string      `json:"start_after,omitempty"`
	EndBefore     string      `json:"end_before,omitempty"`
	Timeout       tdf.Seconds `json:"timeout,omitempty"`
	FailOn        tdf.FailOn  `json:"fail_on"`
	MaxFails      int         `json:"max_fails"`
	MaxTimeouts   int         `json:"max_timeouts"`
	MaxLosses     int         `json:"max_losses"`
	Fails         int         `json:"fails"`
	Timeouts      int         `json:"timeouts"`
	Losses        int         `json:"losses"`
	Releases      int         `json:"releases"`
	Reopens       int         `json:"reopens"`
	Revision      int         `json:"revision"`
	NotOn         []string    `json:"not_on,omitempty"`
	Checkpoint    *content    `json:"checkpoint,omitempty"`
	Updates       int         `json:"updates"` // of all rounds, at most 10000
	Host          string      `json:"host,omitempty"`
	WorkerAlive   *bool       `json:"worker_alive,omitempty"`
	PID           int         `json:"pid,omitempty"`
	LastOutput    string      `json:"last_output,omitempty"`
	SilentSeconds tdf.Seconds `json:"silent_seconds,omitempty"` // since the last output
	LeaseUntil    string      `json:"lease_until,omitempty"`
	Deadline      string      `json:"deadline,omitempty"`
	Rounds        []roundJSON `json:"rounds"`
	Log           []string    `json:"log"`
}

// A roundJSON is a round in tdf show --json.
type roundJSON struct {
	Round   int               `json:"round"`
	Entered map[string]string `json:"entered,omitempty"` // by state, and timeout, failure and lost
	runJSON
}

func (v *view) json() taskJSON {
	j := taskToJSON(v.Task)
	j.textsJSON = textsToJSON(v.Rounds.At(v.LastRun()))
	d := &detailsJSON{
		Source: tdf.HideCredentials(v.Source), StartAfter: stamp(v.StartAfter), EndBefore: stamp(v.EndBefore), FailOn: v.FailOn,
		MaxFails: v.MaxFails, MaxTimeouts: v.MaxTimeouts, MaxLosses: v.MaxLosses,
		Fails: v.Fails, Timeouts: v.Timeouts, Losses: v.Losses, Releases: v.Releases, Reopens: v.Reopens, Revision: v.Revision,
		NotOn: v.NotOn, Checkpoint: optional(v.Checkpoint), Updates: len(v.updates), Log: []string{},
	}
	if v.Timeout < tdf.Forever {
		d.Timeout = v.Timeout
	}
	if v.Log != "" {
		d.Log = strings.Split(v.Log, "\n")
	}
	for i := range v.Rounds.All() {
		d.Rounds = append(d.Rounds, v.roundJSON(i))
	}
	if v.State == tdf.Running {
		v.running(d)
	}
	j.detailsJSON = d
	return j
}

// running adds the fields of a running task.
func (v *view) running(d *detailsJSON) {
	r := v.Current()
	d.PID, d.LeaseUntil, d.Deadline = r.PID, stamp(v.LeaseUntil), stamp(v.Deadline)
	if r.LastOutput > 0 {
		d.LastOutput, d.SilentSeconds = stamp(r.LastOutput), max(0, v.now.Sub(r.LastOutput))
	}
	if v.worker != nil {
		d.Host, d.WorkerAlive = v.worker.Host, &v.worker.Alive
	}
}

func (v *view) roundJSON(round int) roundJSON {
	r := v.Rounds.At(round)
	j := roundJSON{Round: round, Entered: map[string]string{}, runJSON: runToJSON(v.Task, round)}
	j.textsJSON = textsToJSON(r)
	for s, at := range r.Entered {
		j.Entered[string(s)] = stamp(at)
	}
	for name, at := range map[string]tdf.Time{"timeout": r.TimedOutAt, "failure": r.FailedAt, "lost": r.LostAt} {
		if at > 0 {
			j.Entered[name] = stamp(at)
		}
	}
	return j
}
