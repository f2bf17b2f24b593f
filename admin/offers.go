package admin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/redisstate"
)

// offers reports which needs of a partition a worker meets, each without regard to the others.
func offers(o tdf.Offer, p tdf.Partition) (queue, tags, handler bool) {
	same := []tdf.QueueShare{{Queue: p.Queue}}
	byQueue, byTags, byHandler := o, o, o
	byQueue.Programs, byTags.Programs = true, true
	byTags.Queues, byHandler.Queues = same, same
	return byQueue.Matches(tdf.Partition{Queue: p.Queue}),
		byTags.Matches(tdf.Partition{Queue: p.Queue, Tags: p.Tags}),
		byHandler.Matches(tdf.Partition{Queue: p.Queue, Handler: p.Handler})
}

// unserved says why no live worker may claim the tasks of a partition, and suggests a fix. If a live worker may claim
// them, both texts are "".
func (f *fleet) unserved(p tdf.Partition) (text, fix string) {
	var queue, tags, handler bool
	for i := range f.workers {
		w := &f.workers[i]
		switch {
		case !w.Alive(f.at):
			continue
		case w.Offer.Matches(p):
			return "", ""
		}
		q, t, h := offers(w.Offer, p)
		queue, tags, handler = queue || q, tags || t, handler || h
	}
	return lacking(p, queue, tags, handler), workerFor(p)
}

// lacking names the needs of a partition that no live worker meets.
func lacking(p tdf.Partition, queue, tags, handler bool) string {
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
func workerFor(p tdf.Partition) string {
	var keys []string
	if p.Queue != tdf.DefaultQueue {
		keys = append(keys, "queues="+p.Queue)
	}
	if len(p.Tags) > 0 {
		keys = append(keys, "tags="+strings.Join(p.Tags, ","))
	}
	switch set := strings.Join(keys, " and "); {
	case p.Handler != "" && set != "":
		return "run a worker with a handler for " + p.Handler + ", and with " + set + " in its configuration"
	case p.Handler != "":
		return "run a worker with a handler for " + p.Handler
	case set != "":
		return "start a worker with " + set + " in its configuration"
	}
	return "start a worker"
}

// mostUnserved is the maximum number of diagnoses about partitions.
const mostUnserved = 5

// unservedTasks reports the open tasks that no live worker may claim.
func (v *vitals) unservedTasks(d *diagnoses) {
	if v.alive == 0 {
		return // liveWorkers reports this
	}
	said, more := 0, 0
	for _, name := range v.partitions {
		p, _ := tdf.ParsePartition(name)
		text, fix := v.fleet.unserved(p)
		switch {
		case text == "":
		case said == mostUnserved:
			more++
		default:
			said++
			d.problem("tasks", "open tasks wait for another worker: "+text, fix)
		}
	}
	if more > 0 {
		d.problem("tasks", fmt.Sprintf("no live worker may claim the open tasks of more combinations of queue, tags and handler: %d", more), "start workers for them")
	}
}

// matching returns the fleet with those workers that may claim the task.
func (c *situation) matching() fleet {
	f, p := c.fleet, c.task.Partition()
	f.workers = slices.DeleteFunc(slices.Clone(f.workers), func(w redisstate.WorkerStatus) bool { return !w.Offer.Matches(p) })
	return f
}
