package web

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/broker"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/internal/worker/resources"
	"github.com/tdf-framework/tdf/manager"
)

const machine = `"machine":{"cores":[{"number":0},{"number":2,"node":1}],"memory":2147483648,"gpus":["GPU-a","1"]}`

// asking defines tasks that ask for resources.
func asking(requests ...string) (all []manager.Definition) {
	for _, text := range requests {
		all = append(all, manager.Definition{Program: "p", Resources: text})
	}
	return all
}

// A worker over HTTP says what it offers and what is free. Each task gets its share, and waits if it does not fit.
func TestResourcesOfOtherWorkers(t *testing.T) {
	s := newSite(t, Options{})
	s.open(asking("gpus=1 memory=1G", "gpus=1 licence=0.5", "cpus=1", "gpus=3")...)
	got := s.call(s.tokens[access.Worker], "POST", base+"/work", `{"name":"w","slots":2,"resources":"auto licence=1",`+machine+`}`)
	r := webtest.Decode[broker.Registered](t, got.text)
	expect.Equal(t, r.Slots, 8)
	w := &remoteWorker{s, s.tokens[access.Worker], r.Session}
	claim := func(free []resources.Stock) []broker.ClaimedTask {
		return w.claim(`{"most":8,"free":` + string(expect.Result(json.Marshal(free)).Value(t)) + `}`).Tasks
	}
	tasks := claim(r.Free)
	expect.MustLen(t, tasks, 2, "there are two cores")
	expect.Equal(t, tasks[0].Resources, "cpus=1 gpus=1 memory=1G")
	expect.Equal(t, tasks[0].Share.Cores, []int{0})
	expect.Equal(t, tasks[0].Share.Memory, 1<<30)
	expect.Contains(t, fmt.Sprint(tasks[0].Share.Env), "OMP_NUM_THREADS=1")
	expect.Contains(t, fmt.Sprint(tasks[0].Share.Env), "CUDA_VISIBLE_DEVICES=GPU-a")
	expect.Contains(t, fmt.Sprint(tasks[1].Share.Env), "CUDA_VISIBLE_DEVICES=1")
	for _, x := range append(tasks[0].Share.Taken, tasks[1].Share.Taken...) {
		for i := range r.Free {
			for j := range r.Free[i].Pieces {
				if r.Free[i].Name == x.Name && r.Free[i].Pieces[j].Label == x.Label {
					r.Free[i].Pieces[j].Free -= x.Units
				}
			}
		}
	}
	expect.Len(t, claim(r.Free), 0, "both cores are taken")
	expect.Len(t, claim([]resources.Stock{}), 0, "nothing is free")
	waited := make(chan answer)
	full := string(expect.Result(json.Marshal(r.Free)).Value(t))
	go func() {
		waited <- w.call(w.token, "POST", base+"/work/"+w.session+"/claims", `{"wait":40,"free":`+full+`}`)
	}()
	for waits := true; waits; { // until a report has ended the claim
		w.report(tasks[0], `"action":"complete"`)
		select {
		case got := <-waited:
			expect.Contains(t, got.text, `"tasks":[]`)
			waits = false
		default:
		}
	}
	w.post(200, "heartbeat", `{"runs":[1,2],"free":`+string(expect.Result(json.Marshal(r.Free)).Value(t))+`}`)
	expect.Contains(t, s.as(access.Operator, 200, "GET", base+"/workers", "").text, `"cpus=2 gpus=2 licence=0.5 memory=1G"`)
	w.refused(422, "claims", `{}`, `{"free":null}`, `{"free":{}}`, `{"free":[{"name":"cpus","pieces":[{"free":10001}]}]}`, `{"free":[{"name":"gpus","pieces":[{"free":1e99}]}]}`)
	w.refused(422, "heartbeat", `{"free":[{"name":"cpus","pieces":[{"free":-1}]}]}`)
	other := s.begin(s.tokens[access.Worker], "plain", "")
	expect.Len(t, other.claim(`{"most":8}`).Tasks, 0, "it offers no resources")
}

func TestHostileOffers(t *testing.T) {
	s := newSite(t, Options{})
	for _, more := range []string{
		`"resources":"cpus=-1"`, `"resources":"cpus=nan"`, `"resources":"gpus=1"`, `"resources":"auto"`, `"resources":"cpus=1e9"`, `"resources":5`,
		`"resources":"auto","machine":{"cores":[{"number":-1}]}`, `"resources":"auto","machine":{"cores":[{"number":0}],"variable":"PATH"}`, `"machine":{"memory":-1}`,
		`"resources":"auto","machine":{"cores":[{"number":0}],"gpus":["0,1"]}`, `"machine":[]`,
	} {
		got := s.call(s.tokens[access.Worker], "POST", base+"/work", `{"name":"w",`+more+`}`)
		expect.Equal(t, got.StatusCode, 422, more, got.text)
	}
}
