package notify

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.M{M: m}.Run())
}

// A scene is a namespace with a manager, and a Notifier whose steps the test makes.
type scene struct {
	*testing.T
	redis    *embedded.Redis
	now      time.Time // by Redis's clock, which the test moves
	manager  *manager.Manager
	store    *redisstate.Store
	config   config.Manager
	channel  *fake
	notifier *Notifier
}

func newScene(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	r := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
	t.Cleanup(r.Close)
	s := &scene{T: t, redis: r, now: time.Now(), config: testspace.Config(t, r.Addr()), channel: &fake{}}
	s.pass(0)
	s.manager, s.store = testspace.Manager(t, s.config), testspace.Connect(t, s.config)
	s.notifier = s.another()
	return s
}

// pass lets time pass.
func (s *scene) pass(d time.Duration) {
	s.now = s.now.Add(d)
	s.redis.SetTime(s.now)
}

// another returns a Notifier of another server.
func (s *scene) another() *Notifier {
	return &Notifier{watch: watch{store: s.store}, channels: []channel{s.channel}, turn: time.Hour, log: testspace.Silent}
}

// walk makes a Notifier look at everything once.
func (s *scene) walk(n *Notifier) {
	s.Helper()
	for end := false; !end; {
		end = expect.Result(n.watch.look(s.Context())).Value(s)
	}
}

// tells checks which notices a walk and a delivery bring.
func (s *scene) tells(want ...string) {
	s.Helper()
	s.walk(s.notifier)
	expect.NoError(s, s.notifier.deliver(s.Context()))
	got := s.channel.taken()
	expect.MustEqual(s, len(got), len(want), got)
	for i := range want {
		expect.Contains(s, got[i], want[i])
	}
}

func (s *scene) open(group string, n int) []int64 {
	s.Helper()
	d := testspace.Define("p", "", "")
	d.Group = group
	return expect.Result(testspace.IDs(s.manager.Open(s.Context(), slices.Repeat([]manager.Definition{d}, n)...))).Value(s)
}

// fail ends open tasks.
func (s *scene) fail(ids ...int64) {
	s.Helper()
	for _, id := range ids {
		expect.Result(s.manager.Cancel(s.Context(), ref(id))).OK(s)
	}
}

// A fake is a channel that records notices. It fails as often as the test wants.
type fake struct {
	mu    sync.Mutex
	got   []notice.Notice
	fails int
}

func (*fake) name() string { return "fake" }

func (f *fake) send(_ context.Context, n *notice.Notice) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails > 0 {
		f.fails--
		return errors.New("no route")
	}
	f.got = append(f.got, *n)
	return nil
}

// taken returns the texts of the notices since the last call, sorted.
func (f *fake) taken() (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.got {
		texts = append(texts, string(n.Kind)+": "+strings.TrimSpace(n.Text))
	}
	f.got = nil
	slices.Sort(texts)
	return texts
}

func ref(id int64) manager.Ref { return manager.Ref{ID: id, Round: manager.AnyRound} }
