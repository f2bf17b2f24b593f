package embedded

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func BenchmarkSetGet(b *testing.B) {
	r := start(b)
	c := clientOf(b, r, "")
	value := strings.Repeat("x", 100)
	for b.Loop() {
		c.Set(b.Context(), "k", value, 0)
		c.Get(b.Context(), "k")
	}
}

func BenchmarkPipeline(b *testing.B) {
	r := start(b)
	c := clientOf(b, r, "")
	for b.Loop() {
		_, _ = c.Pipelined(b.Context(), func(p redis.Pipeliner) error {
			for range 100 {
				p.HSet(b.Context(), "h", "f", "v")
			}
			return nil
		})
	}
}

func BenchmarkLarge(b *testing.B) {
	r := start(b)
	c := clientOf(b, r, "")
	value := strings.Repeat("x", 4<<20)
	b.SetBytes(int64(2 * len(value)))
	for b.Loop() {
		c.Set(b.Context(), "k", value, 0)
		c.Get(b.Context(), "k")
	}
}
