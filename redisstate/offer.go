package redisstate

import (
	"strings"

	"github.com/tdf-framework/tdf"
)

// queuesText returns the queues of a worker as `queues=` in worker.cfg names them, such as "a:3,b:1".
func queuesText(queues []tdf.QueueShare) string {
	parts := make([]string, len(queues))
	for i, q := range queues {
		parts[i] = q.String()
	}
	return strings.Join(parts, ",")
}

// parseOffer reads the offer from the hash of a worker. A worker of an earlier release has none of these fields: it
// claims tasks without a queue, tags and a priority.
func parseOffer(h map[string]string) tdf.Offer {
	o := tdf.Offer{Tags: tdf.SplitTags(h["tags"]), Programs: true}
	for part := range strings.SplitSeq(h["queues"], ",") {
		if q, err := tdf.ParseQueueShare(part); err == nil {
			o.Queues = append(o.Queues, q)
		}
	}
	if h["handlers"] != "" {
		o.Handlers, o.Programs = strings.Split(h["handlers"], "\n"), false
	} else {
		o.Anything = h["runner"] == inProcess
	}
	return o
}
