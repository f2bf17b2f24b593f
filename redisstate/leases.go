package redisstate

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf"
)

// leasesOf returns, for each running task, the longest lease that its worker may have, or 0 if it is unknown. Usually
// this is the lease in the worker's last heartbeat. But the lease of a task may be longer, for example if the worker
// has started again with a shorter lease. Then leasesOf returns the longest lease of all workers that sent a heartbeat
// within the last day.
func (s *Store) leasesOf(ctx context.Context, sightings []tdf.Placement, now tdf.Time) ([]tdf.Seconds, error) {
	read := map[string]*redis.StringCmd{}
	err := s.Pipeline(ctx, readLeases, func(p redis.Pipeliner) {
		for i := range sightings {
			if name := leaseholder(&sightings[i], now); name != "" && read[name] == nil {
				read[name] = p.HGet(ctx, s.Keys.Worker(name), "lease")
			}
		}
	})
	if err != nil {
		return nil, err
	}
	leases := make([]tdf.Seconds, len(sightings))
	longest := tdf.Seconds(-1) // not read yet
	for i := range sightings {
		name := leaseholder(&sightings[i], now)
		if name == "" {
			continue
		}
		if lease, err := tdf.ParseSeconds(read[name].Val()); err == nil {
			leases[i] = lease
		}
		if sightings[i].Task.LeaseUntil <= now.Add(leases[i]+clockSlack) {
			continue
		}
		if longest < 0 {
			if longest, err = s.LongestLease(ctx, now); err != nil {
				return nil, err
			}
		}
		leases[i] = max(leases[i], longest)
	}
	return leases, nil
}

// leaseholder returns the worker of a running task if the task's lease is valid. Otherwise it returns "".
func leaseholder(s *tdf.Placement, now tdf.Time) string {
	if t := s.Task; t != nil && t.State == tdf.Running && t.LeaseUntil > now && t.Current().Claim != "" {
		return t.Current().Worker
	}
	return ""
}
