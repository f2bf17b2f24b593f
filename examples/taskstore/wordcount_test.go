// Package taskstore tests an example that uses the TaskStore interface.
package taskstore

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/web/taskstore"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "./wordcount.py", args...)
	c.Env, c.Stderr, c.WaitDelay = env, t.Output(), time.Minute
	return c
}

// Workers that are killed at any moment lose no text, and count none twice.
func TestKilledWorkers(t *testing.T) {
	m := testspace.Manager(t, testspace.Config(t, redistest.Shared(t)))
	api := httptest.NewServer(web.New(m, web.Options{Log: testspace.Silent, Interfaces: []wire.Interface{{Prefix: "/ts", Routes: taskstore.Routes(m)}}}))
	defer api.Close()
	token := webtest.AddToken(t, m, access.Token{Name: "t", Role: access.Operator})
	env := append(os.Environ(), "TDF_TASKSTORE="+api.URL+"/ts", "TDF_TOKEN="+token)
	const texts, kills = 40, 4
	var all []string
	want := map[string]int{}
	for i := range texts {
		all = append(all, fmt.Sprintf("the text %d has the word%d", i, i%7))
		for word, n := range map[string]int{"the": 2, "text": 1, fmt.Sprint(i): 1, "has": 1, fmt.Sprint("word", i%7): 1} {
			want[word] += n
		}
	}
	expect.NoError(t, command(t, env, all...).Run())
	left := func() int {
		page := expect.Result(m.Page(t.Context(), manager.Query{Group: "map", States: []tdf.State{tdf.Open}}, "", texts)).Value(t)
		return len(page.Tasks)
	}
	for range kills {
		before := left()
		c := command(t, env)
		expect.NoError(t, c.Start())
		few := before - 1 - rand.IntN(4)
		expect.Eventually(t, "the worker goes on", func() bool { return left() <= max(few, 0) })
		expect.NoError(t, c.Process.Kill())
		_ = c.Wait()
	}
	printed := make(chan []byte)
	for range 3 {
		go func() {
			text := expect.Result(command(t, env).Output()).Value(t)
			printed <- text
		}()
	}
	for range 3 {
		got := map[string]int{}
		expect.NoError(t, json.Unmarshal(<-printed, &got))
		expect.Equal(t, got, want)
	}
}
