package worker

// A crew runs functions in goroutines of their own. It keeps the goroutines, because the stack of a new one must grow,
// which takes longer than a short round. So it has as many goroutines as have run at the same time.
type crew struct{ work chan func() }

func newCrew() crew { return crew{make(chan func())} }

// do runs a function, which may also end its goroutine. It must not be called after end.
func (c crew) do(f func()) {
	select {
	case c.work <- f:
	default:
		go func() {
			f()
			for f := range c.work {
				f()
			}
		}()
	}
}

// end ends the goroutines that run no function, and the others when their functions return.
func (c crew) end() { close(c.work) }
