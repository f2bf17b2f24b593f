package taskstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/leaktest"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/web/taskstore"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

func TestMain(m *testing.M) { os.Exit(leaktest.M{M: m}.Run()) }

// A site is the interface, served by two processes, whose turns alternate.
type site struct {
	testing.TB
	*manager.Manager
	processes []*manager.Manager
	servers   []http.Handler
	tokens    map[access.Role]string

	mu    sync.Mutex
	calls int
}

func newSite(t testing.TB) *site {
	t.Helper()
	cfg := testspace.Config(t, redistest.Shared(t))
	s := &site{TB: t}
	for range 2 {
		s.Manager = testspace.Manager(t, cfg)
		s.processes = append(s.processes, s.Manager)
		s.servers = append(s.servers, web.New(s.Manager, web.Options{Timeout: time.Hour, Log: testspace.Silent, Interfaces: []wire.Interface{{Prefix: "/ts", Routes: taskstore.Routes(s.Manager)}}}))
	}
	s.tokens = webtest.Tokens(t, s.Manager)
	return s
}

func (s *site) as(role access.Role, status int, method, path, body string, headers ...string) string {
	s.Helper()
	s.mu.Lock()
	s.calls++
	server := s.servers[s.calls%2]
	s.mu.Unlock()
	w := httptest.NewRecorder()
	server.ServeHTTP(w, webtest.Call(s.Context(), s.tokens[role], method, "/ts"+path, body, headers...))
	expect.Equal(s, w.Code, status, method, path, body, w.Body)
	return strings.TrimSpace(w.Body.String())
}

func (s *site) get(path string) string {
	s.Helper()
	return s.as(access.Operator, 200, "GET", path, "")
}

// A task is a task in an answer.
type taskJSON struct {
	ID                 int64
	Group, Data        string
	Timespec, Duration int64
	OwnerID            int32
}

// An answer is the answer to an update or a claim.
type answer struct {
	Tasks []taskJSON
	Error *struct {
		Changes, Deletes, Depends, Owned []int64
		Bugs                             []string
	}
}

func (s *site) post(path, body string) (a answer) {
	s.Helper()
	text := s.as(access.Operator, 200, "POST", path, body)
	expect.NoError(s, json.Unmarshal([]byte(text), &a), text)
	return a
}

// made returns the tasks that a successful call has made.
func (s *site) made(path, body string) []taskJSON {
	s.Helper()
	a := s.post(path, body)
	expect.MustTrue(s, a.Error == nil, path, body, a.Error)
	return a.Tasks
}

func (s *site) now() int64 { return expect.Result(s.Now(s.Context())).Value(s).UnixMilli() }

func (s *site) list(path string) (all []*taskJSON) {
	s.Helper()
	expect.NoError(s, json.Unmarshal([]byte(s.get(path)), &all))
	return all
}

func data(all []*taskJSON) string {
	var texts []string
	for _, t := range all {
		texts = append(texts, t.Data)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// The ids of new tasks are larger than all earlier ones. A change gives the task a new id, and the old one never exists again.
func TestIDsNameVersions(t *testing.T) {
	s := newSite(t)
	first := s.made("/update", `{"clientid":1643,"adds":[{"group":"map","data":"/path/to/file:1024:2048"},{"group":"map","data":"/path/to/file:2048:3096","id":7}]}`)
	expect.MustLen(t, first, 2)
	expect.Compare(t, first[1].ID, ">", first[0].ID)
	expect.Equal(t, first[0].Data+first[0].Group, "/path/to/file:1024:2048map")
	got := s.get(fmt.Sprint("/task/", first[0].ID))
	for _, member := range []string{`"id":`, `"group":"map"`, `"data":"/path/to/file:1024:2048"`, `"timespec":`, `"ownerid":1643`} {
		expect.Contains(t, got, member)
	}
	second := s.made("/update", fmt.Sprintf(`{"clientid":1643,"adds":[{"group":"other"}],"updates":[{"id":%d,"data":"some data","group":"ignored"}]}`, first[0].ID))
	expect.MustLen(t, second, 2)
	expect.MustEqual(t, second[0].Group, "other")
	expect.MustEqual(t, second[1].Group, "map")
	expect.Equal(t, second[1].Data, "some data")
	expect.MustTrue(t, second[0].ID > first[1].ID, "adds first, and growing ids", second)
	expect.Compare(t, second[1].ID, ">", second[0].ID)
	expect.Equal(t, s.get(fmt.Sprint("/task/", first[0].ID)), "null")
	all := s.list(fmt.Sprintf("/tasks/%d,%d,99999,%d", second[1].ID, first[0].ID, first[1].ID))
	expect.MustLen(t, all, 4)
	expect.MustEqual(t, all[0].ID, second[1].ID)
	expect.MustEqual(t, all[1], nil)
	expect.MustEqual(t, all[2], nil)
	expect.Equal(t, all[3].ID, first[1].ID)
	s.made("/update", fmt.Sprintf(`{"clientid":1,"deletes":[%d,%d,%d]}`, first[1].ID, second[0].ID, second[1].ID))
	last := s.made("/update", `{"clientid":1,"adds":[{"group":"map"}]}`)
	expect.MustTrue(t, last[0].ID > second[1].ID, last)
	expect.Equal(t, last[0].Data, "")
	expect.Equal(t, s.get(fmt.Sprint("/task/", second[1].ID)), "null")
}

// A positive time is absolute. A negative time, and zero, count from now: in milliseconds in timespec, and in nanoseconds in duration.
func TestTimes(t *testing.T) {
	s := newSite(t)
	now := s.now()
	for body, want := range map[string]int64{
		`"timespec":60000`: 60000, `"timespec":-60000`: now + 60_000, `"timespec":0`: now, ``: now,
		`"duration":60000000000`: 60_000, `"duration":-60000000000`: now + 60_000, `"duration":0`: now, `"timespec":1,"duration":-5`: 1,
	} {
		if body != "" {
			body += ","
		}
		got := s.made("/update", `{"clientid":1,"adds":[{"group":"g",`+body+`"data":"x"}]}`)
		off := got[0].Timespec - want
		if off != 0 {
			expect.Compare(t, want, ">=", now, body)
			expect.Compare(t, off, ">", 0, body)
			expect.Compare(t, off, "<", 60_000, body)
		}
		expect.Equal(t, got[0].Duration/1e6, got[0].Timespec, body)
	}
}

// A call whose tasks are not all there, or belong to another client, changes nothing, and names all of them.
func TestAllOrNothing(t *testing.T) {
	s := newSite(t)
	made := s.made("/update", `{"clientid":1,"adds":[{"group":"g","data":"a"},{"group":"g","data":"b","timespec":-60000},{"group":"g","data":"c","timespec":-60000}]}`)
	a, b, c := made[0].ID, made[1].ID, made[2].ID
	body := `{"clientid":%d,"adds":[{"group":"new"}],"updates":[{"id":%d},{"id":901},{"id":%d},{"id":902}],"deletes":[903,%d,904],"depends":[905,%d,906]}`
	got := s.post("/update", fmt.Sprintf(body, 2, a, b, c, a))
	expect.MustTrue(t, got.Error != nil, got)
	expect.MustLen(t, got.Tasks, 0)
	expect.Equal(t, fmt.Sprint(got.Error.Changes, got.Error.Deletes, got.Error.Depends, got.Error.Owned, got.Error.Bugs),
		fmt.Sprintf("[901 902] [903 904] [905 906] [%d %d] []", b, c))
	expect.Equal(t, data(s.list("/group/g?owned=true")), "a b c")
	expect.Equal(t, s.get("/groups"), `["g"]`)
	got = s.post("/update", fmt.Sprintf(`{"clientid":2,"depends":[%d]}`, b))
	expect.Equal(t, got.Error, nil)
	expect.Len(t, got.Tasks, 0)
	made = s.made("/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"data":"A"}],"deletes":[%d],"depends":[%d,%d]}`, a, b, c, c))
	expect.MustLen(t, made, 1)
	expect.Equal(t, made[0].Data, "A")
	expect.Equal(t, data(s.list("/group/g?owned=true")), "A c")
	s.as(access.Operator, 400, "POST", "/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d}],"deletes":[%d]}`, c, c))
}

// A claimed task belongs to its client until its time comes. Then anyone may claim it; until then, the late owner can still change it.
func TestOwnership(t *testing.T) {
	s := newSite(t)
	s.made("/update", `{"clientid":1,"adds":[{"group":"g","data":"a"}]}`)
	claimed := s.made("/claim", `{"clientid":1,"group":"g","duration":60000000000}`)
	expect.MustLen(t, claimed, 1)
	expect.MustEqual(t, claimed[0].OwnerID, 1)
	expect.MustEqual(t, claimed[0].Data, "a")
	expect.Compare(t, claimed[0].Timespec, ">", s.now()+30_000)
	expect.Len(t, s.made("/claim", `{"clientid":2,"group":"g","duration":60000000000}`), 0, "a task that is owned")
	id := claimed[0].ID
	got := s.post("/update", fmt.Sprintf(`{"clientid":2,"updates":[{"id":%d}]}`, id))
	expect.MustTrue(t, got.Error != nil, got)
	expect.Equal(t, got.Error.Owned, []int64{id})

	renewed := s.made("/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"data":"a","timespec":-120000}]}`, id))
	expect.MustTrue(t, renewed[0].Timespec > claimed[0].Timespec, renewed)
	expect.Compare(t, renewed[0].ID, ">", id)
	over := s.made("/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"data":"a"}]}`, renewed[0].ID)) // its time is now
	late := s.made("/update", fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"data":"late"}]}`, over[0].ID))
	expect.Equal(t, late[0].Data, "late", "the late owner's change")
	stolen := s.made("/claim", `{"clientid":2,"group":"g","duration":60000000000}`)
	expect.MustLen(t, stolen, 1)
	expect.MustEqual(t, stolen[0].OwnerID, 2)
	expect.Equal(t, stolen[0].Data, "late")
	got = s.post("/update", fmt.Sprintf(`{"clientid":1,"deletes":[%d]}`, late[0].ID))
	expect.MustTrue(t, got.Error != nil, "the task was claimed by another client", got)
	expect.Equal(t, got.Error.Deletes, []int64{late[0].ID})
	s.made("/update", fmt.Sprintf(`{"clientid":2,"deletes":[%d]}`, stolen[0].ID))
}

// A list has each task once, although clients replace tasks by new versions with earlier times while it is read.
func TestListsWhileTasksChange(t *testing.T) {
	s := newSite(t)
	const n = 450 // several reads
	adds, want := make([]string, n), make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("%03d", i)
		adds[i] = `{"group":"g","timespec":9000000000000,"data":"` + want[i] + `"}`
	}
	made := s.made("/update", `{"clientid":1,"adds":[`+strings.Join(adds, ",")+`]}`)
	changer := testspace.Manager(t, managing.Of(s.Manager).Config)
	handler := web.New(changer, web.Options{Log: testspace.Silent, Interfaces: []wire.Interface{{Prefix: "/ts", Routes: taskstore.Routes(changer)}}})
	for _, process := range s.processes {
		managing.Of(process).Store.Conn.Redis.AddHook(&meddling{func() {
			if len(made) < n-5 {
				return
			}
			last := made[len(made)-1]
			made = made[:len(made)-1]
			body := fmt.Sprintf(`{"clientid":1,"updates":[{"id":%d,"data":%q,"timespec":1}]}`, last.ID, last.Data)
			handler.ServeHTTP(httptest.NewRecorder(), webtest.Call(t.Context(), s.tokens[access.Operator], "POST", "/ts/update", body))
		}})
	}
	expect.Equal(t, data(s.list("/group/g?owned=1")), strings.Join(want, " "))
	expect.Compare(t, len(made), "<", n)
}

// A meddling hook changes the tasks of a place after each call that lists them.
type meddling struct{ change func() }

func (m *meddling) DialHook(next redis.DialHook) redis.DialHook { return next }

func (m *meddling) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (m *meddling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "zrangebylex" {
			m.change()
		}
		return err
	}
}

// A claim gets a task of one group. It gets nothing, and changes nothing, if tasks that it depends on are gone, even if there is no task to claim.
func TestClaims(t *testing.T) {
	s := newSite(t)
	adds := make([]string, 40)
	for i := range adds {
		adds[i] = fmt.Sprintf(`{"group":"g","data":"%02d"}`, i)
	}
	made := s.made("/update", `{"clientid":1,"adds":[{"group":"other","data":"x"},`+strings.Join(adds, ",")+`]}`)
	depends := fmt.Sprintf(`[%d,901,%d,902]`, made[0].ID, made[1].ID)
	for _, group := range []string{"g", "none"} {
		got := s.post("/claim", `{"clientid":1,"group":"`+group+`","duration":60000000000,"depends":`+depends+`}`)
		expect.MustTrue(t, got.Error != nil, got)
		expect.Len(t, got.Tasks, 0)
		expect.Equal(t, got.Error.Depends, []int64{901, 902})
	}
	expect.Len(t, s.list("/group/g"), 40)
	var order []string
	for range adds {
		got := s.made("/claim", fmt.Sprintf(`{"clientid":1,"group":"g","duration":60000000000,"depends":[%d]}`, made[0].ID))
		expect.MustLen(t, got, 1)
		expect.MustEqual(t, got[0].Group, "g")
		order = append(order, got[0].Data)
	}
	expect.Equal(t, s.as(access.Operator, 200, "POST", "/claim", `{"clientid":1,"group":"g","duration":1}`), `{"tasks":[],"error":null}`)
	expect.True(t, !slices.IsSorted(order), "40 claims had the order of the tasks, instead of a random one")
	slices.Sort(order)
	expect.Len(t, slices.Compact(order), 40)
}

// The list of a group has all tasks whose time has come, and with owned also the others, up to the limit.
func TestLists(t *testing.T) {
	s := newSite(t)
	expect.Equal(t, s.get("/groups")+s.get("/group")+s.get("/group/g"), "[][][]")
	expect.Result(s.Open(t.Context(), manager.Definition{Program: "p", Group: "campaign"})).OK(t)
	s.made("/update", `{"clientid":1,"adds":[{"group":"g","data":"a"},{"group":"g","data":"b"},{"group":"g","data":"c","timespec":-60000},{"group":"a/b c","data":"d"}]}`)
	for path, want := range map[string]string{
		"/group/g": "a b", "/group/g?owned=no": "a b", "/group/g?owned=0": "a b", "/group/g?owned=False": "a b", "/group/g?owned=1": "a b c", "/group/g?owned=yes": "a b c",
		"/group/g?owned=true&limit=0": "a b c", "/group/a%2Fb%20c": "d", "/group/none": "", "/group/campaign": "",
	} {
		expect.Equal(t, data(s.list(path)), want, path)
	}
	expect.Len(t, s.list("/group/g?limit=1"), 1)
	expect.Equal(t, s.get("/groups"), `["a/b c","g"]`)
	expect.Equal(t, s.get("/group"), `["a/b c","g"]`)
	ids := ""
	for _, x := range s.list("/group/g?owned=1") {
		ids += fmt.Sprint(",", x.ID)
	}
	s.made("/update", `{"clientid":1,"deletes":[`+ids[1:]+`]}`)
	expect.Equal(t, s.get("/groups"), `["a/b c"]`, "a group without tasks")
	for _, path := range []string{"/group/g?limit=x", "/group/g?limit=-1", "/group/g?owned=maybe", "/task/x", "/task/1,2", "/tasks/1,,2", "/tasks/1x", "/task/99999999999999999999", "/tasks/" + strings.Repeat("1,", 1000) + "1"} {
		s.as(access.Operator, 400, "GET", path, "")
	}
}

// The body is JSON, or a form with JSON in a field. curl sends JSON as if it were a form.
func TestBodies(t *testing.T) {
	s := newSite(t)
	form := "Content-Type: application/x-www-form-urlencoded"
	update, claim := `{"clientid":1,"adds":[{"group":"g","data":"a+b&c=%41"}]}`, `{"clientid":1,"group":"g","duration":1}`
	for _, body := range []string{update, "update=" + url.QueryEscape(update)} {
		expect.Contains(t, s.as(access.Operator, 200, "POST", "/update", body, form), `"data":"a+b&c=%41"`)
	}
	expect.Contains(t, s.as(access.Operator, 200, "POST", "/claim", "x=1&claim="+url.QueryEscape(claim), form), `"ownerid":1`)
	expect.Contains(t, s.as(access.Operator, 200, "POST", "/claim", claim, "Content-Type: application/json"), `"ownerid":1`)
	for _, body := range []string{
		"", "x", "[]", "null", `"a"`, "claim=" + claim, "update=", "update=" + url.QueryEscape("{\"adds\":[{\"group\":\"g\",\"data\":\"caf\xe9\"}]}"), "update=%7B", "update=x&update=" + update, `{"clientid":"x"}`, `{"clientid":99999999999}`, `{}{}`, `{"adds":[{}]}`,
		`{"adds":[{"group":""}]}`, `{"adds":[{"group":"a\u0000b"}]}`, `{"adds":[{"group":"` + strings.Repeat("g", 201) + `"}]}`, `{"deletes":[1.5]}`, `{"deletes":[1,1]}`,
		`{"adds":[{"group":"g","data":"` + strings.Repeat("x", task.MaxInput+1) + `"}]}`, `{"adds":[{"group":"g","timespec":9223372036854775807}]}`,
		`{"depends":[` + strings.Repeat("1,", 1000) + `1]}`, `{"adds":[` + strings.Repeat(`{"group":"g","data":"`+strings.Repeat("x", 100_000)+`"},`, 45) + `{"group":"g"}]}`,
	} {
		s.as(access.Operator, 400, "POST", "/update", body, form)
	}
	expect.Len(t, s.list("/group/g?owned=1"), 2, "refused calls have opened tasks")
	s.as(access.Operator, 415, "POST", "/update", update, "Content-Type: text/plain")
}

// Any string is data.
func TestAnyData(t *testing.T) {
	s := newSite(t)
	for _, want := range []string{"", " ", "'", "a \"b\" \\", "\x00\x01\n\t", "ü \u2028 😀", "{\"a\": [1, 2]}", "YQ==", strings.Repeat("x", task.MaxInput), strings.Repeat("\"", 90_000)} {
		body, _ := json.Marshal(map[string]any{"clientid": 1, "adds": []any{map[string]any{"group": "g", "data": want}}})
		made := s.made("/update", string(body))
		claimed := s.made("/claim", `{"clientid":1,"group":"g","duration":60000000000}`)
		expect.Equal(t, made[0].Data, want)
		expect.MustEqual(t, claimed[0].Data, want)
		expect.Equal(t, s.list(fmt.Sprint("/tasks/", claimed[0].ID))[0].Data, want)
	}
}

// Clients see their tasks as far as their tokens allow. TDF sees all of them.
func TestTokens(t *testing.T) {
	s := newSite(t)
	s.made("/update", `{"clientid":1,"adds":[{"group":"g","data":"secret"}]}`)
	s.as(access.Submitter, 403, "POST", "/update", `{"clientid":1,"adds":[{"group":"g"}]}`)
	s.as(access.Submitter, 200, "POST", "/update", `{"clientid":1,"adds":[{"group":"submitter/g","data":"mine"}]}`)
	for path, want := range map[string]string{"/groups": `["submitter/g"]`, "/task/1": "null"} {
		expect.Equal(t, s.as(access.Submitter, 200, "GET", path, ""), want, path)
	}
	expect.Contains(t, s.as(access.Submitter, 200, "POST", "/update", `{"clientid":1,"deletes":[1]}`), `"deletes":[1]`)
	s.as(access.Viewer, 403, "POST", "/claim", `{"clientid":1,"group":"g"}`)
	for _, of := range []string{"g", "absent"} {
		s.as(access.Submitter, 403, "POST", "/claim", `{"clientid":1,"group":"`+of+`"}`)
		s.as(access.Submitter, 403, "GET", "/group/"+of, "")
	}
	s.as(access.Worker, 403, "GET", "/groups", "")
	expect.Contains(t, s.as(access.Submitter, 200, "POST", "/claim", `{"clientid":1,"group":"submitter/g","duration":1}`), "mine")
	got := expect.Result(s.Page(t.Context(), manager.Query{Group: "submitter/g"}, "", 10)).Value(t)
	expect.MustLen(t, got.Tasks, 1)
	expect.MustEqual(t, got.Tasks[0].Owner, "submitter")
	expect.MustEqual(t, got.Tasks[0].Input, "mine")
	expect.Equal(t, got.Tasks[0].State, task.Open)
	given := strings.Repeat(`,{"group":"submitter/given"}`, 500) // by an operator
	s.made("/update", `{"clientid":1,"adds":[`+given[1:]+`]}`)
	expect.Contains(t, s.as(access.Submitter, 200, "POST", "/claim", `{"clientid":2,"group":"submitter/given","duration":1}`), `"ownerid":2`)
}

// Clients of two processes that work on the same tasks do each of them exactly once: each claims tasks, and replaces them by results in one step.
func TestConcurrentClients(t *testing.T) {
	s := newSite(t)
	const tasks, clients = 60, 6
	for i := range tasks {
		s.made("/update", fmt.Sprintf(`{"clientid":1,"adds":[{"group":"todo","data":"%02d"}]}`, i))
	}
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			for {
				got := s.post("/claim", fmt.Sprintf(`{"clientid":%d,"group":"todo","duration":%d}`, client+1, []int64{1, 60_000_000_000}[client%2]))
				if len(got.Tasks) == 0 {
					if len(s.list("/group/todo?owned=1")) == 0 {
						return
					}
					continue
				}
				x := got.Tasks[0] // the short ownership of some clients has ended, so that others may claim the task again
				s.post("/update", fmt.Sprintf(`{"clientid":%d,"adds":[{"group":"done","data":"%s"}],"deletes":[%d]}`, client+1, x.Data, x.ID))
			}
		})
	}
	all.Wait()
	var want []string
	for i := range tasks {
		want = append(want, fmt.Sprintf("%02d", i))
	}
	expect.Equal(t, data(s.list("/group/done?owned=1")), strings.Join(want, " "))
	expect.Equal(t, s.get("/groups"), `["done"]`)
}
