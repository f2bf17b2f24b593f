package cmd_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// The example mapreduce counts words, while the test kills its managers, the server and the workers at random. The counts
// are right.
func TestSoakMapReduce(t *testing.T) {
	files, kills := 24, 5
	if os.Getenv("TDF_SOAK") != "" {
		files, kills = 250, 100
	}
	seed := rand.Uint64()
	if given := os.Getenv("TDF_SEED"); given != "" {
		seed = expect.Result(strconv.ParseUint(given, 10, 64)).Value(t)
	}
	t.Logf("TDF_SEED=%d makes the same files and the same kills", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSite(t)
	texts, want := someTexts(t, random, files)

	newManager := func() *process {
		return start(t, "mapreduce", append([]string{"-config", s.config(""), "-run", "r"}, texts...)...)
	}
	starts := []func() *process{
		newManager, newManager,
		func() *process { return start(t, "tdf-server", "s", s.config("")) },
		func() *process { return s.worker("w1", "concurrency=2\nkill_grace=0.05\n") },
		func() *process { return s.worker("w2", "kill_grace=0.05\n") },
	}
	running := make([]*process, len(starts))
	for i, again := range starts {
		running[i] = again()
	}
	killed := 0
	for ; killed < kills; killed++ {
		s.awaitCommands(random.IntN(500))
		if running[0].hasEnded() || running[1].hasEnded() {
			break
		}
		i := random.IntN(len(starts))
		running[i].cmd.Process.Kill() // a manager may have ended since the check
		<-running[i].ended
		running[i] = starts[i]()
	}
	for _, m := range running[:2] {
		m.exits(0, "")
		expect.Equal(t, m.stdout.String(), want, "the counts")
	}
	counts := expect.Result(s.store.Counts(t.Context())).Value(t)
	left := counts.Unfinished() + counts.Waiting()
	expect.True(t, left == 0, "after", killed, "kills", counts)
	t.Logf("%d kills, %v", killed, counts)
	for _, worker := range running[3:] {
		worker.logs("msg=working") // earlier, a signal may end it before it has removed what the killed process left
	}
	for _, p := range running[2:] {
		p.signal(syscall.SIGTERM)
		<-p.ended
	}
	s.nothingRemains()
}

// awaitCommands waits until Redis has got so many more commands.
func (s *site) awaitCommands(more int) {
	s.Helper()
	commands := func() int64 {
		return expect.Result(s.store.Conn.Info(s.Context(), "stats")).Value(s).Number("total_commands_processed")
	}
	until := commands() + int64(more)
	eventually(s, "Redis has got more commands", func() bool { return commands() >= until })
}

// someTexts writes text files, and returns their paths and the counts of their words.
func someTexts(t *testing.T, random *rand.Rand, files int) (paths []string, counts string) {
	t.Helper()
	numbers := map[string]int{}
	dir := t.TempDir()
	for i := range files {
		var text strings.Builder
		for range random.IntN(200) {
			word := fmt.Sprintf("w%c%c", 'a'+random.IntN(5), 'a'+random.IntN(26))
			numbers[word]++
			text.WriteString(word + []string{" ", "\n", ", "}[random.IntN(3)])
		}
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("text %d", i)))
		must(t, os.WriteFile(paths[i], []byte(text.String()), 0o644))
	}
	var lines []string
	for word, n := range numbers {
		lines = append(lines, fmt.Sprintf("%s=%d\n", word, n))
	}
	slices.Sort(lines)
	return paths, strings.Join(lines, "")
}
