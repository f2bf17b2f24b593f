package notify

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/notify/notice"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/groups"
	"github.com/tdf-framework/tdf/redisstate/notices"
	"github.com/tdf-framework/tdf/redisstate/presence"
)

// Marks remember the events that have a notice. Each begins with the kind of event, a space, and the name of the
// campaign or worker. The mark markBegun remembers that a first walk has seen all earlier events, which get no notices.
const (
	markBegun     = "begun"
	failingShare  = .2  // share of failures of the finished tasks from which a campaign gets a notice
	leastFinished = 20  // finished tasks before a share of failures means anything
	groupsAtOnce  = 200 // campaigns in a part of the walk
	marksAtOnce   = 100 // of these, the campaigns are looked up one by one
)

// A watch walks through all campaigns, again and again, and looks at all workers.
type watch struct {
	store  *redisstate.Store
	after  string          // the campaign after which the walk goes on
	cursor uint64          // of the walk through the marks
	known  map[string]bool // the marks of all workers

	quiet map[string]task.Time // the time of the last notice about lost workers of each token
	spent map[string]*budget   // of the owners of campaigns
	next  []string             // the tokens about which the next notices are
}

// look does a part of the walk. It reports whether the walk is at its end.
func (w *watch) look(ctx context.Context) (end bool, err error) {
	begun, err := w.store.Notices.Marks(ctx, markBegun)
	if err != nil {
		return false, err
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return false, err
	}
	seen, err := w.workers(ctx, now)
	if err != nil {
		return false, err
	}
	more, next, err := w.campaigns(ctx, now)
	if err != nil {
		return false, err
	}
	seen = append(seen, more...)
	if begun[0] == "" {
		for i := range seen {
			seen[i].Notice, seen[i].After = "", strings.TrimPrefix(seen[i].After, "~")
		}
		if next == "" {
			seen = append(seen, notices.Sighting{Mark: markBegun, After: now.String()})
		}
	}
	if _, err := w.store.Notices.See(ctx, seen...); err != nil {
		return false, err
	}
	for _, token := range w.next {
		w.quiet[token] = now
	}
	w.after = next
	if next != "" {
		return false, nil
	}
	return true, w.forget(ctx)
}

// campaigns returns the events of the next campaigns, and the name after which the walk goes on.
func (w *watch) campaigns(ctx context.Context, now task.Time) (seen []notices.Sighting, next string, err error) {
	page, next, err := w.store.Groups.ListGroups(ctx, "", w.after, groupsAtOnce)
	if err != nil {
		return nil, "", err
	}
	var names []string
	for _, g := range page {
		names = append(names, markOf(notice.CampaignEnded, g.Name), markOf(notice.FailuresAbove, g.Name))
	}
	marks, err := w.store.Notices.Marks(ctx, names...)
	if err != nil {
		return nil, "", err
	}
	more := map[string]*rest{}
	for i, g := range page {
		for j, after := range []string{ended(g, marks[2*i]), failing(g.Counts, marks[2*i+1])} {
			if x := (notices.Sighting{Mark: names[2*i+j], Before: marks[2*i+j], After: after}); after != x.Before {
				kind := []notice.Kind{notice.CampaignEnded, notice.FailuresAbove}[j]
				if grown(x.Before, after) {
					n := notice.Notice{Kind: kind, At: now.Std(), Campaign: g.Name, Tasks: g.Counts, Text: sentence(kind, g)}
					switch w.spend(g.Name, now) {
					case held:
						continue // without its mark, so that a later notice tells of it
					case joined:
						more[ownerOf(g.Name)] = more[ownerOf(g.Name)].with(n, len(seen))
					default:
						x.Notice = n.Stored()
					}
				}
				seen = append(seen, x)
			}
		}
	}
	for owner, r := range more {
		seen[r.place].Notice = r.notice(owner).Stored()
		w.spent[owner].n++
	}
	return seen, next, nil
}

// Anyone who may open tasks can let any number of campaigns end. So each owner has noticesEach notices in quietTime,
// and one more that tells of the other campaigns of that part of the walk. Those that end later wait until quietTime
// is over.
const noticesEach = 10

// A budget counts the notices about campaigns of an owner.
type budget struct {
	since task.Time
	n     int
}

// What happens to an event.
const (
	alone  = iota // it has a notice of its own
	joined        // one notice tells of it and of others
	held          // it has no notice yet
)

// ownerOf returns the owner in the name of a campaign ([task.OwnsName]).
func ownerOf(campaign string) string {
	owner, _, owned := strings.Cut(campaign, "/")
	if !owned {
		return ""
	}
	return owner
}

// spend counts an event of a campaign. Campaigns without an owner are those of operators.
func (w *watch) spend(campaign string, now task.Time) int {
	owner := ownerOf(campaign)
	if owner == "" {
		return alone
	}
	maps.DeleteFunc(w.spent, func(_ string, b *budget) bool { return now.Sub(b.since) >= quietTime })
	if w.spent == nil {
		w.spent = map[string]*budget{}
	}
	b := w.spent[owner]
	if b == nil {
		b = &budget{since: now}
		w.spent[owner] = b
	}
	if b.n < noticesEach {
		b.n++
		return alone
	}
	return min(joined+b.n-noticesEach, held)
}

// A rest is what one notice tells of several campaigns.
type rest struct {
	first notice.Notice
	place int // of the first sighting
	n     int
}

func (r *rest) with(n notice.Notice, place int) *rest {
	if r == nil {
		r = &rest{first: n, place: place}
	}
	r.n++
	return r
}

func (r *rest) notice(owner string) notice.Notice {
	if r.n > 1 {
		r.first.Text += fmt.Sprintf(" There are %d more such events of campaigns of %s.", r.n-1, owner)
	}
	return r.first
}

func markOf(kind notice.Kind, name string) string { return string(kind) + " " + name }

// ended returns the value of the mark of a campaign: how many of its tasks have finished if all have, and otherwise
// none. A campaign that is not closed may get further tasks, so it has ended when a second look finds the same number;
// the first look leaves the number with a tilde.
func ended(g groups.Group, before string) string {
	if g.Counts.Unfinished() > 0 || g.Counts.Total() == 0 {
		return ""
	}
	n := g.Counts.Finished()
	number := strconv.FormatInt(n, 10)
	noticed, err := strconv.ParseInt(before, 10, 64)
	if g.Mark.Mark != task.GroupOpen || before == "~"+number || err == nil && noticed >= n {
		return number
	}
	return "~" + number
}

// failing returns the value of the mark of a campaign whose tasks fail too often. The mark stays until the share is
// half of that.
func failing(c task.Counts, before string) string {
	share := float64(c.Failures()) / float64(max(c.Finished(), 1))
	if c.Finished() >= leastFinished && (share >= failingShare || before != "" && share >= failingShare/2) {
		return "1"
	}
	return ""
}

// grown reports whether the change of a mark is an event. If the number of finished tasks has fallen, tasks were only
// removed.
func grown(before, after string) bool {
	old, _ := strconv.ParseInt(before, 10, 64)
	now, _ := strconv.ParseInt(after, 10, 64)
	return now > old
}

func sentence(kind notice.Kind, g groups.Group) string {
	if kind == notice.CampaignEnded {
		return fmt.Sprintf("The campaign %s has ended: %s.", g.Name, g.Counts)
	}
	return fmt.Sprintf("%d of %d finished tasks of the campaign %s have failed.", g.Counts.Failures(),
		g.Counts.Finished(), g.Name)
}

// workers returns the events of workers. The value of a mark is the start of the worker that is lost.
func (w *watch) workers(ctx context.Context, now task.Time) (seen []notices.Sighting, err error) {
	workers, err := w.store.Presence.Workers(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(workers))
	w.known = map[string]bool{}
	if w.quiet == nil {
		w.quiet = map[string]task.Time{}
	}
	w.next = nil
	for i := range workers {
		names[i] = markOf(notice.WorkerLost, workers[i].Name)
		w.known[names[i]] = true
	}
	marks, err := w.store.Notices.Marks(ctx, names...)
	if err != nil {
		return nil, err
	}
	lost := map[string]*loss{}
	for i := range workers {
		x, after := &workers[i], ""
		if x.State != presence.WorkerGone && !x.Alive(now) {
			after = x.Boot
		}
		token := tokenOf(x.Name)
		if after == marks[i] || after != "" && now.Sub(w.quiet[token]) < quietTime {
			continue
		}
		seen = append(seen, notices.Sighting{Mark: names[i], Before: marks[i], After: after})
		of := x.Name
		if token != "" {
			of = token + "/"
		}
		if after != "" {
			lost[of] = lost[of].with(x, len(seen)-1)
		}
	}
	maps.DeleteFunc(w.quiet, func(_ string, at task.Time) bool { return now.Sub(at) >= quietTime })
	for _, l := range lost {
		seen[l.first].Notice = notice.Notice{
			Kind: notice.WorkerLost, At: now.Std(), Worker: l.Name,
			Text: l.sentence(),
		}.Stored()
		if token := tokenOf(l.Name); token != "" {
			w.next = append(w.next, token)
		}
	}
	return seen, nil
}

// quietTime is how long no further notice tells of lost workers of a token. A client names its workers itself, so it
// could cause any number of notices.
const quietTime = task.Seconds(600)

// tokenOf returns the name of the token of a worker that works over HTTP, and "" for other workers.
func tokenOf(worker string) string {
	token, _, _ := strings.Cut(worker, "/")
	if token == worker {
		return ""
	}
	return token
}

// A loss are the workers of one token that are lost, or one other worker.
type loss struct {
	*presence.WorkerStatus     // the first of them
	first                  int // the place of its sighting
	n                      int
}

func (l *loss) with(w *presence.WorkerStatus, place int) *loss {
	if l == nil {
		l = &loss{WorkerStatus: w, first: place}
	}
	l.n++
	return l
}

func (l *loss) sentence() string {
	at := l.Seen.Std().UTC().Format("2006-01-02 15:04:05 UTC")
	if l.n == 1 {
		return fmt.Sprintf("The worker %s is lost: its last heartbeat was at %s.", l.Name, at)
	}
	return fmt.Sprintf("%d workers of the token %s are lost. The last heartbeat of %s was at %s.", l.n, tokenOf(l.Name),
		l.Name, at)
}

// forget removes some of the marks of campaigns that have no tasks any more, and of workers that are forgotten.
func (w *watch) forget(ctx context.Context) error {
	marks, next, err := w.store.Notices.MarksPage(ctx, w.cursor)
	if err != nil {
		return err
	}
	var gone []notices.Sighting
	looked := 0
	for mark, value := range marks {
		is, err := w.isGone(ctx, mark)
		if err != nil {
			return err
		}
		if is {
			gone = append(gone, notices.Sighting{Mark: mark, Before: value})
		}
		looked++
		if looked == marksAtOnce { // the walk does not go on, and the next look meets other marks
			next = w.cursor
			break
		}
	}
	w.cursor = next
	_, err = w.store.Notices.See(ctx, gone...)
	return err
}

func (w *watch) isGone(ctx context.Context, mark string) (bool, error) {
	switch kind, name, _ := strings.Cut(mark, " "); notice.Kind(kind) {
	case notice.CampaignEnded, notice.FailuresAbove:
		counts, err := w.store.Counts(ctx, name)
		return counts.Total() == 0, err
	case notice.WorkerLost:
		return !w.known[mark], nil
	}
	return false, nil
}
