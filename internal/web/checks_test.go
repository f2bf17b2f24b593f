package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// Streams with the same key share a check. When it fails, all of them end, and a later stream has a check of its own.
func TestStreamsShareACheck(t *testing.T) {
	t.Parallel()
	var c checks
	var asked, ended atomic.Int64
	answers := make(chan bool)
	holds := func(ctx context.Context) bool {
		asked.Add(1)
		select {
		case answer := <-answers:
			return answer
		case <-ctx.Done():
			return true
		}
	}
	end := func() { ended.Add(1) }
	var leave []func()
	for range 200 {
		leave = append(leave, c.enter("session", 0, holds, end))
	}
	for range 3 {
		answers <- true
	}
	expect.Equal(t, ended.Load(), 0)
	expect.Compare(t, asked.Load(), "<=", 4)
	leave[0]()
	answers <- false
	expect.Eventually(t, "the others end", func() bool { return ended.Load() == 199 })
	late := c.enter("session", 0, holds, end)
	answers <- true
	expect.Equal(t, len(c.all), 1, "checks")
	for _, l := range append(leave[1:], late) {
		l()
	}
	expect.Len(t, c.all, 0)
	expect.Equal(t, ended.Load(), 199)
}

// Many goroutines enter and leave while checks fail: each stream that stays ends, and no check is left.
func TestChecksWithManyStreams(t *testing.T) {
	t.Parallel()
	var c checks
	var asked atomic.Int64
	holds := func(context.Context) bool { return asked.Add(1)%3 != 0 }
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ended := make(chan bool)
			leave := c.enter(i%3, 0, holds, sync.OnceFunc(func() { close(ended) }))
			if i%2 == 0 {
				<-ended
			}
			leave()
		})
	}
	all.Wait()
	expect.Equal(t, len(c.all), 0, "checks that are left")
}

// pages opens streams of a page with one session, and returns what ends them, and a channel that gets a value for each stream that has ended.
func (s *site) pages(server *httptest.Server, session string, n int) (leave func(), ended chan bool) {
	ctx, stop := context.WithCancel(s.Context())
	ended = make(chan bool, n)
	for range n {
		r := expect.Result(http.NewRequestWithContext(ctx, "GET", server.URL+"/ui/workers", nil)).Value(s)
		r.Header.Set("Accept", eventStream)
		r.AddCookie(&http.Cookie{Name: "tdf_" + r.URL.Port(), Value: session})
		got := expect.Result(http.DefaultClient.Do(r)).Value(s)
		expect.Equal(s, got.StatusCode, 200, "status of the page")
		go func() {
			defer got.Body.Close()
			buffer := make([]byte, 64<<10)
			for {
				if _, err := got.Body.Read(buffer); err != nil {
					ended <- true
					return
				}
			}
		}()
	}
	return stop, ended
}

// session opens a session of a role's token.
func (s *site) session(role access.Role) string {
	token := expect.Result(s.admin.Authenticate(s.Context(), s.tokens[role])).Value(s)
	return expect.Result(s.admin.OpenSession(s.Context(), token)).Value(s)
}

// The streams of a session's pages ask Redis together, once at each pause, and all of them end when the token is revoked.
func TestPagesOfARevokedToken(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Shared(t), Options{})
	s.checkPause = testspace.Soon
	server := s.serve()
	const pages = 50
	leave, ended := s.pages(server, s.session(access.Viewer), pages)
	defer leave()
	leaveOther, endedOther := s.pages(server, s.session(access.Operator), 1)
	defer leaveOther()
	s.checks.mu.Lock()
	n := len(s.checks.all)
	s.checks.mu.Unlock()
	expect.Equal(t, n, 2, fmt.Sprint("checks of ", pages+1, " streams"))
	expect.NoError(t, s.admin.RemoveToken(t.Context(), "viewer"))
	for range pages {
		<-ended
	}
	expect.Equal(t, len(endedOther), 0, "ended streams of the other token")
}
