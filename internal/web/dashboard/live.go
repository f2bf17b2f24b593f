package dashboard

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/pool"
)

const eventStream = "text/event-stream"

// Times of live pages.
const (
	livePause = 2 * time.Second // between two looks at a page whose tasks change
	// between two looks at a page whose tasks do not change, because ages and workers change, too
	liveQuiet = 10 * time.Second
	liveBeat  = 15 * time.Second // between two signs that the connection works
)

// feeds are the live pages that browsers show. All browsers that show the same page with the same rights subscribe to
// one feed, which makes the page once for all of them.
type feeds struct {
	dashboard    *Dashboard
	pause, quiet time.Duration // livePause and liveQuiet, or less in tests

	mu  sync.Mutex
	all map[string]*feed
}

// A feed makes a page again and again, as long as a browser shows it.
type feed struct {
	subscribers map[chan *view]bool
	stop        context.CancelFunc
}

// subscribe lets a browser get the views of a page through a channel, which holds only the newest one.
func (f *feeds) subscribe(v *visit, p *page) (views chan *view, leave func()) {
	views = make(chan *view, 1)
	key := v.key()
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.all[key]
	if of == nil {
		// the feed may outlive the request that begins it
		account := pool.Fork(v.request.Context())
		ctx, stop := context.WithCancel(pool.With(context.WithoutCancel(v.request.Context()), account))
		of = &feed{map[chan *view]bool{}, stop}
		if f.all == nil {
			f.all = map[string]*feed{}
		}
		f.all[key] = of
		go f.keep(ctx, of, v, p)
	}
	of.subscribers[views] = true
	return views, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(of.subscribers, views)
		if len(of.subscribers) == 0 {
			of.stop()
			if f.all[key] == of {
				delete(f.all, key)
			}
		}
	}
}

// keep makes the view of a feed until ctx ends.
func (f *feeds) keep(ctx context.Context, of *feed, v *visit, p *page) {
	changed := make(chan struct{}, 1)
	leave := func() {}
	defer func() { leave() }()
	for watches := false; ; {
		f.publish(ctx, of, v, p)
		if !watches {
			if l, err := f.watch(ctx, p.about(v), changed); err == nil {
				leave, watches = l, true
			}
		}
		if !sleep(ctx, f.pause, nil) || !sleep(ctx, f.quiet-f.pause, changed) {
			return
		}
	}
}

func (f *feeds) watch(ctx context.Context, about Subject, changed chan<- struct{}) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, f.dashboard.Timeout)
	defer cancel()
	return f.dashboard.host.Watch(ctx, about, changed)
}

// publish makes the view of a feed, and sends it to the subscribers. After an error, the browsers keep the last view,
// and are told that it is old.
func (f *feeds) publish(ctx context.Context, of *feed, v *visit, p *page) {
	ctx, cancel := context.WithTimeout(ctx, f.dashboard.Timeout)
	defer cancel()
	made := &view{} // says that there is no new view
	_ = pool.Part(ctx, func(ctx context.Context) (kept int64, err error) {
		m, err := f.dashboard.view(ctx, v, p)
		if err == nil {
			made = m
		}
		return 0, err
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for views := range of.subscribers {
		select {
		case <-views:
		default:
		}
		views <- made
	}
}

// sleep waits for a time, or for a signal. It returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-signal:
	case <-timer.C:
	}
	return true
}

// live sends a browser the main part of a page whenever it has changed.
func (d *Dashboard) live(v *visit, p *page) error {
	if p.about == nil {
		return errNoPage
	}
	return d.host.Stream(v.request, eventStream, func(to Stream) error {
		// the browser sends the first one when it connects again
		position := cmp.Or(v.request.Header.Get("Last-Event-ID"), v.query.Get("at"))
		v.query.Del("at")
		v.request.URL.RawQuery = v.query.Encode() // so that all pages share the feed
		views, leave := d.feeds.subscribe(v, p)
		defer leave()
		s := sender{Stream: to, position: position, account: pool.Fork(v.request.Context())}
		defer s.account.End()
		defer s.follow(nil)
		return s.send(views)
	})
}

// A sender sends a browser what changes on a page.
type sender struct {
	Stream
	last     []byte        // the main part that the browser has
	account  *pool.Account // of last
	position string        // what it has of an output
	reader   *reader       // of the output on the page, or nil
	more     <-chan struct{}
	leave    func() // the transcript of the reader
}

func (s *sender) send(views <-chan *view) error {
	if err := s.Send("retry: 2000\n\n"); err != nil {
		return err
	}
	beat := time.NewTicker(liveBeat)
	defer beat.Stop()
	for {
		text := ": \n\n"
		var err error
		select {
		case <-s.Done():
			return nil
		case <-beat.C:
		case v := <-views:
			text, err = s.view(v)
		case <-s.more:
			text = s.output()
		}
		if err == nil {
			err = s.Send(text)
		}
		if err != nil {
			return err
		}
	}
}

// view returns the event for a view, and what is new in its output.
func (s *sender) view(v *view) (text string, err error) {
	if v.main == nil {
		return "event: old\ndata:\n\n", nil
	}
	text = "event: same\ndata:\n\n"
	if !bytes.Equal(v.main, s.last) {
		s.account.Return(int64(len(s.last)))
		err = s.account.Take(int64(len(v.main)))
		s.last, text = v.main, event("main", strings.Replace(string(v.main), string(outputMark), "", 1))
	}
	if s.reader == nil || s.reader.transcript != v.output {
		s.follow(v.output)
		text += s.output()
	}
	return text, err
}

// follow makes the sender follow another output, or none.
func (s *sender) follow(t *transcript) {
	if s.reader != nil {
		s.leave()
	}
	s.reader, s.more = nil, nil
	if t != nil {
		s.leave = t.enter()
		s.reader = t.reader(s.position)
	}
}

// output returns the event for what is new in the output, if anything is.
func (s *sender) output() string {
	if s.reader == nil {
		return ""
	}
	var text string
	if text, s.position, s.more = s.reader.next(); text == "" {
		return ""
	}
	return "id: " + s.position + "\n" + event("output", text)
}

func event(kind, text string) string {
	return "event: " + kind + "\ndata: " + strings.ReplaceAll(text, "\n", "\ndata: ") + "\n\n"
}
