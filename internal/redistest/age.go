package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Age makes all due tasks with a place look as if they had become due the given number of seconds earlier. The keys of
// the namespace begin with the prefix (docs/redis.md, "Open tasks").
func Age(t testing.TB, rdb redis.Cmdable, prefix string, seconds float64) {
	t.Helper()
	ctx := t.Context()
	for _, list := range []string{"open", "open:placed"} {
		for _, id := range rdb.ZRange(ctx, prefix+list, 0, -1).Val() {
			rdb.ZIncrBy(ctx, prefix+list, -seconds, id)
		}
	}
	earlier := func(key, member string) string {
		at, err := strconv.ParseFloat(member[11:28], 64)
		if err != nil {
			t.Fatal(key, member, err)
		}
		moved := member[:11] + fmt.Sprintf("%017.6f", at-seconds) + member[28:]
		rdb.ZRem(ctx, key, member)
		if err := rdb.ZAdd(ctx, key, redis.Z{Member: moved}).Err(); err != nil {
			t.Fatal(err)
		}
		return moved
	}
	for name, head := range rdb.HGetAll(ctx, prefix+"first").Val() {
		for _, member := range rdb.ZRange(ctx, prefix+"open:"+name, 0, -1).Val() {
			earlier(prefix+"open:"+name, member)
		}
		queue := "default"
		if rest, is := strings.CutPrefix(name, "queue="); is {
			queue, _, _ = strings.Cut(rest, ";")
		}
		rdb.HSet(ctx, prefix+"first", name, earlier(prefix+"heads:"+queue, head))
	}
}
