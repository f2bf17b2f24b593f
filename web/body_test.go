package web

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/pool"
)

func TestShapeOfBody(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		"": true, "{}": true, `"é"`: true, "\"caf\xe9\"": false, "]]]]": true, "\"": true, `"\`: true,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth): true, strings.Repeat("[", maxDepth+1): false, strings.Repeat(`{"a":`, maxDepth+1): false,
		strings.Repeat("[]", 1000): true, `"` + strings.Repeat("[", 1000) + `"`: true, `"\"` + strings.Repeat("[", 1000) + `"`: true, `"\\"` + strings.Repeat("[", 1000): false,
		strings.Repeat(",", maxValues-1): true, strings.Repeat(",", maxValues): false, strings.Repeat("\n", maxValues): false, `"` + strings.Repeat(",", maxValues) + `"`: true,
	} {
		expect.Equal(t, checkShape([]byte(body)) == nil, ok, len(body), "bytes", body)
	}
}

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
		{"application/json", "[" + strings.Repeat("{},", maxValues/2) + "{}]", 413},
		{"application/json", "[" + strings.Repeat("1,", 1<<23) + "1]", 413},
		{jsonLines, strings.Repeat("{}\n", maxValues/2), 413},
		{jsonLines, strings.Repeat("\n", 1<<24), 413},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.as(access.Operator, c.status, "POST", "/api/v1/tasks", c.body, "Content-Type: "+c.kind)
		runtime.ReadMemStats(&after)
		grown := after.TotalAlloc - before.TotalAlloc
		expect.True(t, grown <= 500<<20, c.body, "of", len(c.body), "bytes needed", grown, "bytes")
	}
	s.as(access.Operator, 413, "POST", "/api/v1/tasks/actions", `{"action":"cancel","ids":[`+strings.Repeat("1,", maxValues)+`1]}`)
}

// All bodies together have a bound. When a call has ended, its part is free again.
func TestMemoryForBodies(t *testing.T) {
	s := newSite(t, Options{})
	s.bodies = pool.New(1000)
	body := `[` + plain + strings.Repeat(" ", 1000) + `]`
	for range 3 {
		got := s.as(access.Operator, 429, "POST", "/api/v1/tasks", body)
		expect.True(t, got.Header.Get("Retry-After") != "", "no Retry-After", got.text)
		s.as(access.Operator, 201, "POST", "/api/v1/tasks", plain)
		s.as(access.Operator, 422, "POST", "/api/v1/tasks", "{")
	}
	expect.Equal(t, s.bodies.Taken(), 0, "bytes are taken")
	for of, n := range []int64{500, 250, 125, 62, 31, 16} { // each token may have half of the rest
		expect.NoError(t, s.bodies.Take(fmt.Sprint(of), n))
	}
	s.as(access.Operator, 429, "POST", "/api/v1/tasks", plain)
}
