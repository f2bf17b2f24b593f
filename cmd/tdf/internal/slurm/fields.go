package slurm

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fields are the columns of squeue, sacct and scontrol. Those of sacct have its names, which begin with a capital.
var fields = map[string]func(*view) string{
	"JobID":           (*view).id,
	"JobIDRaw":        func(v *view) string { return strconv.FormatInt(v.t.ID, 10) },
	"ArrayJobID":      func(v *view) string { return strconv.FormatInt(v.arrayJob(), 10) },
	"ArrayTaskID":     func(v *view) string { return v.element("N/A") },
	"JobName":         func(v *view) string { return v.Name },
	"User":            func(v *view) string { return v.User },
	"UID":             func(v *view) string { return strconv.Itoa(v.UID) },
	"State":           (*view).state,
	"stateshort":      func(v *view) string { return shortStates[v.state()] },
	"ExitCode":        func(v *view) string { code, signal := v.exit(); return fmt.Sprintf("%d:%d", code, signal) },
	"DerivedExitCode": func(*view) string { return "0:0" },
	"Elapsed":         func(v *view) string { return clock(v.elapsed(), true) },
	"ElapsedRaw":      func(v *view) string { return seconds(v.elapsed()) },
	"elapsedshort":    func(v *view) string { return clock(v.elapsed(), false) },
	"Timelimit":       func(v *view) string { return v.limit(func(d time.Duration) string { return clock(d, true) }) },
	"TimelimitRaw": func(v *view) string {
		return v.limit(func(d time.Duration) string { return strconv.Itoa(int(d.Minutes())) })
	},
	"limitshort": func(v *view) string { return v.limit(func(d time.Duration) string { return clock(d, false) }) },
	"timeleft": func(v *view) string {
		return v.limit(func(d time.Duration) string { return clock(d-v.elapsed(), false) })
	},
	"Submit":       func(v *view) string { return moment(v.t.Opened) },
	"Eligible":     func(v *view) string { return moment(v.t.Opened) },
	"Start":        func(v *view) string { start, _ := v.times(); return moment(start) },
	"End":          func(v *view) string { _, end := v.times(); return moment(end) },
	"AllocCPUS":    func(v *view) string { return v.once(strconv.Itoa(v.CPUs), "0") },
	"NCPUS":        func(v *view) string { return v.once(strconv.Itoa(v.CPUs), "0") },
	"ReqCPUS":      func(v *view) string { return strconv.Itoa(v.CPUs) },
	"NNodes":       func(*view) string { return "1" },
	"AllocNodes":   func(v *view) string { return v.once("1", "0") },
	"ReqNodes":     func(*view) string { return "1" },
	"NTasks":       func(v *view) string { return v.ofBatch("1") },
	"ReqMem":       func(v *view) string { return v.memory() },
	"MaxRSS":       func(v *view) string { return v.ofBatch(v.rss()) },
	"AveRSS":       func(v *view) string { return v.ofBatch(v.rss()) },
	"TotalCPU":     func(v *view) string { return clock(v.cpu().Truncate(time.Second), true) },
	"CPUTime":      func(v *view) string { return clock(v.elapsed()*time.Duration(v.CPUs), true) },
	"CPUTimeRAW":   func(v *view) string { return seconds(v.elapsed() * time.Duration(v.CPUs)) },
	"NodeList":     func(v *view) string { return cmp.Or(v.node(), "None assigned") },
	"node":         (*view).node,
	"nodeorreason": func(v *view) string { return cmp.Or(v.node(), "("+v.reason()+")") },
	"Reason":       (*view).reason,
	"Partition":    func(v *view) string { return cmp.Or(v.Partition, partition) },
	"Account":      func(v *view) string { return v.Account },
	"QOS":          func(v *view) string { return v.QOS },
	"Comment":      func(v *view) string { return v.Comment },
	"Cluster":      func(*view) string { return cluster },
	"WorkDir":      func(v *view) string { return v.Dir },
	"command":      func(v *view) string { return v.Command },
	"dependency":   func(v *view) string { return v.Dependency },
	"Priority":     func(v *view) string { return strconv.Itoa(*v.t.Priority) },
	"gres":         func(v *view) string { return v.gres() },
	"stdout":       func(v *view) string { return v.file(v.StdOut) },
	"stderr":       func(v *view) string { return v.file(v.StdErr) },
	"owner":        func(v *view) string { return fmt.Sprintf("%s(%d)", v.User, v.UID) },
	"requeue":      func(v *view) string { return strconv.Itoa(map[bool]int{false: 1, true: 0}[v.Once]) },
	"stdin":        func(v *view) string { return v.file(v.StdIn) },
	"restarts":     func(v *view) string { return strconv.Itoa(v.t.Round) },
}

func (v *view) element(none string) string {
	switch {
	case len(v.pending) > 0:
		return ranges(v.pending)
	case v.Index != nil:
		return strconv.FormatInt(*v.Index, 10)
	}
	return none
}

// once returns a text, or another one before the job has run.
func (v *view) once(text, before string) string {
	if v.last == nil {
		return before
	}
	return text
}

// ofBatch returns a text in the line of the step batch alone.
func (v *view) ofBatch(text string) string {
	if !v.batch {
		return ""
	}
	return text
}

func (v *view) rss() string {
	if v.last == nil {
		return ""
	}
	return strconv.FormatInt(v.last.MaxRSS>>10, 10) + "K"
}

func (v *view) cpu() time.Duration {
	if v.last == nil {
		return 0
	}
	return v.last.CPUTime
}

func (v *view) limit(text func(time.Duration) string) string {
	if v.t.Timeout > 365*24*time.Hour {
		return "UNLIMITED"
	}
	return text(v.t.Timeout)
}

func (v *view) memory() string {
	switch {
	case v.Memory == 0:
		return "0"
	case v.Memory%(1<<30) == 0:
		return strconv.FormatInt(v.Memory>>30, 10) + "G"
	}
	return strconv.FormatInt(v.Memory>>20, 10) + "M"
}

func (v *view) gres() string {
	if v.GPUs == 0 {
		return "N/A"
	}
	return "gres:gpu:" + strconv.Itoa(v.GPUs)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// clock writes a time span as [days-]hours:minutes:seconds. If it is not long, it leaves out leading zeros.
func clock(d time.Duration, long bool) string {
	s := int(d.Seconds())
	days, hours, minutes := s/86400, s/3600%24, s/60%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, hours, minutes, s%60)
	case long:
		return fmt.Sprintf("%02d:%02d:%02d", hours, minutes, s%60)
	case hours > 0:
		return fmt.Sprintf("%d:%02d:%02d", hours, minutes, s%60)
	}
	return fmt.Sprintf("%d:%02d", minutes, s%60)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return t.Local().Format("2006-01-02T15:04:05")
}

// findField returns the name of a field of sacct as sacct writes it.
func findField(name string) (string, error) {
	for known := range fields {
		if strings.EqualFold(known, name) && known[0] < 'a' {
			return known, nil
		}
	}
	return "", fmt.Errorf("invalid field requested: %q", name)
}
