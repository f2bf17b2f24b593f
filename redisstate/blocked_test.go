package redisstate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// Each distinct request is a partition. A worker finds a task behind very many partitions whose tasks do not fit in what
// it has free, and its claims end.
func TestTaskBehindManyBlockedRequests(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		var all []tdf.Properties
		for i := range 2500 {
			all = append(all, asking(t, fmt.Sprint("memory=2G licence=", i+1)))
		}
		for page := range slices.Chunk(append(all, asking(t, "memory=1G")), 1000) {
			mustOpen(t, s, page...)
		}
		free, whole := capacities(t, "cpus=8 licence=3000 memory=1G", 8), capacities(t, "cpus=8 licence=3000 memory=8G", 8)
		var got []string
		more := true
		for n := 0; more; n++ {
			expect.MustTrue(t, n < 10, n, "claims got", got)
			c := expect.Result(s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 5, Lease: 60, Free: free, Whole: whole})).Value(t)
			got, more = append(got, requests(c)...), c.More || len(c.Claims) > 0
		}
		expect.Equal(t, got, []string{"cpus=1 memory=1G"})
	})
}

// A task that comes before the noted one does not begin the time anew: otherwise, ever new tasks of the same request
// and a higher priority would keep all of them waiting.
func TestNewFirstTaskKeepsTheTime(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, asking(t, "cpus=8"))
		small(t, s, 3)
		expect.True(t, !keptWorker(t, s, "a", "cpus=2").Kept)
		minuteLater(t, s)
		urgent := asking(t, "cpus=8")
		urgent.Priority = 1
		first := mustOpen(t, s, urgent)
		expect.True(t, keptWorker(t, s, "a", "cpus=2").Kept)
		expect.Equal(t, claimedIDs(keptWorker(t, s, "b", "cpus=8")), first)
		expect.True(t, !keptWorker(t, s, "a", "cpus=2").Kept, "a task has started, so the next one waits for its minute")
	})
}

// A kept worker leaves a wake token for the tasks that it does not claim.
func TestKeptWorkerWakesOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		mustOpen(t, s, asking(t, "cpus=8"))
		small(t, s, 3)
		keptWorker(t, s, "a", "cpus=2")
		minuteLater(t, s)
		list := s.Keys.WakePartition("resources=cpus:10000")
		expect.NoError(t, s.Redis.Del(t.Context(), list).Err())
		expect.True(t, keptWorker(t, s, "a", "cpus=2").Kept)
		expect.Equal(t, expect.Result(s.Redis.LLen(t.Context(), list).Result()).Value(t), 1)
	})
}

// Very many requests, and workers that are gone, leave a bounded number of fields.
func TestReservedIsBounded(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for i := range 600 {
			expect.NoError(t, s.Redis.HSet(t.Context(), s.Keys.Reserved(), fmt.Sprintf("resources=cpus:%d", i+1), "0 1 1 0 ",
				fmt.Sprint("@w", i), "resources=cpus:80000").Err())
		}
		for i := range 20 {
			d := asking(t, fmt.Sprint("cpus=8 licence=", i+1))
			mustOpen(t, s, d)
			free, whole := capacities(t, "cpus=2 licence=50", 8), capacities(t, "cpus=8 licence=50", 8)
			_, err := s.Claim(t.Context(), ClaimParams{Worker: "w", Most: 1, Lease: 60, Free: free, Whole: whole})
			expect.NoError(t, err)
			claimWith(t, s, 1, whole)
		}
		n := expect.Result(s.Redis.HLen(t.Context(), s.Keys.Reserved()).Result()).Value(t)
		expect.Compare(t, n, "<", 1170, "20 new fields have removed about 80 of 1,200")
		expect.Compare(t, n, ">=", 1120)
	})
}

// If the answer to a claim is lost, the repeated call gets the same tasks with their requests, however much is free now.
func TestRepeatedClaimWithResources(t *testing.T) {
	onEach(t, func(t *testing.T, s *Store) {
		for _, request := range []string{"cpus=2", "gpus=1 or cpus=4", "cpus=2"} {
			mustOpen(t, s, asking(t, request))
		}
		claim := func(free string) ClaimResult {
			call := expect.Result(s.ClaimCall(t.Context(), "session", 1)).Value(t)
			r := ClaimParams{Worker: "w", Most: 5, Lease: 60, Call: call, IDs: "c", Free: capacities(t, free, 8)}
			return expect.Result(s.Claim(t.Context(), r)).Value(t)
		}
		first, again := claim("cpus=6"), claim("cpus=1")
		expect.Equal(t, requests(first), []string{"cpus=2", "cpus=1 gpus=1 or cpus=4"})
		expect.Equal(t, requests(again), requests(first))
		expect.Equal(t, again.Claims[0].ID, first.Claims[0].ID)
	})
}
