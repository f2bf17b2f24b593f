package conn

// An Args builds the arguments of a call to a script. The header of each script describes its arguments.
type Args struct{ All []any }

func (e *Args) Add(values ...string) {
	for _, v := range values {
		e.All = append(e.All, v)
	}
}

func (e *Args) Count(n int) { e.All = append(e.All, n) }

func (e *Args) Flag(on bool) {
	if on {
		e.Add("1")
	} else {
		e.Add("")
	}
}

func (e *Args) Strings(values []string) {
	e.Count(len(values))
	e.Add(values...)
}
