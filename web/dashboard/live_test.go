package dashboard

import (
	"context"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A quietHost is a host without tasks.
type quietHost struct{ Host }

func (quietHost) Watch(context.Context, Subject, chan<- struct{}) (func(), error) {
	return func() {}, nil
}

// Two hundred browsers that show a page share one room, which reads Redis for all of them, and which ends with the last one. Other rights and other addresses
// have rooms of their own.
func TestRooms(t *testing.T) {
	loads := atomic.Int64{}
	p := &page{name: "doctor", about: everything, load: func(context.Context, *visit) (any, error) {
		loads.Add(1)
		return []admin.Diagnosis{{Fact: admin.Fact{Text: "found"}}}, nil
	}}
	d := &Dashboard{Options: Options{Timeout: time.Hour}, host: quietHost{}}
	d.rooms.dashboard = d // without pauses
	visitOf := func(path string, role access.Role, owner string) *visit {
		r := httptest.NewRequest("GET", path, nil)
		return &visit{dashboard: d, request: r, query: r.URL.Query(), rights: role.Rights(), owner: owner, user: access.Token{Name: "n", Role: role}}
	}
	rooms := func() int {
		d.rooms.mu.Lock()
		defer d.rooms.mu.Unlock()
		return len(d.rooms.all)
	}
	var leaves []func()
	for range 200 {
		views, leave := d.rooms.enter(visitOf("/ui/doctor", access.Viewer, ""), p)
		leaves = append(leaves, leave)
		defer func() { expect.Contains(t, string((<-views).main), "found") }()
	}
	expect.Equal(t, rooms(), 1)
	for _, other := range []*visit{visitOf("/ui/doctor", access.Operator, ""), visitOf("/ui/doctor?x=1", access.Viewer, ""), visitOf("/ui/doctor", access.Submitter, "a"), visitOf("/ui/doctor", access.Submitter, "b")} {
		_, leave := d.rooms.enter(other, p)
		leaves = append(leaves, leave)
	}
	expect.Equal(t, rooms(), 5)
	expect.Eventually(t, "each room has made its page", func() bool { return loads.Load() >= 5 })
	expect.Eventually(t, "the views have arrived", func() bool {
		d.rooms.mu.Lock()
		defer d.rooms.mu.Unlock()
		for _, of := range d.rooms.all {
			for guest := range of.guests {
				if len(guest) == 0 {
					return false
				}
			}
		}
		return true
	})
	for _, leave := range leaves {
		leave()
	}
	expect.Equal(t, rooms(), 0)
}
