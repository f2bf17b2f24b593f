package notify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/notices"
)

const (
	lookPause = 5 * time.Second // between two walks, and between two looks for notices that are due
	walkPause = time.Second     // between two parts of a walk

	turnTime   = 10 * time.Second
	tryTime    = 30 * time.Second  // for an attempt with all channels
	lease      = task.Seconds(120) // longer than any attempt
	atOnce     = 20                // notices that are delivered between two looks
	mostTries  = 30                // about a day
	firstRetry = 10 * time.Second
	lastRetry  = time.Hour
)

// A channel takes notices to people.
type channel interface {
	name() string
	send(ctx context.Context, n *notice.Notice) error
}

// A Notifier looks for events, and delivers notices.
type Notifier struct {
	watch    watch
	channels []channel
	turn     time.Duration // of deliveries, between two parts of the walk
	log      *slog.Logger
}

// New returns a Notifier. Without a webhook and mail addresses, it does nothing. New fails if a file with a secret
// cannot be read; the error is then a *[config.Error] without a Source.
func New(cfg config.Notify, namespace string, s *redisstate.Store, log *slog.Logger) (*Notifier, error) {
	n := &Notifier{watch: watch{store: s}, turn: turnTime, log: log}
	if cfg.Webhook != "" {
		hook, err := newWebhook(cfg, namespace)
		if err != nil {
			return nil, err
		}
		n.channels = append(n.channels, hook)
	}
	if len(cfg.MailTo) > 0 {
		mail, err := newMail(cfg, namespace)
		if err != nil {
			return nil, err
		}
		n.channels = append(n.channels, mail)
	}
	return n, nil
}

// Run works until ctx ends. After an error of Redis, it goes on.
func (n *Notifier) Run(ctx context.Context) error {
	if len(n.channels) == 0 {
		<-ctx.Done()
	}
	for ctx.Err() == nil {
		pause, err := n.runOnce(ctx)
		if err != nil && ctx.Err() == nil {
			n.log.Error("notices wait for Redis", "error", err)
		}
		conn.Sleep(ctx, pause)
	}
	return nil
}

// runOnce finds notices and delivers those that are due. It returns the pause until the next call.
func (n *Notifier) runOnce(ctx context.Context) (time.Duration, error) {
	end, err := n.watch.look(ctx)
	if err != nil {
		return lookPause, err
	}
	if err := n.deliver(ctx); err != nil || end {
		return lookPause, err
	}
	return walkPause, nil
}

// deliver delivers some of the notices that are due. It ends soon after the time of a turn, so that receivers that do
// not answer do not keep the Notifier from its walk.
func (n *Notifier) deliver(ctx context.Context) error {
	begun := time.Now()
	var tried *notices.Stored
	again := task.Seconds(task.Never)
	for i := 0; i < atOnce && (i == 0 || time.Since(begun) < n.turn); i++ {
		next, err := n.watch.store.Notices.NextNotice(ctx, tried, again, lease)
		if err != nil || next == nil {
			return err
		}
		tried, again = n.try(ctx, next)
	}
	_, err := n.watch.store.Notices.NextNotice(ctx, tried, again, 0)
	return err
}

// try delivers a notice by each channel that has not taken it yet. It returns the notice as it is then, and after which
// time it is due again.
func (n *Notifier) try(ctx context.Context, stored *notices.Stored) (tried *notices.Stored, again task.Seconds) {
	x, err := notice.Read(*stored)
	if err != nil { // written by another program
		n.log.Error("a notice cannot be read", "error", err)
		return stored, task.Seconds(task.Never)
	}
	ctx, cancel := context.WithTimeout(ctx, tryTime)
	defer cancel()
	x.Tries, x.Error = x.Tries+1, ""
	for _, c := range n.channels {
		if !x.Delivered[c.name()].IsZero() {
			continue
		}
		if err := c.send(ctx, &x); err != nil {
			x.Error = fmt.Sprintf("%s: %.500v", c.name(), err)
			n.log.Warn("a notice is not delivered", "notice", x.ID, "channel", c.name(), "tries", x.Tries, "error", err)
			continue
		}
		if x.Delivered == nil {
			x.Delivered = map[string]time.Time{}
		}
		x.Delivered[c.name()] = time.Now().UTC()
	}
	again = task.Seconds(task.Never)
	if x.Error != "" {
		if x.GivenUp = x.Tries >= mostTries; !x.GivenUp {
			again = task.For(min(firstRetry<<min(x.Tries-1, 20), lastRetry))
		}
	}
	return &notices.Stored{ID: stored.ID, Text: x.Stored()}, again
}
