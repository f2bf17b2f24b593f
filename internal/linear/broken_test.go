package linear

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// A change replaces a part of a Lua file. If the file does not have the old text exactly once, the test fails.
type change struct{ file, old, now string }

// broken are builds that violate a model, with the model that finds it.
var broken = []struct {
	name    string
	finds   string
	changes []change
}{
	{"a repeated call runs again", "task", []change{
		{"prelude", "if done == sequence then return string.sub(last, cut + 1) end", ""},
	}},
	{"a late call runs", "task", []change{
		{"prelude", "if #done > #sequence or #done == #sequence and done > sequence then", "if false then"},
	}},
	{"a repeated claim claims more", "task", []change{
		{"claim", "remember(table.concat(ids, ' '))", ""},
	}},
	{"a report names another claim", "task", []change{{"plain", " or claim and f[5] ~= ARGV[at + claim]", ""}}},
	{"a report names another claim, in the general script", "task", []change{
		{"moving", "local mine = form.claim and (f[5] or '-') == ARGV[at + form.claim]", "local mine = form.claim and true"},
	}},
	{"a repeated report is refused", "task", []change{
		{"moving", "if mine and f[6] and form.has_result then return 'done' end", ""},
	}},
	{"a result is not stored", "task", []change{
		{"plain", "for j = owned + 2, n_write + 0, 2 do write[j] = ARGV[at + own + j / 2] end", ""},
	}},
	{"a move names another round", "task", []change{{"plain", " or f[2] ~= round", ""}}},
	{"a move names another state", "task", []change{{"plain", "if f[1] ~= from or f[2]", "if f[2]"}}},
	{"a refused unit says that it succeeded", "task", []change{
		{"transact", "if otherwise and otherwise ~= 'done' then refuse(u, otherwise) end", ""},
	}},
	{"a task is lost although its lease was renewed", "task", []change{
		{"moving", "fits = score_of(scheduled[i] or '-1') == score_of(ARGV[moves[i] + form.fence])", "fits = true"},
	}},
	{"a renewal shortens a lease", "task", []change{
		{"renew", "local kept = lease + 0 > 0 and", "local kept = false and"},
	}},
	{"a lost claim is renewed", "task", []change{
		{"renew", "local mine = round_of(f[2]) == c.round and f[3] == c.claim and not f[4]", "local mine = true"},
	}},
	{"a task is claimed twice", "task", []change{
		{"claim", "drop(open, source.id)", ""},
		{"claim", "return f[1] == 'open' and start_after", "return start_after"},
	}},
	{"an overdue task is claimed", "task", []change{
		{"claim", "elseif math.min(source.end_before, source.place and number(f[CLAIM_BEFORE], INF) or INF) <= now then", "elseif false then"},
	}},
	{"an id in use is given again", "id", []change{
		{"openplain", "sound = sound and call('EXISTS', unpack(keys)) == 0", ""},
		{"openplain", "last > n and last - n >= ARGV[3] + 0", "last >= n"},
	}},
	{"a limit is not checked", "limit", []change{{"claim", "#use.ids < use.room and not", "not"}}},
	{"a claim does not count for its limit", "limit", []change{{"claim", "limiting.count(key, id, true)", ""}}},
	{"a limit is not returned", "limit", []change{
		{"limiting", "bulk('ZREM', limiting.running .. key, ids, try)", ""},
	}},
	{"a unique key is not checked", "unique key", []change{
		{"opening", "return f[1] == key and states[moved_to[id] or f[2]] and id or false", "return false"},
	}},
	{"a unique key is held for ever", "unique key", []change{
		{"opening", "return f[1] == key and states[moved_to[id] or f[2]] and id", "return f[1] == key and id"},
	}},
	{"a unique key is free before its task is archived", "unique key", []change{
		{"opening", "holding[f[3] == 'archived' and 'archived' or 'finished']", "holding.finished"},
	}},
	{"a reopened task does not need its unique key", "unique key", []change{
		{"transact", "if other and other ~= id then", "if false then"},
	}},
}

// mostSeeds is the largest number of histories in which a broken build must be found.
const mostSeeds = 50

// Each build that is broken on purpose violates a model.
func TestBrokenBuilds(t *testing.T) {
	server := redistest.Start(t)
	for seed := range uint64(3) {
		h := &history{TB: t, size: small, redis: server}
		h.plain = seed == 1
		h.run(seed)
		expect.Len(t, append(violations(t, h.ops), h.problems...), 0, "of the sound build")
	}
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			build(t, b.changes)
			n := small
			n.plain = slices.ContainsFunc(b.changes, func(c change) bool { return strings.HasSuffix(c.file, "plain") })
			find(t, server, b.finds, n, nil)
		})
	}
	t.Run("all opens have the same number", func(t *testing.T) {
		find(t, server, "id", small, func(s *redisstate.Store) { s.Conn.Redis.AddHook(altered(sameNumber)) })
	})
	t.Run("the append-only file is missing", func(t *testing.T) { find(t, server, "task", usual, nil) })
}

// build changes the scripts until the test ends.
func build(t *testing.T, changes []change) {
	t.Helper()
	source := map[string]string{}
	for _, c := range changes {
		if source[c.file] == "" {
			source[c.file] = string(expect.Result(lua.Files.ReadFile(c.file + ".lua")).Value(t))
		}
		expect.MustEqual(t, strings.Count(source[c.file], c.old), 1, "how often", c.file+".lua has", c.old)
		source[c.file] = strings.Replace(source[c.file], c.old, c.now, 1)
	}
	for _, x := range []*lua.Script{
		lua.Open, lua.Claim, lua.Renew, lua.Move, lua.Transact, lua.TransactOpening, lua.Unhold,
	} {
		text := x.Source()
		for _, file := range append(strings.Fields(x.After), x.Name) {
			if source[file] != "" {
				text = strings.Replace(text, string(expect.Result(lua.Files.ReadFile(file+".lua")).Value(t)), source[file], 1)
			}
		}
		x.Load(func() string { return text })
		t.Cleanup(func() { x.Load(x.Source) })
	}
}

// find makes histories until a model is violated. The function connected may be nil.
func find(t *testing.T, server *redistest.Server, model string, n size,
	connected func(s *redisstate.Store),
) {
	t.Helper()
	var found []string
	for seed := range uint64(mostSeeds) {
		h := &history{TB: t, size: n, connected: connected, redis: server}
		h.run(seed)
		found = violations(t, h.ops)
		if slices.ContainsFunc(found, func(text string) bool { return strings.Contains(text, "answers about "+model) }) {
			t.Logf("found in history %d", seed)
			return
		}
	}
	t.Errorf("%d histories do not violate the model of the %s; the last one violates %q", mostSeeds, model, found)
}

// altered changes commands before they are sent.
type altered func(c redis.Cmder)

func (a altered) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (a altered) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		a(c)
		return next(ctx, c)
	}
}

func (a altered) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		for _, c := range all {
			a(c)
		}
		return next(ctx, all)
	}
}

// sameNumber gives calls of open.lua the same call slot and sequence number.
func sameNumber(c redis.Cmder) {
	forms, args := lua.Open.Forms(), c.Args()
	if len(args) > 2 && args[1] == forms.Plain.Hash() {
		first := 3 + args[2].(int)
		args[first], args[first+1] = "open", "1"
	}
}
