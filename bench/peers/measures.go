package main

import "time"

// process measures one worker process, from the first claim to the last report. All tasks were opened before.
func process(t *trial, s system) figure {
	check(s.opener(t, t.tasks).call("open", nil))
	worker := s.worker(t, job{})
	f := t.costOf(t.tasks, func() time.Duration { return t.processBy(s, worker, t.tasks) })
	t.checkTally(worker)
	return f
}

// processBy starts a worker, and returns the time from the first claim until n tasks are processed.
func (t *trial) processBy(s system, worker *child, n int) (took time.Duration) {
	together(func() error { return worker.call("work", nil) }, func() {
		for must(s.waiting(t)) == int64(n) {
			t.sleep(pollPause)
		}
		took = timeOf(func() { t.untilProcessed(s, n) })
	})
	return took
}

// checkTally checks that a worker got each task once.
func (t *trial) checkTally(worker *child) {
	var got tally
	check(worker.call("report", &got))
	n := int64(t.tasks)
	equal("error in a payload", got.Wrong, "")
	equal("tasks that the worker got", got.Count, n)
	equal("sum of the tasks' numbers", got.Sum, n*(n-1)/2)
}

// opening measures the opening of tasks.
func opening(t *trial, s system) figure {
	opener := s.opener(t, t.tasks)
	f := t.costOf(t.tasks, func() (took time.Duration) {
		check(opener.call("open", &took))
		return took
	})
	equal("open tasks", must(s.waiting(t)), int64(t.tasks))
	return f
}

// lives measures whole systems at work: tasks are opened and processed at the same time. TDF also settles and archives
// them.
func lives(t *trial, s system) figure {
	opener, worker := s.opener(t, t.tasks), s.worker(t, job{})
	if !s.late {
		check(worker.call("work", nil))
		t.sleep(time.Second) // until the worker is idle
	}
	f := t.costOf(t.tasks, func() time.Duration {
		return timeOf(func() {
			together(func() error { return opener.call("open", nil) }, func() {
				for s.late && must(s.waiting(t)) == 0 {
					t.sleep(pollPause)
				}
				if s.late {
					check(worker.call("work", nil))
				}
				t.untilProcessed(s, t.tasks)
			})
		})
	})
	t.checkTally(worker)
	return f
}

// redisCPU measures the CPU time of Redis for the whole life of a task. The worker starts after all tasks are open;
// TDF's server and manager run from the beginning.
func redisCPU(t *trial, s system) figure {
	opener, worker := s.opener(t, t.tasks), s.worker(t, job{})
	f := t.costOf(t.tasks, func() time.Duration {
		check(opener.call("open", nil))
		return t.processBy(s, worker, t.tasks)
	})
	t.checkTally(worker)
	f.value = f.cpu
	return f
}

// pickup measures the median time from the call that opens a task to the start of its handler, in an idle system.
func pickup(t *trial, s system) figure {
	opener, worker := s.opener(t, t.pickups), s.worker(t, job{Timed: true})
	check(worker.call("work", nil))
	check(opener.call("trickle", nil))
	t.untilProcessed(s, t.pickups)
	var got tally
	check(worker.call("report", &got))
	equal("error in a payload", got.Wrong, "")
	equal("tasks that the worker got", len(got.Waits), t.pickups)
	return figure{value: median(got.Waits)}
}

// memory measures the memory of open tasks, without connections of the system.
func memory(t *trial, s system) figure {
	before := must(t.redis.Usage(t.ctx))
	check(s.opener(t, t.tasks).call("open", nil))
	t.stop()
	after := must(t.redis.Usage(t.ctx))
	equal("open tasks", must(s.waiting(t)), int64(t.tasks))
	return figure{value: (after.Memory - before.Memory) / float64(t.tasks)}
}

// chains measures a chain of tasks, without their run times: the callback of each task opens the next one.
func chains(t *trial, s system) figure {
	j := s.job
	j.Tasks = t.links
	opener := s.start(t, "opener", j)
	s.start(t, "server", job{})
	check(s.worker(t, job{}).call("work", nil))
	var took time.Duration
	check(opener.call("chain", &took))
	equal("archived tasks", must(s.processed(t)), int64(t.links))
	return figure{value: took.Seconds() / float64(t.links) * 1000}
}
