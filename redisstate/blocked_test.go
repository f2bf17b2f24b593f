package redisstate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/conntest"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// Each distinct request is a requirement. A worker finds a task behind very many requirements whose tasks do not fit in what
// it has free, and its claims end.
func TestTaskBehindManyBlockedRequests(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		var all []task.Properties
		n := 800
		if conntest.OnEmbedded(t) { // where a claim compares fewer requests
			n = 300
		}
		for i := range n {
			all = append(all, asking(t, fmt.Sprint("memory=2G licence=", i+1)))
		}
		for page := range slices.Chunk(append(all, asking(t, "memory=1G")), 1000) {
			mustOpen(t, s, page...)
		}
		last := time.Now()
		free, whole := capacities(t, "cpus=8 licence=3000 memory=1G", 8), capacities(t, "cpus=8 licence=3000 memory=8G", 8)
		var got []string
		more := true
		for n := 0; more; n++ {
			expect.MustTrue(t, n < 10, n, "claims got", got)
			now := time.Now()
			redistest.Age(t, s.Conn.Redis, s.Keys.Key(""), -now.Sub(last).Seconds()) // the worker is kept for none
			last = now
			c := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60, Free: free, Whole: whole})).Value(t)
			got, more = append(got, requests(c)...), c.More || len(c.Claims) > 0
		}
		expect.Equal(t, got, []string{"cpus=1 memory=1G"})
	})
}

// A kept worker leaves a wake token for the tasks that it does not claim.
func TestKeptWorkerWakesOthers(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		mustOpen(t, s, asking(t, "cpus=8"))
		small(t, s, 3)
		keptWorker(t, s, "a", "cpus=2")
		minuteLater(t, s)
		list := s.Keys.WakeFor("resources=cpus:10000")
		expect.NoError(t, s.Conn.Redis.Del(t.Context(), list).Err())
		expect.True(t, keptWorker(t, s, "a", "cpus=2").Kept)
		expect.Equal(t, expect.Result(s.Conn.Redis.LLen(t.Context(), list).Result()).Value(t), 1)
	})
}

// If the answer to a claim is lost, the repeated call gets the same tasks with their requests, however much is free now.
func TestRepeatedClaimWithResources(t *testing.T) {
	onEach(t, func(t *testing.T, s *redisstate.Store) {
		for _, request := range []string{"cpus=2", "gpus=1 or cpus=4", "cpus=2"} {
			mustOpen(t, s, asking(t, request))
		}
		claim := func(free string) redisstate.ClaimResult {
			call := expect.Result(s.ClaimCall(t.Context(), "session", 1)).Value(t)
			r := redisstate.ClaimParams{Worker: "w", Most: 5, Lease: 60, Call: call, IDs: "c", Free: capacities(t, free, 8), Whole: capacities(t, "cpus=6", 8)}
			return expect.Result(s.Claim(t.Context(), r)).Value(t)
		}
		first, again := claim("cpus=6"), claim("cpus=1")
		expect.Equal(t, requests(first), []string{"cpus=2", "cpus=1 gpus=1 or cpus=4"})
		expect.Equal(t, requests(again), requests(first))
		expect.Equal(t, again.Claims[0].ID, first.Claims[0].ID)
	})
}
