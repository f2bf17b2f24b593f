package web

import (
	"archive/tar"
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/program"
)

// A transaction happens as a whole, or not at all.
func TestTransactions(t *testing.T) {
	s := newSite(t, Options{})
	for range 3 {
		s.open(testspace.Define("p", "rsync:/p/run.sh", "1"))
	}
	s.as(access.Submitter, 201, "POST", base+"/tasks", plain)
	tag := func(id int) string {
		return strings.ReplaceAll(s.as(access.Operator, 200, "GET", fmt.Sprintf("%s/tasks/%d", base, id), "").Header.Get("ETag"), `"`, `\"`)
	}
	old := tag(1)
	got := s.as(access.Operator, 200, "POST", base+"/transactions", `{"open":[{"program":"p"},{"program":"q","after":{"places":[0]}}],
		"actions":[{"action":"cancel","id":1,"etag":"`+old+`"},{"action":"change","id":2,"changes":{"input":"2"}}],"require":[{"id":3,"etag":"`+tag(3)+`"}]}`)
	expect.Equal(t, strings.TrimSpace(got.text), `{"ids":[5,6],"fail_on":"stderr"}`, got.text)
	before := fmt.Sprint(s.world())
	for _, c := range []struct {
		role   access.Role
		body   string
		status int
		want   string
	}{
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"retry","id":1,"etag":"` + old + `"}]}`, 412, "task 1 has the ETag"},
		{access.Operator, `{"open":[{"program":"p"}],"require":[{"id":1,"etag":"` + old + `"}]}`, 412, "task 1"},
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"archive","id":2}]}`, 409, "task 2"},
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"cancel","id":99}]}`, 404, "99"},
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"cancel","id":2},{"action":"cancel","id":2}]}`, 422, "twice"},
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"cancel","id":2}],"require":[{"id":2}]}`, 422, "twice"},
		{access.Operator, `{"open":[{"program":"../p"}],"actions":[{"action":"cancel","id":2}]}`, 422, "program"},
		{access.Operator, `{"open":[{"program":"p"}],"actions":[{"action":"run","id":2}]}`, 422, "unknown action"},
		{access.Operator, `{"open":[{"program":"p"}],"decide":"g"}`, 409, ""},
		{access.Operator, `{"open":[{"program":"p"}],"decide":"\u0000"}`, 422, ""},
		{access.Operator, `{"open":[{"program":"p"}],"opens":1}`, 422, "opens"},
		{access.Operator, `{"open":[` + strings.Repeat(`{"program":"p"},`, 1000) + `{"program":"p"}]}`, 413, "1001"},
		{access.Operator, `{"open":[{"program":"p","input":"` + strings.Repeat("x", 5<<20) + `"}]}`, 422, ""},
		{access.Submitter, `{"open":[{"program":"p"}],"actions":[{"action":"cancel","id":2}]}`, 404, ""},
		{access.Submitter, `{"open":[{"program":"p"}],"require":[{"id":2}]}`, 404, ""},
		{access.Submitter, `{"open":[{"program":"p","campaign":"g"}]}`, 403, ""},
		{access.Submitter, `{"open":[{"program":"p"}],"decide":"g"}`, 403, ""},
		{access.Submitter, `{"open":[{"program":"p","after":{"tasks":[2]}}]}`, 404, ""},
	} {
		text := s.as(c.role, c.status, "POST", base+"/transactions", c.body).text
		expect.Contains(t, text, c.want, c.body)
		expect.Compare(t, len(text), "<=", 2000, c.body)
	}
	expect.Equal(t, fmt.Sprint(s.world()), before, "refused transactions have changed something")
	s.as(access.Submitter, 200, "POST", base+"/transactions", `{"open":[{"program":"p","campaign":"submitter/g"}],"actions":[{"action":"cancel","id":4}]}`)
	s.as(access.Operator, 200, "POST", base+"/transactions", `{}`)
}

func programArchive(t testing.TB, names ...string) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		expect.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: 2}))
		expect.Result(w.Write([]byte("#!"))).OK(t)
	}
	expect.NoError(t, w.Close())
	return b.String()
}

func TestPrograms(t *testing.T) {
	s := newSite(t, Options{})
	archive := programArchive(t, "run.sh")
	got := s.as(access.Submitter, 200, "POST", base+"/programs?name=my%20tool", archive, "Content-Type: application/x-tar")
	stored := webtest.Decode[storedNow](t, got.text)
	expect.True(t, strings.HasPrefix(stored.Program, "my-tool-"), got.text)
	expect.Equal(t, stored.Files, 1)
	expect.Compare(t, stored.Bytes, "<", int64(len(archive)))
	sum := strings.TrimPrefix(stored.Source, "redis:")
	s.as(access.Submitter, 201, "POST", base+"/tasks", `{"program":"`+stored.Program+`","source":"`+stored.Source+`"}`)
	s.as(access.Operator, 409, "DELETE", base+"/programs/"+sum, "")
	s.as(access.Operator, 200, "POST", base+"/tasks/1/cancel", "")
	s.as(access.Operator, 204, "POST", base+"/programs/"+sum+"/pin", "")
	expect.Contains(t, s.as(access.Viewer, 200, "GET", base+"/programs", "").text, `"pinned":true`)
	s.as(access.Operator, 204, "POST", base+"/programs/"+sum+"/unpin", "")
	s.as(access.Operator, 204, "DELETE", base+"/programs/"+sum, "")
	before := fmt.Sprint(s.world())
	s.as(access.Operator, 404, "DELETE", base+"/programs/"+sum, "")
	s.as(access.Operator, 404, "POST", base+"/programs/"+sum+"/pin", "")
	s.as(access.Operator, 422, "POST", base+"/programs/x/pin", "")
	for body, status := range map[string]int{"": 400, "x": 422, programArchive(t, "a.sh"): 422, programArchive(t, "../run.sh"): 422, strings.Repeat("x", 64<<20+1): 413} {
		s.as(access.Submitter, status, "POST", base+"/programs", body, "Content-Type: application/gzip")
	}
	s.as(access.Submitter, 415, "POST", base+"/programs", archive, "Content-Type: application/zip")
	expect.Equal(t, fmt.Sprint(s.world()), before, "refused calls have changed something")

	of := managing.Of(s.manager).Store
	large := redis.Z{Member: strings.Repeat("0", 64), Score: program.MaxOfSubmitters - float64(stored.Bytes) + 1}
	expect.NoError(t, of.Conn.Redis.ZAdd(t.Context(), of.Keys.Programs(), large).Err())
	full := s.as(access.Submitter, 507, "POST", base+"/programs", archive, "Content-Type: application/x-tar")
	expect.Contains(t, full.text, "more than 1 GiB")
	s.as(access.Operator, 200, "POST", base+"/programs", archive, "Content-Type: application/x-tar")
	s.as(access.Submitter, 200, "POST", base+"/programs", archive, "Content-Type: application/x-tar") // it is stored already
}

// A submitter stores programs up to half of what the others leave of 1 GiB. The share ends with the programs.
func TestShareOfPrograms(t *testing.T) {
	s := newSite(t, Options{})
	of := managing.Of(s.manager).Store
	other := webtest.AddToken(t, s.manager, access.Token{Name: "other", Role: access.Submitter})
	store := func(token, name string, status int) string {
		got := s.call(token, "POST", base+"/programs", programArchive(t, "run.sh", name), "Content-Type: application/x-tar")
		expect.MustEqual(t, got.StatusCode, status, got.text)
		return strings.TrimPrefix(webtest.Decode[storedNow](t, got.text).Source, "redis:")
	}
	sum := store(s.tokens[access.Submitter], "a", 200)
	expect.NoError(t, of.Conn.Redis.ZAdd(t.Context(), of.Keys.Programs(), redis.Z{Member: sum, Score: program.MaxOfSubmitters / 2}).Err())
	store(s.tokens[access.Submitter], "b", 507)
	store(s.tokens[access.Operator], "c", 200)
	store(other, "b", 200)
	s.as(access.Operator, 204, "DELETE", base+"/programs/"+sum, "")
	store(s.tokens[access.Submitter], "a", 200)
}

func TestQueues(t *testing.T) {
	s := newSite(t, Options{})
	for _, queue := range []string{"", "", "q"} {
		s.open(task.Definition{Program: "p", Source: "rsync:/p/run.sh", Queue: queue})
	}
	s.hand().claim()
	s.as(access.Operator, 204, "POST", base+"/pauses/add", `{"queue":"r"}`)
	tasks := func(open, running int) string {
		return fmt.Sprintf(`"tasks":{"archived":0,"executed":0,"expired":0,"failed":0,"open":%d,"running":%d,"succeeded":0,"timed_out":0}`, open, running)
	}
	queuesWant := fmt.Sprintf(`^\[\{"queue":"default","open":1,"oldest_wait_seconds":[0-9.]+,%s\},\{"queue":"q","open":1,"oldest_wait_seconds":[0-9.]+,%s\},`+
		`\{"queue":"r","open":0,"oldest_wait_seconds":0,"paused":true,%s\}\]\s*$`, tasks(1, 1), tasks(1, 0), tasks(0, 0))
	got := s.as(access.Viewer, 200, "GET", base+"/queues", "")
	expect.True(t, regexp.MustCompile(queuesWant).MatchString(got.text), got.text)
}

// A submitter whose tasks have a quarter of all requirements gets an error that says what to make coarser. Others are not affected.
func TestShareOfRequirements(t *testing.T) {
	s := newSite(t, Options{})
	of := managing.Of(s.manager).Store
	one := `{"program":"p","source":"rsync:/p/run.sh","tags":["a"]}`
	s.as(access.Submitter, 201, "POST", base+"/tasks", one)
	var others []redis.Z
	for i := range 2499 {
		others = append(others, redis.Z{Member: fmt.Sprint("tags=", i), Score: 9e9})
	}
	expect.NoError(t, of.Conn.Redis.ZAdd(t.Context(), of.Keys.RequirementsOf("submitter"), others...).Err())
	before := fmt.Sprint(s.world())
	other := strings.Replace(one, `"a"`, `"b"`, 1)
	for _, c := range [][2]string{
		{"tasks", other},
		{"tasks/1/change", `{"changes":{"tags":["b"]}}`},
		{"transactions", `{"open":[` + other + `]}`},
		{"transactions", `{"actions":[{"action":"change","id":1,"changes":{"tags":["b"]}}]}`},
	} {
		refused := s.as(access.Submitter, 507, "POST", base+"/"+c[0], c[1])
		expect.Contains(t, refused.text, `"code":"too_many_requirements"`)
		expect.Contains(t, refused.text, "make the queues, tags, resources, min_time or handlers of the tasks coarser")
	}
	expect.Equal(t, fmt.Sprint(s.world()), before)
	s.as(access.Submitter, 201, "POST", base+"/tasks", one)
	s.as(access.Operator, 201, "POST", base+"/tasks", other)
}
