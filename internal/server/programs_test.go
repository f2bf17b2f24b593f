package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate"
)

// storeOld stores an archive whose last use was long ago. It returns the program's source.
func (s *site) storeOld(archive string) string {
	s.Helper()
	source := expect.Result(s.store.Programs.PutProgram(s.Context(), []byte(archive))).Value(s)
	s.do("ZADD", "$programs_used", 1, strings.TrimPrefix(source, "redis:"))
	return source
}

func (s *site) isStored(source string) bool {
	s.Helper()
	return expect.Result(s.store.Programs.HasProgram(s.Context(), strings.TrimPrefix(source, "redis:"))).Value(s)
}

// openWith opens a task as the original TDF does, which does not renew the last use of the program.
func (s *site) openWith(source string) int64 {
	s.Helper()
	id := s.open(define())[0]
	s.do("HSET", fmt.Sprintf("$task:%d", id), "source", source)
	return id
}

// walk lets a server make n parts of its walk. A part is complete only if every call to Redis succeeds.
func (s *site) walk(srv *Server, n int) {
	s.Helper()
	for range n {
		srv.audit.walked = 0
		_, err := srv.RunOnce(s.Context())
		if err != nil {
			expect.FailsWith(s, err, errRead)
		}
	}
}

// wholeWalk is the number of parts of the walk through a small namespace.
const wholeWalk = 2

// After a complete walk, the server removes the old programs that no task names. It keeps the programs of tasks in all
// states.
func TestUnusedProgramsAreRemoved(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		unused, open, archived, fresh, pinned := s.storeOld("unused"), s.storeOld("open"), s.storeOld("archived"), s.storeOld("fresh"), s.storeOld("pinned")
		staged := s.storeOld("staged")
		s.do("HSET", "$pipelines", "p/s", "stored 1 2 X "+strings.TrimPrefix(staged, "redis:"), "p/wrong", "stored")
		one := s.finish(define())
		s.openWith(open)
		s.do("HSET", fmt.Sprintf("$task:%d", one), "source", archived)
		s.archive(one)
		expect.Result(s.store.Programs.PutProgram(s.Context(), []byte("fresh"))).OK(s)
		expect.NoError(s, s.store.Programs.PinPrograms(s.Context(), strings.TrimPrefix(pinned, "redis:")))
		srv := New("new", settings, s.store, quiet())
		s.walk(srv, 1)
		expect.True(s, s.isStored(unused), "a program was removed before the end of the walk")
		s.walk(srv, wholeWalk)
		for source, want := range map[string]bool{unused: false, open: true, archived: true, fresh: true, pinned: true, staged: true} {
			expect.Equal(s, s.isStored(source), want, source, "is stored", !want)
		}
		s.walk(srv, 3*wholeWalk)
		for _, source := range []string{open, archived, fresh, pinned, staged} {
			expect.True(s, s.isStored(source), "a later walk removed", source)
		}
		s.checkConsistent()
	})
}

// The server forgets blobs that no task names, neither as what it needs nor as what its rounds have made. A task cannot
// name one that is forgotten.
func TestUnusedBlobsAreForgotten(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		blob := func(digit string) task.Blob { return task.Blob{SHA256: strings.Repeat(digit, 64), Bytes: 7} }
		needed, made, unused, fresh, pending := blob("a"), blob("b"), blob("c"), blob("d"), blob("e")
		for _, b := range []task.Blob{needed, made, unused, fresh} {
			expect.NoError(s, s.store.Blobs.RegisterBlob(s.Context(), b, "me"))
		}
		s.do("HSET", fmt.Sprintf("$task:%d", s.finish(define())), "made", made.String())
		d := define()
		d.Blobs = []string{needed.String()}
		s.open(d)
		for _, b := range []task.Blob{needed, made, unused} {
			s.do("ZADD", "$blobs_used", 1, b.SHA256)
		}
		srv := New("new", settings, s.store, quiet())
		s.walk(srv, 3*wholeWalk)
		all := []string{needed.SHA256, made.SHA256, unused.SHA256, fresh.SHA256, pending.SHA256}
		expect.Result(s.store.Blobs.LostBlobs(s.Context(), all...)).Is(s, []string{unused.SHA256, pending.SHA256})
		expect.Result(s.store.Blobs.BlobBytes(s.Context())).Is(s, map[string]int64{"me": 21})
		d.Blobs = []string{fresh.String(), unused.String()}
		expect.Result(s.store.OpenAll(s.Context(), "opener", "", d)).Fails(s, unused.SHA256)
		s.checkConsistent()
	})
}

// A walk may pass a task before it names a blob that its round has stored. If the walk takes as long as the server keeps
// blobs, the blob stays nevertheless.
func TestBlobsOfRoundsStay(t *testing.T) {
	t.Parallel()
	onEach(t, func(s *site) {
		made := task.Blob{SHA256: strings.Repeat("b", 64), Bytes: 7}
		expect.NoError(s, s.store.Blobs.RegisterBlob(s.Context(), made, "me"))
		srv := New("new", settings, s.store, quiet())
		now := expect.Result(s.store.Now(s.Context())).Value(s)
		srv.audit.programs = keptPrograms{walked: now.Add(-1)}
		s.do("ZADD", "$blobs_used", now.Add(-task.BlobKeep-0.5).String(), made.SHA256)
		expect.NoError(s, srv.keepPrograms(s.Context(), now, rules.Grace{}))
		expect.Result(s.store.Blobs.LostBlobs(s.Context(), made.SHA256)).Is(s, nil)
	})
}

var errRead = errors.New("a read that fails")

// failingReads is a store in which reads of sources fail.
type failingReads struct {
	Store
	fails int // how many more reads fail
}

func (f *failingReads) Read(ctx context.Context, ids []int64, want redisstate.Want) ([]redisstate.Stored, error) {
	if want.Fields&redisstate.Source != 0 {
		if f.fails--; f.fails >= 0 {
			return nil, errRead
		}
	}
	return f.Store.Read(ctx, ids, want)
}

// If a part of the walk fails, the walk proves nothing: the server removes a program only after the next complete walk.
func TestAWalkWithAnErrorRemovesNoProgram(t *testing.T) {
	s := newSite(t)
	source := s.storeOld("of a task")
	s.openWith(source)
	unused := s.storeOld("unused")
	store := &failingReads{Store: StoreOf(s.store), fails: 1}
	srv := NewOn("new", settings, store, quiet())
	s.walk(srv, wholeWalk)
	expect.True(s, s.isStored(source), "a program was removed after an incomplete walk")
	expect.True(s, s.isStored(unused), "a program was removed after an incomplete walk")
	s.walk(srv, 2*wholeWalk)
	expect.True(s, s.isStored(source), "after a complete walk, the wrong programs are stored")
	expect.True(s, !s.isStored(unused), "after a complete walk, the wrong programs are stored")
}

// The server removes a bounded number of programs at once, and logs each of them.
func TestUnusedProgramsAreRemovedInParts(t *testing.T) {
	s := newSite(t)
	for i := range 2*removedAtOnce + 1 {
		s.storeOld(fmt.Sprint(i))
	}
	srv := New("new", settings, s.store, quiet())
	s.walk(srv, wholeWalk)
	for left := removedAtOnce + 1; left > 0; left -= removedAtOnce {
		expect.Equal(s, s.do("ZCARD", "$programs").(int64), int64(left), "programs are left", left)
		s.walk(srv, 1)
	}
	expect.Equal(s, s.do("ZCARD", "$programs").(int64), 0, "programs are left")
}

// After Redis's clock leapt forward, the server removes no program before the end of the grace period.
func TestUnusedProgramsAfterALeap(t *testing.T) {
	t.Parallel()
	onEachClock(t, func(s *leaper) {
		source := s.storeOld("unused")
		s.do("ZADD", "$programs_used", s.now().String(), strings.TrimPrefix(source, "redis:"))
		s.round()
		s.leap(2 * task.ProgramKeep)
		s.walk(s.server, 3*wholeWalk)
		expect.True(s, s.isStored(source), "the program was removed")
		s.endGrace()
		s.walk(s.server, wholeWalk)
		expect.True(s, !s.isStored(source), "after the grace period, the program is still stored")
	})
}

// Only a walk without a missing part counts as complete.
func TestCompleteWalks(t *testing.T) {
	t.Parallel()
	var p keptPrograms
	for _, part := range []struct {
		at                 task.Time
		first, fails, ends bool
		walked             task.Time
	}{
		{10, false, false, true, 0}, // the end of a walk of which the beginning is unknown
		{20, true, false, false, 0},
		{30, false, false, true, 20},
		{40, true, false, false, 20},
		{50, false, true, false, 20},
		{60, false, false, false, 20},
		{70, false, false, true, 20},
		{80, true, false, true, 80},
	} {
		p.beginPart(part.at, part.first)
		p.ended = part.ends
		if !part.fails {
			p.endPart()
		}
		expect.Equal(t, p.walked, part.walked, "at", part.at, "the last complete walk began at")
	}
}
