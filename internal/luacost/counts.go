package luacost

import (
	"context"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

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
