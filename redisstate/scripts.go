package redisstate

import (
	"context"
	"embed"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each has the name of its file, the files whose code Go puts before it, and what it does if Redis is full
// (at its maxmemory): a full Redis refuses new tasks and claims, but accepts results, renewals and heartbeats.
//
// The file .luacheckrc and the tests read this table.
var (
	openScript            = declare(luaScript{name: "open", after: "prelude places opening", full: fails, moves: true})
	claimScript           = declare(luaScript{name: "claim", after: "prelude places limiting starting positions ordering", full: waits, moves: true})
	renewScript           = declare(luaScript{name: "renew", after: "prelude", full: runs, moves: true})
	moveScript            = declare(luaScript{name: "move", after: "prelude places limiting endings moving", full: runs, moves: true})
	settleScript          = declare(luaScript{name: "settle", after: "prelude places endings moving", full: runs, moves: true})
	transactScript        = declare(luaScript{name: "transact", after: "prelude places limiting opening endings deciding needs moving", full: runs, moves: true})
	transactOpeningScript = declare(luaScript{name: "transact", after: "prelude places limiting opening endings deciding needs moving", full: fails, moves: true})
	linkScript            = declare(luaScript{name: "link", after: "prelude opening", full: runs})
	marksScript           = declare(luaScript{name: "marks", after: "prelude opening", full: runs})
	limitReturnScript     = declare(luaScript{name: "limitreturn", after: "prelude places", full: runs})
	limitUseScript        = declare(luaScript{name: "limituse", after: "prelude places limiting", full: runs})
	limitSetScript        = declare(luaScript{name: "limitset", after: "prelude", full: runs})
	pauseScript           = declare(luaScript{name: "pause", after: "prelude", full: runs})
	heartbeatScript       = declare(luaScript{name: "heartbeat", after: "prelude", full: runs})
	bestEffortScript      = declare(luaScript{name: "besteffort", after: "prelude", full: runs})
	storingScript         = declare(luaScript{name: "besteffort", after: "prelude", full: fails})
	unusedScript          = declare(luaScript{name: "unused", after: "prelude", full: runs})
	dropScript            = declare(luaScript{name: "drop", after: "prelude", full: runs})
	rightsScript          = declare(luaScript{name: "rights", after: "prelude", full: runs})
	restoreScript         = declare(luaScript{name: "restore", after: "prelude places limiting opening", full: fails})
	restoreValuesScript   = declare(luaScript{name: "restorevalues", after: "prelude", full: fails})

	// These scripts only read.
	countsScript = declare(luaScript{name: "counts", full: waits})
	fieldsScript = declare(luaScript{name: "fields", full: waits})
	namesScript  = declare(luaScript{name: "names", full: waits})
	findScript   = declare(luaScript{name: "find", full: waits})
)

// A luaScript is a Lua script.
type luaScript struct {
	name  string // of its file, without .lua
	after string // the files whose code comes before it
	full  whenFull
	moves bool // it makes moves, so that its success shows that the user may do so

	forms func() scriptForms
}

// scriptForms are the forms of a script. The form allowOOM has a flag, with which it also runs on a full Redis. It is nil
// for a script that must not.
type scriptForms struct{ plain, allowOOM *redis.Script }

// whenFull says what happens to a call of a script if Redis is full.
type whenFull int

const (
	waits whenFull = iota // the call waits, as in an outage; a script that only reads goes on
	fails                 // the call gets [ErrFull], because the script adds tasks or definitions
	runs                  // Redis 7 and later run the script; older ones know no script flags, and the call waits
)

//go:embed lua/*.lua
var sources embed.FS

var scripts []*luaScript

const allowOOM = "#!lua flags=allow-oom\n"

func declare(x luaScript) *luaScript {
	x.load(x.source)
	scripts = append(scripts, &x)
	return &x
}

// source returns the source of the script and of the files that it needs.
func (x *luaScript) source() string {
	var source strings.Builder
	for _, name := range append(strings.Fields(x.after), x.name) {
		text, err := sources.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	return source.String()
}

// load makes the script have the given source. The first call of the script computes its forms, because a program uses few
// of the scripts.
func (x *luaScript) load(source func() string) {
	x.forms = sync.OnceValue(func() scriptForms {
		text := source()
		forms := scriptForms{plain: redis.NewScript(text)}
		if x.full == runs {
			forms.allowOOM = redis.NewScript(allowOOM + text)
		}
		return forms
	})
}

// Scripts returns the SHA-1 of each script, in its form without script flags. Without a password, the embedded Redis
// runs only these scripts.
func Scripts() []string {
	var sums []string
	for _, script := range scripts {
		sums = append(sums, script.forms().plain.Hash())
	}
	return sums
}

// of returns the form of the script that this Redis knows.
func (x *luaScript) of(s *Store) *redis.Script {
	forms := x.forms()
	if forms.allowOOM != nil && s.flags.Load() {
		return forms.allowOOM
	}
	return forms.plain
}

// run runs the form of the script that this Redis knows.
func (x *luaScript) run(ctx context.Context, s *Store, keys []string, args ...any) *redis.Cmd {
	return x.of(s).Run(ctx, s.rdb, keys, args...)
}
