package worker

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

func TestShebang(t *testing.T) {
	for head, want := range map[string][2]string{
		"#!/bin/sh\nx": {"/bin/sh"}, "#! \t/bin/sh -e\n": {"/bin/sh", "-e"}, "#!/a\tb": {"/a", "b"}, "#!/bin/sh\r\n": {"/bin/sh\r"},
		"#!/a  b c \t\n": {"/a", "b c"}, "#!/a b\r\n": {"/a", "b\r"},
		"#!": {}, "#!\n/bin/sh": {}, "": {"-"}, "#": {"-"}, " #!/bin/sh": {"-"},
	} {
		interpreter, argument, ok := shebang([]byte(head))
		got := [2]string{interpreter, argument}
		if !ok {
			got = [2]string{"-"}
		}
		expect.Equal(t, got, want, head)
	}
}

func TestEnvFinds(t *testing.T) {
	for line, want := range map[string]string{
		"#!/usr/bin/env python9": "python9", "#! /bin/env python9 ": "python9", "#!/usr/bin/env -S python9 -u": "python9",
		"#!/usr/bin/env -Spython9": "python9", "#!/usr/bin/env -S python9\r": "python9", "#!/usr/bin/env python9\r": "python9\r",
		"#!/usr/bin/env /opt/python9": "/opt/python9",
		"#!/usr/bin/env":              "", "#!/usr/bin/env -S": "", "#!/usr/bin/python9": "", "#!/opt/env python9": "", "/usr/bin/env python9": "",
		"#!/usr/bin/env python9 -u": "", "#!/usr/bin/env -i python9": "", "#!/usr/bin/env -S -i python9": "", "#!/usr/bin/env -vS python9": "",
		"#!/usr/bin/env -S X=1 python9": "", "#!/usr/bin/env X=1": "", "#!/usr/bin/env -S ${PY}": "", "#!/usr/bin/env -S 'python9' -u": "",
		"#!/usr/bin/env ./own": "", "#!/usr/bin/env -S bin/own -u": "",
	} {
		expect.Equal(t, envFinds(shebang([]byte(line+"\n"))), want, line)
	}
}

// The worker searches for the interpreter in the PATH of the program, since an env_file may set another PATH. Relative
// elements of PATH are relative to the program's directory.
func TestEnvLooksInTheProgramsPath(t *testing.T) {
	for name, c := range map[string]struct {
		path string // in the program's directory, b/own is a program, c/own is a directory, and d/own is not executable
		ok   bool
	}{
		"there": {"/none:$dir/a:$dir/b", true}, "not there": {"/none:$dir/a", false}, "relative": {"b", true}, "itself": {"", false},
		"a directory": {"$dir/c", false}, "not executable": {"$dir/d", false}, "no directory": {"$dir/run.sh", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script("p", "#!/usr/bin/env own\necho good\n")
			for _, dir := range []string{"a", "b", "c/own", "d"} {
				must(t, os.MkdirAll(w.path("p", dir), 0o755))
			}
			must(t, os.Symlink("/bin/sh", w.path("p/b/own")))
			must(t, os.WriteFile(w.path("p/d/own"), nil, 0o644))
			w.cfg.EnvFile = "$program.env"
			path := os.Expand(c.path, func(string) string { return w.path("p") })
			must(t, os.WriteFile(w.path("p.env"), []byte("PATH="+path+"\n"), 0o600))
			id := w.open("")
			w.runOnce(w.worker())
			task := w.task(id)
			if c.ok {
				expect.Equal(t, task.LastOutput(), "good\n")
			}
			if !c.ok {
				expect.Equal(t, task.State, tdf.Open)
				expect.Equal(t, task.Releases, 1)
				expect.Equal(t, task.UnfitHosts, 1)
			}
		})
	}
}
