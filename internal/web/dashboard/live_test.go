package dashboard

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A quietHost is a host without tasks.
type quietHost struct{ Host }

func (quietHost) Watch(context.Context, Subject, chan<- struct{}) (func(), error) {
	return func() {}, nil
}

// Two hundred browsers that show a page share one room, which reads Redis for all of them, and which ends with the last one. Other rights and other addresses
// have feeds of their own.
func TestRooms(t *testing.T) {
	loads := atomic.Int64{}
	p := &page{name: "doctor", about: everything, load: func(context.Context, *visit) (any, error) {
		loads.Add(1)
		return []admin.Diagnosis{{Fact: admin.Fact{Text: "found"}}}, nil
	}}
	d := &Dashboard{Options: Options{Timeout: time.Hour}, host: quietHost{}}
	d.feeds.dashboard = d // without pauses
	visitOf := func(path string, role access.Role, owner string) *visit {
		r := httptest.NewRequest("GET", path, nil)
		return &visit{dashboard: d, request: r, query: r.URL.Query(), rights: role.Rights(), owner: owner, user: access.Token{Name: "n", Role: role}}
	}
	feeds := func() int {
		d.feeds.mu.Lock()
		defer d.feeds.mu.Unlock()
		return len(d.feeds.all)
	}
	var leaves []func()
	for range 200 {
		views, leave := d.feeds.subscribe(visitOf("/ui/doctor", access.Viewer, ""), p)
		leaves = append(leaves, leave)
		defer func() { expect.Contains(t, string((<-views).main), "found") }()
	}
	expect.Equal(t, feeds(), 1)
	for _, other := range []*visit{visitOf("/ui/doctor", access.Operator, ""), visitOf("/ui/doctor?x=1", access.Viewer, ""), visitOf("/ui/doctor", access.Submitter, "a"), visitOf("/ui/doctor", access.Submitter, "b")} {
		_, leave := d.feeds.subscribe(other, p)
		leaves = append(leaves, leave)
	}
	expect.Equal(t, feeds(), 5)
	expect.Eventually(t, "each feed has made its page", func() bool { return loads.Load() >= 5 })
	expect.Eventually(t, "the views have arrived", func() bool {
		d.feeds.mu.Lock()
		defer d.feeds.mu.Unlock()
		for _, of := range d.feeds.all {
			for views := range of.subscribers {
				if len(views) == 0 {
					return false
				}
			}
		}
		return true
	})
	for _, leave := range leaves {
		leave()
	}
	expect.Equal(t, feeds(), 0)
}
