package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// meets reports which needs of a partition a worker meets, each without regard to the others.
func meets(o tdf.Offer, p tdf.Partition) (queue, tags, handler bool) {
	same := []tdf.QueueShare{{Queue: p.Queue}}
	byQueue, byTags, byHandler := o, o, o
	byQueue.Programs, byTags.Programs = true, true
	byTags.Queues, byHandler.Queues = same, same
	p.Group = ""
	byQueue.Group, byTags.Group, byHandler.Group = "", "", ""
	byQueue.Resources, byTags.Resources, byHandler.Resources = nil, nil, nil
	return byQueue.Matches(tdf.Partition{Queue: p.Queue}),
		byTags.Matches(tdf.Partition{Queue: p.Queue, Tags: p.Tags}),
		byHandler.Matches(tdf.Partition{Queue: p.Queue, Handler: p.Handler})
}

// offers returns the different offers of the live workers. There may be thousands of workers, but few different offers.
func (f *fleet) offers() []tdf.Offer {
	known := map[string]bool{}
	var all []tdf.Offer
	for i := range f.workers {
		w := &f.workers[i]
		if key := fmt.Sprintf("%#v", w.Offer); w.Alive(f.at) && !known[key] {
			known[key] = true
			all = append(all, w.Offer)
		}
	}
	return all
}

// unserved returns a Fact if no live worker may claim the tasks of a partition. The caller passes the offers of the
// live workers.
func unserved(all []tdf.Offer, p tdf.Partition) (Fact, bool) {
	var queue, tags, handler bool
	for _, o := range all {
		if o.Matches(p) {
			return Fact{}, false
		}
		q, t, h := meets(o, p)
		queue, tags, handler = queue || q, tags || t, handler || h
	}
	text := lacking(all, p, queue, tags, handler)
	return Fact{Code: FactUnserved, About: p.String(), Text: text, Fix: workerFor(p)}, true
}

// lacking names the needs of a partition that no live worker meets.
func lacking(all []tdf.Offer, p tdf.Partition, queue, tags, handler bool) string {
	var lacks []string
	switch {
	case handler:
	case p.Handler == "":
		lacks = append(lacks, "no live worker runs tasks with a source")
	default:
		lacks = append(lacks, "no live worker handles "+p.Handler)
	}
	if !queue {
		lacks = append(lacks, "no live worker serves the queue "+p.Queue)
	}
	if !tags {
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

// workerFor suggests a worker that may claim the tasks of a partition.
func workerFor(p tdf.Partition) Fix {
	var keys []string
	if p.Queue != tdf.DefaultQueue {
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
	facts := v.unservedOf(v.partitions)
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
	f, p := c.fleet, c.task.Partition()
	f.workers = slices.DeleteFunc(slices.Clone(f.workers), func(w presence.WorkerStatus) bool {
		return !w.Offer.Matches(p)
	})
	return f
}
