package redisstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// withoutTime sets the time budget of the scripts below 0, so that each script stops as early as it can.
func withoutTime(t *testing.T) { withBudget(t, "-1") }

// withBudget sets the time budget of the scripts, in seconds.
func withBudget(t *testing.T, seconds string) {
	t.Helper()
	t.Setenv("TDF_TEST_BUDGET", seconds) // the scripts belong to the process, and so no other test runs meanwhile
	for _, script := range []*lua.Script{
		lua.Transact, lua.TransactOpening, lua.Open, lua.Move, lua.Claim, lua.Renew, lua.Link, lua.Unhold,
	} {
		source := script.Source()
		other := strings.Replace(source, "BUDGET = 0.003", "BUDGET = "+seconds, 1)
		expect.MustTrue(t, other != source, "the prelude has another budget")
		script.Load(func() string { return other })
		t.Cleanup(func() { script.Load(script.Source) })
	}
}

// If a script's time budget is used up, the Store continues the work in more calls. No part of the work is missing, and
// no part is done twice.
func TestCallsThatTakeTooLongContinue(t *testing.T) {
	s := connect(t, redistest.Shared(t), redistest.Namespace(t)) // a real Redis, because the embedded Redis runs only unchanged scripts
	withoutTime(t)
	const tasks = 100
	var definitions []task.Properties
	for i := range tasks {
		definitions = append(definitions, define(fmt.Sprint(i)))
	}
	mustOpen(t, s, definitions...)
	first := expect.Result(s.Claim(t.Context(), redisstate.ClaimParams{Worker: "w", Most: tasks, Lease: 3600})).Value(t)
	expect.MustTrue(t, len(first.Claims) < tasks, "claimed", len(first.Claims), "more", first.More)
	expect.MustTrue(t, first.More, "claimed", len(first.Claims), "more", first.More)
	claims := append(first.Claims, mustClaim(t, s, tasks)...)
	expect.MustLen(t, claims, tasks)
	expect.MustEqual(t, claims[tasks-1].Task.ID, tasks)
	renewals, moves := make([]redisstate.LeaseRenewal, tasks), make([]rules.Move, tasks)
	for i, c := range claims {
		renewals[i] = redisstate.LeaseRenewal{ID: c.Task.ID, Claim: c.ID}
		moves[i], _ = rules.Execute(c.Task, c.ID, rules.Result{Exit: "0", Output: fmt.Sprint(i)})
	}
	renewals[60].Claim = "another"
	renewed, err := s.Renew(t.Context(), 60, renewals...)
	for i, lost := range renewed.Lost {
		expect.True(t, (lost != nil) == (i == 60), "renewal", i, lost)
	}
	expect.NoError(t, err)
	expect.MustLen(t, renewed.Lost, tasks)
	outcomes := expect.Result(s.Execute(t.Context(), "w", moves...)).Value(t)
	expect.MustLen(t, outcomes, tasks)
	for i, o := range outcomes {
		expect.NoError(t, o.Err, "result", i)
		expect.Equal(t, read(t, s, int64(i+1)).LastOutput(), fmt.Sprint(i), "result", i)
	}
	mustBeSound(t, s)
}

// The time budget of a script ends while the script runs, also in versions of Redis that stop the clock of TIME meanwhile,
// and in those that have no other clock.
func TestScriptsHaveAClock(t *testing.T) {
	const loop = `
local rounds = 0
repeat
  rounds = rounds + 1
  for _ = 1, 1000 do redis.call('TIME') end
until spent(1) or rounds == 1000
return rounds
`
	r := newStore(t).Conn.Redis
	source := strings.TrimSuffix(lua.Learn.Source(), string(expect.Result(lua.Files.ReadFile("learn.lua")).Value(t))) + loop
	rounds := expect.Result(r.Eval(t.Context(), source, nil).Int()).Value(t)
	expect.Compare(t, rounds, "<", 1000)
	counted := strings.NewReplacer("0x70200", "0", "rawget(_G, 'os')", "nil").Replace(source)
	expect.Result(r.Eval(t.Context(), counted, nil).Int()).Is(t, 4, "without a clock")
}

// If a claim takes too long, it stops in time, but only after it has claimed some tasks. So it does with many priorities, and
// with many requirements.
func TestSlowClaimsStop(t *testing.T) {
	const tasks = 100
	for name, tune := range map[string]func(d *task.Properties, n int){
		"plain":        func(*task.Properties, int) {},
		"priorities":   func(d *task.Properties, n int) { d.Priority = -n },
		"requirements": func(d *task.Properties, n int) { d.Tags = []string{fmt.Sprint("t", n)} },
	} {
		t.Run(name, func(t *testing.T) {
			s := connect(t, redistest.Shared(t), redistest.Namespace(t))
			withoutTime(t)
			offer := class.Offer{Programs: true}
			var all []task.Properties
			for i := range tasks {
				d := define("x")
				tune(&d, i)
				offer.Tags = append(offer.Tags, d.Tags...)
				all = append(all, d)
			}
			mustOpen(t, s, all...)
			for claimed := 0; claimed < tasks; {
				c := claimFor(t, s, tasks, offer)
				n := len(c.Claims)
				expect.MustTrue(t, n != 0, n, claimed)
				expect.MustTrue(t, n <= 32, n, claimed)
				claimed += len(c.Claims)
			}
			mustBeSound(t, s)
		})
	}
}

// If a script has used up its time budget, it stops before it has carried out all units.
func TestACallThatTakesTooLongIsCut(t *testing.T) {
	s := connect(t, redistest.Start(t).Addr, redistest.Namespace(t))
	var units []redisstate.Unit
	for i := range 100 {
		units = append(units, redisstate.Unit{Open: []task.Properties{define(fmt.Sprint(i))}})
	}
	withoutTime(t)
	done := expect.Result(redisstate.Transact(s, t.Context(), "m", units, true)).Value(t)
	expect.MustTrue(t, len(done) != 0, len(done), "units of", len(units), "were done")
	expect.MustTrue(t, len(done) <= 32, len(done), "units of", len(units), "were done")
	expect.Equal(t, int(s.Conn.Redis.ZCard(t.Context(), s.Keys.List(task.Open)).Val()), len(done), "tasks, but … units")
}

// If a round reports many updates at once, the Store sends them in several calls. Each line arrives once.
func TestManyUpdatesComeInOrder(t *testing.T) {
	s := newStore(t)
	mustOpen(t, s, define("a"), define("b"))
	claims := mustClaim(t, s, 2)
	lines := make([]string, 2*redisstate.MaxUpdatesPerCall+7)
	for i := range lines {
		lines[i] = fmt.Sprint(i)
	}
	for range 2 {
		renewed, err := s.Renew(t.Context(), 60,
			redisstate.LeaseRenewal{ID: 1, Claim: claims[0].ID, Report: redisstate.LiveReport{Updates: lines, FirstUpdate: 1}},
			redisstate.LeaseRenewal{ID: 2, Claim: "another", Report: redisstate.LiveReport{Updates: lines, FirstUpdate: 1}})
		expect.NoError(t, err)
		expect.NoError(t, renewed.Lost[0])
		expect.MustTrue(t, renewed.Lost[1] != nil, renewed.Lost, err)
	}
	got := s.Conn.Redis.XRange(t.Context(), s.Keys.UpdatesPrefix()+"1", "-", "+").Val()
	expect.MustLen(t, got, len(lines), "updates of")
	for i, u := range got {
		expect.MustTrue(t, u.Values["line"] == lines[i], "update", i, "is", u.Values["line"])
	}
}
