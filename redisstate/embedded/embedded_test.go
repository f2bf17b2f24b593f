package embedded

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestStart(t *testing.T) {
	r, err := Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2})
	defer client.Close()
	if err := client.Set(t.Context(), "k", "v", 1500*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for client.Exists(t.Context(), "k").Val() == 1 { // ends because time passes there, too
		time.Sleep(time.Millisecond)
	}
	if _, err := Start(r.Addr()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a second one on %s: %v", r.Addr(), err)
	}
	r.Close()
}

func TestStartOnlyOnLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", "localhost", "192.0.2.1:0", ":0"} {
		if r, err := Start(addr); err == nil {
			r.Close()
			t.Errorf("started on %s", addr)
		}
	}
}
