// Package lua has the scripts that Redis runs, and the table that says what each of them needs (docs/development.md).
package lua

import (
	"embed"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The scripts. Each has the name of its file, which two scripts may share, the files whose code Go puts before it, and
// what it does if Redis is full (at its maxmemory): a full Redis refuses new tasks and claims, but accepts results,
// renewals and heartbeats.
//
// The file .luacheckrc and the tests read this table.
var (
	Open = declare(Script{
		Name: "open", Full: Fails, Moves: true, After: "prelude newtask openplain common values indexes places opening",
	})
	Claim = declare(Script{
		Name: "claim", Full: waits, Moves: true, Unconfirmed: true,
		After: "prelude common sources values indexes places limiting fitting kept ordering",
	})
	Renew = declare(Script{
		Name: "renew", After: "prelude common sources values", Full: Runs, Moves: true, Unconfirmed: true,
	})
	Move = declare(Script{
		Name: "move", Full: Runs, Moves: true,
		After: "prelude common indexes sources limiting plain values places endings moving",
	})
	Transact = declare(Script{
		Name: "transact", Full: Runs, Moves: true,
		After: "prelude common sources values indexes places limiting newtask opening endings needs moving deciding",
	})
	TransactOpening = declare(Script{
		Name: "transact", Full: Fails, Moves: true,
		After: "prelude common sources values indexes places limiting newtask opening endings needs moving deciding",
	})
	Link   = declare(Script{Name: "link", After: "prelude common values indexes opening", Full: Runs, Unconfirmed: true})
	Marks  = declare(Script{Name: "marks", After: "prelude common values indexes opening", Full: Runs})
	Unhold = declare(Script{
		Name: "unhold", Full: Runs, Unconfirmed: true, After: "prelude common sources values places limiting",
	})
	TokenSet  = declare(Script{Name: "tokenset", After: "prelude common values", Full: Runs})
	Learn     = declare(Script{Name: "learn", After: "prelude common", Full: Runs, Unconfirmed: true})
	Heartbeat = declare(Script{Name: "heartbeat", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Register  = declare(Script{Name: "heartbeat", After: "prelude common values", Full: Fails, Unconfirmed: true})
	Forget    = declare(Script{Name: "forget", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Write     = declare(Script{Name: "write", After: "prelude common values", Full: Runs})
	// a confirmed call that needs what it stores comes later
	Storing    = declare(Script{Name: "write", After: "prelude common values", Full: Fails, Unconfirmed: true})
	Activity   = declare(Script{Name: "activity", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Unused     = declare(Script{Name: "unused", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Unrequest  = declare(Script{Name: "unrequest", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Lease      = declare(Script{Name: "lease", After: "prelude common values", Full: Runs, Unconfirmed: true})
	Drop       = declare(Script{Name: "drop", After: "prelude common values", Full: Runs})
	Fence      = declare(Script{Name: "fence", Full: Runs, Unconfirmed: true})
	Rights     = declare(Script{Name: "rights", Full: Runs, Unconfirmed: true})
	Notice     = declare(Script{Name: "notice", After: "prelude common values", Full: Runs, Unconfirmed: true})
	NoticeTurn = declare(Script{Name: "noticeturn", After: "prelude common values", Full: Runs, Unconfirmed: true})
	IndexNames = declare(Script{Name: "indexnames", After: "prelude common values", Full: Runs, Unconfirmed: true})

	// These scripts only read.
	Counts = declare(Script{Name: "counts", Full: waits, Unconfirmed: true})
	Fields = declare(Script{Name: "fields", Full: waits, Unconfirmed: true})
	Names  = declare(Script{Name: "names", Full: waits, Unconfirmed: true})
	Find   = declare(Script{Name: "find", Full: waits, Unconfirmed: true})

	Located = declare(Script{Name: "located", After: "prelude common values places", Full: waits, Unconfirmed: true})
)

// A Script is a Lua script.
type Script struct {
	Name  string // of its file, without .lua
	After string // the files whose code comes before it
	Full  whenFull
	Moves bool // it makes moves, so that its success shows that the user may do so
	// It changes nothing, or nothing that a caller relies on, because the change is made again if it is lost. A call of
	// any other script waits for the replicas of [redis] replicas.
	Unconfirmed bool

	Forms   func() scriptForms
	guarded func() scriptForms // for a cluster
}

// scriptForms are the forms of a script. The form allowOOM has a flag, with which it also runs on a full Redis. It is
// nil for a script that must not.
type scriptForms struct{ Plain, allowOOM *redis.Script }

// guard is the first line of a script for a cluster. Such a script gets one more key, which never exists. While the
// slot of the namespace moves to another node, Redis refuses scripts with a missing key. So no script runs then: in the
// middle of a script, Redis would refuse the first command with a key that is missing, or was moved.
const guard = "KEYS[#KEYS] = nil\n"

// whenFull says what happens to a call of a script if Redis is full.
type whenFull int

const (
	waits whenFull = iota // the call waits, as in an outage; a script that only reads goes on
	Fails                 // the call gets conn.ErrFull, because the script adds tasks or definitions
	Runs                  // Redis 7 and later run the script; older ones know no script flags, and the call waits
)

// Files has the files of this folder.
//
//go:embed *.lua
var Files embed.FS

var scripts []*Script

// AllowOOM is the line before the source of a form that also runs on a full Redis.
const AllowOOM = "#!lua flags=allow-oom\n"

func declare(x Script) *Script {
	x.Load(x.Source)
	scripts = append(scripts, &x)
	return &x
}

// Source returns the source of the script and of the files that it needs.
func (x *Script) Source() string {
	var source strings.Builder
	for _, name := range append(strings.Fields(x.After), x.Name) {
		text, err := Files.ReadFile(name + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	return source.String()
}

// Load makes the script have the given source. The first call of the script computes its forms, because a program uses
// few of the scripts.
func (x *Script) Load(source func() string) {
	x.Forms = sync.OnceValue(func() scriptForms { return x.formsOf(source()) })
	x.guarded = sync.OnceValue(func() scriptForms { return x.formsOf(guard + source()) })
}

func (x *Script) formsOf(text string) scriptForms {
	forms := scriptForms{Plain: redis.NewScript(text)}
	if x.Full == Runs {
		forms.allowOOM = redis.NewScript(AllowOOM + text)
	}
	return forms
}

// Sums returns the SHA-1 of each script, in its form without script flags. Without a password, the embedded Redis
// runs only these scripts.
func Sums() []string {
	var sums []string
	for _, script := range scripts {
		sums = append(sums, script.Forms().Plain.Hash())
	}
	return sums
}

// Of returns the form for a Redis that knows script flags, or for one that does not. In a cluster, the last key of each
// call must be one that never exists.
func (x *Script) Of(flags, cluster bool) *redis.Script {
	forms := x.Forms
	if cluster {
		forms = x.guarded
	}
	return forms().of(flags)
}

func (forms scriptForms) of(flags bool) *redis.Script {
	if forms.allowOOM != nil && flags {
		return forms.allowOOM
	}
	return forms.Plain
}
