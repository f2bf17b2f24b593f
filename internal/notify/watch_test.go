package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate/notices"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// What had happened before the first walk gets no notice.
func TestThePastIsNoNews(t *testing.T) {
	s := newScene(t)
	s.fail(s.open("old", 30)...)
	expect.Result(s.store.Presence.WorkerHeartbeat(t.Context(), presence.WorkerInfo{Name: "w", Lease: 60, State: "working"})).OK(t)
	s.pass(time.Hour)
	s.tells()
	s.tells()
	s.fail(s.open("new", 1)...)
	s.tells() // the campaign is not closed, so only a second look shows that it has ended
	s.tells("campaign_ended: The campaign new has ended: expired 1.")
	s.tells()
}

// A campaign ends as often as its tasks do.
func TestCampaignEnds(t *testing.T) {
	s := newScene(t)
	s.tells()
	ids := s.open("c", 3)
	s.fail(ids[:2]...)
	s.tells()
	s.tells()
	s.fail(ids[2])
	expect.NoError(t, s.manager.CloseGroup(t.Context(), "c"))
	s.tells("campaign_ended: The campaign c has ended: expired 3.")
	s.tells()
	expect.Result(s.manager.Retry(t.Context(), manager.Changes{}, ref(ids[0]))).OK(t)
	s.tells()
	s.fail(ids[0])
	s.tells("campaign_ended")
	for _, id := range ids[1:] { // fewer tasks are no news
		expect.Result(s.manager.Remove(t.Context(), ref(id))).OK(t)
	}
	s.tells()
	s.tells()
	expect.Result(s.manager.Remove(t.Context(), ref(ids[0]))).OK(t)
	s.tells()
	marks, _, err := s.store.Notices.MarksPage(t.Context(), 0)
	expect.NoError(t, err)
	for mark := range marks {
		expect.True(t, !strings.HasSuffix(mark, " c"), mark, "is left")
	}
}

// A campaign gets one notice when too many of its tasks fail, and another one only if the share has fallen to half of that in between.
func TestFailures(t *testing.T) {
	s := newScene(t)
	s.tells()
	ids := s.open("c", 40)
	s.fail(ids[:19]...)
	s.tells() // too few
	s.fail(ids[19])
	s.tells("failures_above: 20 of 20 finished tasks of the campaign c have failed.")
	s.fail(ids[20])
	s.tells()
	counts := task.Counts{task.Failed: 3, task.Succeeded: 22}
	expect.Equal(t, failing(counts, "1"), "1", "12 percent, after a notice")
	expect.Equal(t, failing(counts, ""), "", "12 percent, without a notice")
	counts[task.Succeeded] = 30
	expect.Equal(t, failing(counts, "1"), "", "9 percent")
}

// Each start of a worker that is lost gets one notice. A worker that signs off is not lost.
func TestWorkerIsLost(t *testing.T) {
	s := newScene(t)
	s.tells()
	beat := func(boot, state string) {
		t.Helper()
		testspace.Client(t, s.config).Del(t.Context(), s.store.Keys.Worker("w")) // frees the name at once
		expect.Result(s.store.Presence.WorkerHeartbeat(t.Context(), presence.WorkerInfo{Name: "w", Boot: boot, Lease: 60, State: state})).OK(t)
		s.pass(time.Hour)
	}
	beat("a", "working")
	s.tells("worker_lost: The worker w is lost")
	s.tells()
	beat("b", "working")
	s.tells("worker_lost: The worker w is lost")
	beat("c", "gone")
	s.tells()
	s.tells()
}

// One notice tells of all workers of a token that are lost, and the next one comes ten minutes later.
func TestManyWorkersOfAToken(t *testing.T) {
	s := newScene(t)
	s.tells()
	beat := func(name string) {
		t.Helper()
		expect.Result(s.store.Presence.WorkerHeartbeat(t.Context(), presence.WorkerInfo{Name: name, Boot: name, Lease: 1, State: "working"})).OK(t)
	}
	for i := range 100 {
		beat(fmt.Sprintf("pool/w%02d", i))
	}
	beat("own")
	s.pass(time.Minute)
	s.tells("worker_lost: 100 workers of the token pool are lost. The last heartbeat of pool/w", "worker_lost: The worker own is lost")
	beat("pool/next")
	s.pass(5 * time.Minute)
	s.tells()
	s.pass(5 * time.Minute)
	s.tells("worker_lost: The worker pool/next is lost")
	s.tells()
}

// Several servers tell of an event once.
func TestTwoServers(t *testing.T) {
	s := newScene(t)
	other := s.another()
	s.walk(other)
	s.walk(s.notifier)
	s.fail(s.open("c", 2)...)
	expect.NoError(t, s.manager.CloseGroup(t.Context(), "c"))
	s.walk(other)
	s.walk(s.notifier)
	expect.NoError(t, other.deliver(t.Context()))
	expect.NoError(t, s.notifier.deliver(t.Context()))
	expect.Equal(t, len(s.channel.taken()), 1)
	expect.Equal(t, len(expect.Result(notice.List(t.Context(), s.store, notices.Max)).Value(t)), 1)
}

// A walk has parts, so that many campaigns do not delay other work, and each part goes on where the last one has ended.
func TestManyCampaigns(t *testing.T) {
	s := newScene(t)
	s.tells()
	n := groupsAtOnce + 5
	for i := range n {
		s.fail(s.open(fmt.Sprintf("c%03d", i), 1)...)
		expect.NoError(t, s.manager.CloseGroup(t.Context(), fmt.Sprintf("c%03d", i)))
	}
	expect.True(t, !expect.Result(s.notifier.watch.look(t.Context())).Value(t), "one part is all")
	s.walk(s.notifier)
	expect.Equal(t, len(expect.Result(notice.List(t.Context(), s.store, notices.Max)).Value(t)), n)
	for done := 0; done < n; done += atOnce {
		expect.NoError(t, s.notifier.deliver(t.Context()))
		expect.Equal(t, len(s.channel.taken()), min(atOnce, n-done))
	}
}

// An owner causes a bounded number of notices about campaigns, and other owners get theirs as before.
func TestManyCampaignsOfAnOwner(t *testing.T) {
	s := newScene(t)
	s.tells()
	end := func(name string) {
		t.Helper()
		s.fail(s.open(name, 1)...)
		expect.NoError(t, s.manager.CloseGroup(t.Context(), name))
	}
	events := func() int {
		t.Helper()
		s.walk(s.notifier)
		return len(expect.Result(notice.List(t.Context(), s.store, notices.Max)).Value(t))
	}
	for i := range 50 {
		end(fmt.Sprintf("eve/%02d", i))
	}
	expect.Equal(t, events(), noticesEach+1)
	all := expect.Result(notice.List(t.Context(), s.store, 1)).Value(t)
	expect.Contains(t, all[0].Text, "39 more such events of campaigns of eve")
	end("eve/late")
	end("night")
	end("bob/1")
	expect.Equal(t, events(), noticesEach+3)
	s.pass(10 * time.Minute)
	expect.Equal(t, events(), noticesEach+4)
	expect.Equal(t, events(), noticesEach+4)
}

// Redis keeps a bounded number of notices. Those that it drops are not delivered.
func TestNoticesAreBounded(t *testing.T) {
	s := newScene(t)
	for i := range notices.Max + 3 {
		mark := fmt.Sprint("m", i)
		sighting := notices.Sighting{Mark: mark, After: "1", Notice: notice.Notice{Text: mark}.Stored()}
		for range 2 { // as if the answer were lost
			expect.Result(s.store.Notices.See(t.Context(), sighting)).OK(t)
		}
	}
	all := expect.Result(notice.List(t.Context(), s.store, notices.Max)).Value(t)
	expect.Equal(t, len(all), notices.Max)
	expect.Equal(t, all[len(all)-1].Text, "m3", "the oldest")
	expect.Equal(t, all[0].Text, fmt.Sprint("m", notices.Max+2), "the newest")
	expect.Equal(t, testspace.Client(t, s.config).ZCard(t.Context(), s.store.Keys.NoticesDue()).Val(), int64(notices.Max))
}
