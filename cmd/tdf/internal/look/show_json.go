package look

import (
	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/jsonview"
)

// json returns the task as JSON, with facts that the task itself does not contain.
func (v *view) json() jsonview.Object {
	var others jsonview.Object
	others.Set("updates", len(v.updates)) // of all rounds, at most maxUpdates
	if v.State == tdf.Running {
		v.addRunning(&others)
	}
	return v.Task.Object(others)
}

// addRunning adds the worker of a running task, and the time since the last output.
func (v *view) addRunning(o *jsonview.Object) {
	if v.worker != nil {
		if v.worker.Host != "" {
			o.Set("host", v.worker.Host)
		}
		o.Set("worker_alive", v.worker.Alive)
	}
	if last := v.current().LastOutput; !last.IsZero() && v.now.After(last) {
		o.Set("silent_seconds", v.now.Sub(last).Seconds())
	}
}
