package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The README's commands, as they stand there, do what it says. Only the id of a group of failures is
// filled in, and questions are answered beforehand.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## From a terminal\n")
	section, _, _ = strings.Cut(section, "\n## ")
	shown := regexp.MustCompile(`(?m)^    bin/(tdf .*)$`).FindAllStringSubmatch(section, -1)
	if len(shown) != 6 || shown[0][1] != "tdf up" {
		t.Fatalf("the commands of the README are %q", shown)
	}
	script := "serve 2\n"
	for _, command := range shown[1:] {
		line := command[1]
		if strings.Contains(line, " ID ") {
			script += mend + "exec sh -c '" + strings.Replace(line, " ID ", " $(cut -f1 group) ", 1) + " --yes'\n"
			continue
		}
		script += line + "\n"
		if strings.Contains(line, "--until-done") {
			script = strings.TrimSuffix(script, line+"\n") + "status 3 " + line + "\n"
		}
	}
	script += after + "-- root/run.sh --\n" + fenced(t, section, "shell") + "-- numbers.csv --\n" + fenced(t, section, "csv")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "readme.txt"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Dir: dir, Setup: setUp, Cmds: scriptCommands})
}

// mend is what the reader is told to do: the failures are looked at, and the line of the 7 is taken out.
const mend = `stdout '2\t.*no root of'
exec sh -c 'tdf failures --campaign roots | grep "exit status 7" >group'
exec sh -c 'grep -v mistake root/run.sh >new && cp new root/run.sh'
`

const after = `stdout '^id,.*n,unit,'
stdout '^3,.*succeeded.*2\.64575'
stdout '^2,.*failed.*no root of -4'
`

func fenced(t *testing.T, section, language string) string {
	t.Helper()
	_, block, ok := strings.Cut(section, "```"+language+"\n")
	if !ok {
		t.Fatalf("the README shows no %s there", language)
	}
	block, _, _ = strings.Cut(block, "```")
	return block
}
