// Package luacost runs the Lua scripts of a test in an interpreter that counts: instructions, tables, closures and
// texts that the script makes, and commands. The commands themselves run in the test's Redis. Unlike times, the counts
// are the same on every machine.
//
// The interpreter is the one of the embedded Redis. Its compiler and its instructions are close to those of Lua 5.1,
// which Redis uses.
package luacost

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// An Interpreter is a hook of a go-redis client: it runs the scripts that the client sends.
type Interpreter struct {
	rdb     *redis.Client                 // runs the commands of scripts
	scripts map[string]*lua.FunctionProto // by SHA-1
	now     time.Time                     // the time that scripts see; it stands still while a script runs

	// Counted is called with the counts of each call of a script. The id of the script is its SHA-1.
	Counted func(id string, c *Counts)
}

// New returns an Interpreter for the scripts with the given sources. Their commands run in the database db of the Redis
// at addr.
func New(addr string, db int, sources ...string) (*Interpreter, error) {
	x := &Interpreter{
		// Scripts see the replies of protocol 2.
		rdb:     redis.NewClient(&redis.Options{Addr: addr, DB: db, Protocol: 2, MaxRetries: -1, ReadTimeout: -1}),
		scripts: map[string]*lua.FunctionProto{},
		now:     time.Now(),
		Counted: func(string, *Counts) {},
	}
	for _, source := range sources {
		code := source
		if strings.HasPrefix(code, "#!") {
			code = "--" + code // a line for Redis
		}
		chunk, err := parse.Parse(strings.NewReader(code), "script")
		if err != nil {
			return nil, err
		}
		proto, err := lua.Compile(chunk, "script")
		if err != nil {
			return nil, err
		}
		sum := sha1.Sum([]byte(source))
		x.scripts[hex.EncodeToString(sum[:])] = proto
	}
	return x, nil
}

// Close closes the connection to Redis.
func (x *Interpreter) Close() error { return x.rdb.Close() }

func (x *Interpreter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (x *Interpreter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		return x.run(ctx, cmd)
	}
}

// ProcessPipelineHook sends the commands of a pipeline one after the other, because some of them may be scripts.
func (x *Interpreter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var first error
		for i, cmd := range cmds {
			err := error(nil)
			if isScript(cmd) {
				err = x.run(ctx, cmd)
			} else {
				err = next(ctx, cmds[i:i+1])
			}
			if first == nil {
				first = err
			}
		}
		return first
	}
}

func isScript(cmd redis.Cmder) bool { return strings.EqualFold(cmd.Name(), "evalsha") }

// run runs a script, and sets the command's reply.
func (x *Interpreter) run(ctx context.Context, cmd redis.Cmder) error {
	reply, err := x.eval(ctx, cmd.Args())
	if err != nil {
		cmd.SetErr(err)
		return err
	}
	cmd.(*redis.Cmd).SetVal(reply)
	return nil
}

func (x *Interpreter) eval(ctx context.Context, args []any) (any, error) {
	name := fmt.Sprint(args[1])
	proto := x.scripts[name]
	if proto == nil {
		return nil, fmt.Errorf("the interpreter does not know the script %s", name)
	}
	x.now = x.now.Add(time.Millisecond)
	l := lua.NewState()
	defer l.Close()
	n := args[2].(int)
	l.SetGlobal("KEYS", texts(l, args[3:3+n]))
	l.SetGlobal("ARGV", texts(l, args[3+n:]))
	c := newCounts(l)
	x.register(ctx, l, c)
	l.Push(l.NewFunctionFromProto(proto))
	l.SetContext(c)
	if err := l.PCall(0, 1, nil); err != nil {
		return nil, err
	}
	x.Counted(name, c)
	return answer(l.Get(-1))
}

func texts(l *lua.LState, args []any) *lua.LTable {
	t := l.NewTable()
	for _, a := range args {
		switch a := a.(type) {
		case []byte:
			t.Append(lua.LString(a))
		case *string:
			t.Append(lua.LString(*a))
		default:
			t.Append(lua.LString(fmt.Sprint(a)))
		}
	}
	return t
}

// register gives the script Redis's functions.
func (x *Interpreter) register(ctx context.Context, l *lua.LState, c *Counts) {
	command := func(protected bool) lua.LGFunction {
		return func(l *lua.LState) int {
			args := make([]any, l.GetTop())
			for i := range args {
				args[i] = l.Get(i + 1).String()
			}
			c.Commands++
			reply, err := x.command(ctx, l, args)
			switch {
			case err == nil:
				l.Push(reply)
			case protected:
				l.Push(failure(l, err.Error()))
			default:
				l.RaiseError("%s", err.Error())
			}
			return 1
		}
	}
	for _, library := range []lua.LValue{l.G.Global, l.GetGlobal("string"), l.GetGlobal("table"), l.GetGlobal("math")} {
		library.(*lua.LTable).ForEach(func(name, f lua.LValue) {
			if f, ok := f.(*lua.LFunction); ok && f.IsG && len(f.Upvalues) == 0 {
				l.SetField(library, name.String(), l.NewFunction(func(l *lua.LState) int {
					c.Functions++
					return f.GFunction(l)
				}))
			}
		})
	}
	table := l.NewTable()
	l.SetField(table, "call", l.NewFunction(command(false)))
	l.SetField(table, "pcall", l.NewFunction(command(true)))
	l.SetField(table, "error_reply", l.NewFunction(func(l *lua.LState) int {
		l.Push(failure(l, l.CheckString(1)))
		return 1
	}))
	l.SetGlobal("redis", table)
}

func failure(l *lua.LState, text string) *lua.LTable {
	t := l.NewTable()
	t.RawSetString("err", lua.LString(text))
	return t
}

// command runs a command of a script, and returns its reply as the script sees it.
func (x *Interpreter) command(ctx context.Context, l *lua.LState, args []any) (lua.LValue, error) {
	name := strings.ToUpper(args[0].(string))
	if name == "TIME" {
		t := l.NewTable()
		t.Append(lua.LString(fmt.Sprint(x.now.Unix())))
		t.Append(lua.LString(fmt.Sprint(x.now.Nanosecond() / 1000)))
		return t, nil
	}
	reply, err := x.rdb.Do(ctx, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	if text, ok := reply.(string); ok && (name == "TYPE" || name == "SET") {
		t := l.NewTable()
		t.RawSetString("ok", lua.LString(text))
		return t, nil
	}
	return value(l, reply), nil
}

func value(l *lua.LState, reply any) lua.LValue {
	switch r := reply.(type) {
	case int64:
		return lua.LNumber(r)
	case string:
		return lua.LString(r)
	case []any:
		t := l.CreateTable(len(r), 0)
		for _, e := range r {
			t.Append(value(l, e))
		}
		return t
	default:
		return lua.LFalse
	}
}

// answer returns a script's result as go-redis would return it.
func answer(v lua.LValue) (any, error) {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(v), nil
	case lua.LString:
		return string(v), nil
	case *lua.LTable:
		if text, failed := v.RawGetString("err").(lua.LString); failed {
			return nil, errors.New(string(text))
		}
		all := []any{}
		for i := 1; v.RawGetInt(i) != lua.LNil; i++ {
			e, err := answer(v.RawGetInt(i))
			if err != nil && !errors.Is(err, redis.Nil) {
				return nil, err
			}
			all = append(all, e)
		}
		return all, nil
	case lua.LBool:
		if v {
			return int64(1), nil
		}
	}
	return nil, redis.Nil
}

// Counts says what a call of a script has cost. It is also the context of the interpreter, which asks a context before
// each instruction whether to go on.
type Counts struct {
	context.Context
	Instructions int // instructions of the interpreter
	Made         int // tables, closures and joined texts that the script's instructions have made
	Functions    int // calls of Lua's library, such as string.format
	Commands     int // commands of Redis

	// Lines has the number of instructions of each line of the script.
	Lines map[int]int

	state *lua.LState
	frame unsafe.Pointer // of the field currentFrame of state
}

// A frame has the first fields of gopher-lua's callFrame.
type frame struct {
	_  int
	fn *lua.LFunction
	_  unsafe.Pointer
	pc int
}

func newCounts(l *lua.LState) *Counts {
	field, ok := reflect.TypeFor[lua.LState]().FieldByName("currentFrame")
	if !ok {
		panic("luacost: this version of gopher-lua has no currentFrame")
	}
	return &Counts{
		Context: context.Background(), Lines: map[int]int{}, state: l,
		frame: unsafe.Add(unsafe.Pointer(l), field.Offset),
	}
}

// Done counts an instruction. It never ends the interpreter.
func (c *Counts) Done() <-chan struct{} {
	f := *(**frame)(c.frame)
	proto := f.fn.Proto
	c.Instructions++
	c.Lines[proto.DbgSourcePositions[f.pc-1]]++
	switch int(proto.Code[f.pc-1] >> 26) {
	case lua.OP_NEWTABLE, lua.OP_CLOSURE, lua.OP_CONCAT:
		c.Made++
	}
	return nil
}
