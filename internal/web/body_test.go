package web

import (
	"runtime"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
)

// manyValues would need more memory than a client may have.
const manyValues = 8 << 20

// A body whose values would need far more memory than its text is refused before they are read.
func TestBodiesThatGrow(t *testing.T) {
	s := newSite(t, Options{})
	deep := strings.Repeat("[", 1<<19) + strings.Repeat("]", 1<<19)
	for _, c := range []struct {
		kind, body string
		status     int
	}{
		{"application/json", deep, 422},
		{"application/json", `{"program":"p","parameters":` + deep + `}`, 422},
		{"application/json", "[" + strings.Repeat("{},", manyValues/2) + "{}]", 413},
		{"application/json", "[" + strings.Repeat("1,", 1<<23) + "1]", 413},
		{jsonLines, strings.Repeat("{}\n", manyValues/2), 413},
		{jsonLines, strings.Repeat("\n", 1<<24), 413},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.as(access.Operator, c.status, "POST", "/api/v1/tasks", c.body, "Content-Type: "+c.kind)
		runtime.ReadMemStats(&after)
		grown := after.TotalAlloc - before.TotalAlloc
		expect.True(t, grown <= 500<<20, c.body, "of", len(c.body), "bytes needed", grown, "bytes")
	}
	s.as(access.Operator, 413, "POST", "/api/v1/tasks/actions", `{"action":"cancel","ids":[`+strings.Repeat("1,", manyValues)+`1]}`)
}

// What calls hold has a bound. When a call has ended, its part is free again.
func TestMemoryForBodies(t *testing.T) {
	s := newSite(t, Options{})
	s.memory = pool.New(4 * callBytes)
	body := `[` + plain + strings.Repeat(" ", callBytes) + `]`
	for range 3 {
		s.as(access.Operator, 413, "POST", "/api/v1/tasks", body)
		s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
		s.as(access.Operator, 422, "POST", "/api/v1/tasks", "{")
	}
	expect.Equal(t, s.memory.Taken(), 0, "bytes are taken")
	s.memory = pool.New(4 * callBytes)
	expect.NoError(t, s.memory.Take("token operator", 2*callBytes))
	got := s.as(access.Operator, 429, "POST", "/api/v1/tasks", plain)
	expect.NotEqual(t, got.Header.Get("Retry-After"), "", got.text)
}
