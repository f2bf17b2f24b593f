package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// offers returns the different offers of the live workers. There may be thousands of workers, but few different offers.
func (f *fleet) offers() []class.Offer {
	known := map[string]bool{}
	var all []class.Offer
	for i := range f.workers {
		w := &f.workers[i]
		if key := fmt.Sprintf("%#v", w.Offer); w.Alive(f.at) && !known[key] {
			known[key] = true
			all = append(all, w.Offer)
		}
	}
	return all
}

// unserved returns a Fact if no live worker may claim the tasks of a requirement. The caller passes the offers of the
// live workers.
func unserved(all []class.Offer, p class.Requirement) (Fact, bool) {
	met := map[class.Need]bool{}
	for i := range all {
		lacks := class.Lacks(&all[i], p)
		if len(lacks) == 0 {
			return Fact{}, false
		}
		for _, need := range []class.Need{class.Queue, class.Tags, class.Program} {
			met[need] = met[need] || !slices.Contains(lacks, need)
		}
	}
	text := lacking(all, p, met)
	return Fact{Code: FactUnserved, About: p.String(), Text: text, Fix: workerFor(p)}, true
}

// lacking names the needs of a requirement that no live worker meets.
func lacking(all []class.Offer, p class.Requirement, met map[class.Need]bool) string {
	var lacks []string
	switch {
	case met[class.Program]:
	case p.Handler == "":
		lacks = append(lacks, "no live worker runs tasks with a source")
	default:
		lacks = append(lacks, "no live worker handles "+p.Handler)
	}
	if !met[class.Queue] {
		lacks = append(lacks, "no live worker serves the queue "+p.Queue)
	}
	if !met[class.Tags] {
		lacks = append(lacks, "no live worker offers the "+tagsText(p.Tags))
	}
	text := lackingResources(all, p)
	if text != "" {
		lacks = append(lacks, text)
	}
	if len(lacks) == 0 {
		return "no live worker meets all of these needs: " + p.String()
	}
	return strings.Join(lacks, "; ")
}

func tagsText(tags []string) string {
	if len(tags) == 1 {
		return "tag " + tags[0]
	}
	return "tags " + strings.Join(tags, ", ")
}

// workerFor suggests a worker that may claim the tasks of a requirement.
func workerFor(p class.Requirement) Fix {
	var keys []string
	if p.Queue != class.DefaultQueue {
		keys = append(keys, "queues="+p.Queue)
	}
	if len(p.Tags) > 0 {
		keys = append(keys, "tags="+strings.Join(p.Tags, ","))
	}
	if p.Resources != nil {
		keys = append(keys, "resources=auto, or resources that include "+p.Resources.String())
	}
	switch set := strings.Join(keys, " and "); {
	case p.Handler != "" && set != "":
		return fix("run a worker with a handler for " + p.Handler + ", and with " + set + " in its configuration")
	case p.Handler != "":
		return fix("run a worker with a handler for " + p.Handler)
	case set != "":
		return fix("start a worker with "+set+" in its configuration", StepStartWorker)
	}
	return toStartWorker
}

// unservedTasks reports the open tasks that no live worker may claim.
func (v *vitals) unservedTasks(d *diagnoses) {
	facts := v.unservedOf(v.requirements)
	for _, fact := range facts[:min(len(facts), mostNamed)] {
		d.problem("tasks", fact)
	}
	if more := len(facts) - mostNamed; more > 0 {
		d.problem("tasks", Fact{
			Code: FactUnserved, Text: fmt.Sprintf("no live worker may claim the open tasks of more combinations of "+
				"queue, tags and handler: %d", more),
			Fix: fix("start workers for them", StepStartWorker),
		})
	}
}

// matching returns the fleet with those workers that may claim the task.
func (c *situation) matching() fleet {
	f, p := c.fleet, c.task.Requirement()
	f.workers = slices.DeleteFunc(slices.Clone(f.workers), func(w presence.WorkerStatus) bool {
		return !class.Serves(&w.Offer, p)
	})
	return f
}
