package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-framework/tdf/internal/class"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/web"
)

// An apiUser makes the same calls over HTTP and with the Go API. Client and API are one process.
type apiUser struct {
	*testing.B
	direct     *caller
	manager    *manager.Manager
	url, token string
	client     *http.Client
	session    string
	claims     int
}

func newAPIUser(b *testing.B) *apiUser {
	r := emptyRedis(b)
	m, err := manager.New(manager.Options{Namespace: "bench", Redis: config.Redis{Host: "127.0.0.1", Port: r.Port}})
	check(b, err)
	b.Cleanup(func() { m.Close() })
	token, err := admin.New(m).AddToken(b.Context(), access.Token{Name: "t", Role: access.Operator})
	check(b, err)
	s := httptest.NewServer(web.New(m, web.Options{PerAddress: 1 << 20, PerToken: 1 << 20}))
	b.Cleanup(s.Close)
	u := &apiUser{B: b, direct: newCaller(b, r), manager: m, url: s.URL, token: token, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	b.Cleanup(u.client.CloseIdleConnections)
	u.direct.offer = &class.Offer{Anything: true}
	u.session = register(b, u.url, token, `{"name":"w","lease":300}`)
	return u
}

// call makes a call, and reads its answer into v if v is not nil.
func (u *apiUser) call(method, path string, body, v any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(u.Context(), method, u.url+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if body == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("Authorization", "Bearer "+u.token)
	answer, err := u.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d %.200s", method, path, answer.StatusCode, text)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(text, v)
	}
	return err
}

func definitions(n int) []manager.Definition {
	all := make([]manager.Definition, n)
	for i := range all {
		all[i] = manager.Definition{Program: "bench", Input: hundred(i)}
	}
	return all
}

func (u *apiUser) openDirectly() error {
	_, err := u.manager.Open(u.Context(), definitions(100)...)
	return err
}

func (u *apiUser) open() error { return u.call(http.MethodPost, "/tasks", definitions(100), nil) }

func (u *apiUser) workDirectly() error {
	claims, err := u.direct.claim(u.Context(), 100)
	if err == nil {
		err = u.direct.execute(u.Context(), claims)
	}
	return err
}

func (u *apiUser) work() error {
	type run struct {
		ID     int64  `json:"id"`
		Round  int    `json:"round"`
		Claim  string `json:"claim"`
		Action string `json:"action"`
		Stdout string `json:"stdout"`
	}
	for done := 0; done < 100; {
		var claimed struct{ Tasks []run }
		u.claims++
		if err := u.call(http.MethodPost, "/work/"+u.session+"/claims", map[string]int{"most": 100 - done, "number": u.claims}, &claimed); err != nil {
			return err
		}
		for i := range claimed.Tasks {
			claimed.Tasks[i].Action, claimed.Tasks[i].Stdout = "complete", "done"
		}
		if err := u.call(http.MethodPost, "/work/"+u.session+"/reports", claimed.Tasks, nil); err != nil {
			return err
		}
		if done += len(claimed.Tasks); len(claimed.Tasks) == 0 {
			return fmt.Errorf("claimed %d of 100 tasks", done)
		}
	}
	return nil
}

func (u *apiUser) listDirectly() error {
	_, err := u.manager.Page(u.Context(), manager.Query{}, "", 1000)
	return err
}

func (u *apiUser) list() error { return u.call(http.MethodGet, "/tasks?limit=1000", nil, nil) }

// BenchmarkAPI compares the HTTP API with the Go API: how fast it opens 100 tasks in a call, claims and completes 100 tasks, and lists 1,000. It also
// measures how many tasks 16 clients open one by one in a second.
func BenchmarkAPI(b *testing.B) {
	u := newAPIUser(b)
	for _, c := range []struct {
		name            string
		direct, overAPI func() error
	}{{"open", u.openDirectly, u.open}, {"work", u.workDirectly, u.work}, {"list", u.listDirectly, u.list}} {
		var ratios []float64
		for range 9 {
			direct, overAPI := u.timeOf(c.direct), u.timeOf(c.overAPI)
			ratios = append(ratios, direct.Seconds()/overAPI.Seconds())
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[4], c.name+"/go")
	}
	b.ReportMetric(u.singles(16, 200), "singles/s")
	b.ReportMetric(0, "ns/op")
}

// timeOf returns how long ten calls take.
func (u *apiUser) timeOf(do func() error) time.Duration {
	begun := time.Now()
	for range 10 {
		check(u.B, do())
	}
	return time.Since(begun)
}

// singles returns how many tasks clients open in a second, each of them n tasks one by one.
func (u *apiUser) singles(clients, n int) float64 {
	begun := time.Now()
	var wait sync.WaitGroup
	errs := make(chan error, clients)
	for range clients {
		wait.Go(func() {
			for range n {
				if err := u.call(http.MethodPost, "/tasks", definitions(1)[0], nil); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		check(u.B, err)
	}
	return float64(clients*n) / time.Since(begun).Seconds()
}
