package embedded

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

func TestStart(t *testing.T) {
	r := expect.Result(Start("127.0.0.1:0")).Value(t)
	client := redistest.Client(t, redis.Options{Addr: r.Addr()})
	expect.NoError(t, client.Do(t.Context(), "SET", "k", "v", "PX", 100).Err())
	expect.Eventually(t, "the key has expired", func() bool { return client.Exists(t.Context(), "k").Val() == 0 })
	expect.Result(Start(r.Addr())).Fails(t, "address already in use", "a second embedded Redis on", r.Addr())
	r.Close()
}

func TestSetTime(t *testing.T) {
	r := start(t)
	c := clientOf(t, r, "")
	at := time.Date(2030, time.January, 1, 0, 0, 0, 1000, time.UTC)
	r.SetTime(at)
	const script = "local t = redis.call('TIME'); return t[1] .. '.' .. t[2]"
	expect.Equal[any](t, expect.Result(c.Eval(t.Context(), script, nil).Result()).Value(t), "1893456000.1")
	c.Set(t.Context(), "k", "v", time.Minute)
	r.SetTime(at.Add(time.Minute - 1))
	expect.Equal(t, c.Exists(t.Context(), "k").Val(), 1, "before the end of the minute")
	r.SetTime(at.Add(time.Minute))
	expect.Equal(t, c.Exists(t.Context(), "k").Val(), 0, "after the minute")
}

func TestStartOnlyOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "localhost", "192.0.2.1:0", ":0"} {
		if r, err := Start(addr); err == nil {
			r.Close()
			t.Errorf("started on %s", addr)
		}
	}
}
