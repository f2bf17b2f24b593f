package worker

import (
	"os"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

// in makes a task run the command in its input, in a directory.
func in(dir string) func(*task.Properties) {
	return func(p *task.Properties) { p.Source = "exec:" + dir }
}

// A command runs in its directory, with its words as they are. If it does not start, the round says why.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", os.Getenv("PATH")+":"+dir)
	for name, text := range map[string]string{
		"tool": "#!/bin/sh\necho tool in $(pwd)\n", "plain": "echo no first line: $1\n", "none": "#!/no/such/sh\n",
	} {
		must(t, os.WriteFile(dir+"/"+name, []byte(text), 0o755))
	}
	must(t, os.WriteFile(dir+"/data", nil, 0o644))
	w := newWorld(t)
	for input, want := range map[string]struct{ exit, output, reason string }{
		"echo 'a  b' '$HOME' ; '*'": {"0", "a  b $HOME ; *\n", ""},
		"pwd":                       {"0", dir + "\n", ""},
		"tool":                      {"0", "tool in " + dir + "\n", ""},
		"./tool":                    {"0", "tool in " + dir + "\n", ""},
		dir + "/tool":               {"0", "tool in " + dir + "\n", ""},
		"plain x":                   {"0", "no first line: x\n", ""},
		"false":                     {"1", "", ""},
		"no-such-tool":              {"127", "", "command not found: no-such-tool; it is in no directory of PATH (/"},
		"./nothing x":               {"127", "", "command not found: ./nothing; there is no file " + dir + "/nothing"},
		"./data":                    {"126", "", dir + "/data is not executable; chmod +x makes it so"},
		"/":                         {"126", "", "start /: / is a directory"},
		"./none":                    {"126", "", "start " + dir + "/none: "},
		"":                          {"127", "", "the input is empty: want a command and its arguments"},
	} {
		id := w.open(input, in(dir))
		w.runOnce(w.worker())
		r := w.task(id).Current()
		expect.Equal(t, r.Exit, want.exit, input)
		expect.Equal(t, r.Output, want.output, input)
		expect.Contains(t, r.Error, want.reason, input)
	}
	id := w.open("true", in(dir+"/gone"))
	w.runOnce(w.worker())
	expect.Equal(t, w.task(id).State, tdf.Open)
	expect.Equal(t, w.task(id).UnfitHosts, 1, "another worker may have the directory")
}

// Each round of exec: has a directory of its own, which ends with the round.
func TestCommandsInTheirOwnDirectory(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		id := w.open("sh -c 'ls; touch file; pwd'", in(""))
		w.runOnce(w.worker())
		dir := w.task(id).LastOutput()
		expect.Contains(t, dir, "/scratch\n")
		expect.NotContains(t, dir, "file\n")
		_, err := os.Stat(dir[:len(dir)-1])
		expect.True(t, os.IsNotExist(err), err)
	}
}
