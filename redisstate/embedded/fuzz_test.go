package embedded

import (
	"bytes"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A script is a connection to a client that sends the given bytes and reads no reply.
type script struct {
	net.Conn // nil, because the embedded Redis calls only the methods that are defined below
	requests io.Reader
}

func (s script) Read(p []byte) (int, error)        { return s.requests.Read(p) }
func (s script) Write(p []byte) (int, error)       { return len(p), nil }
func (s script) Close() error                      { return nil }
func (s script) SetReadDeadline(t time.Time) error { return nil }

// startForFuzzing starts an embedded Redis for a fuzz test. The only Lua script that it runs does nothing.
func startForFuzzing(f *testing.F) *Redis { return start(f, Scripts("v1", sha1Hex("return 1"))) }

// serve lets a Redis serve a client that sends the given requests.
func serve(t *testing.T, r *Redis, requests string) {
	r.mu.Lock()
	r.panicked = func(request []string, why any) { t.Errorf("%q: miniredis panics: %v", request, why) }
	r.mu.Unlock()
	newClient(r, script{requests: strings.NewReader(requests)}).serve()
}

// The process survives any bytes that a client sends.
func FuzzBytes(f *testing.F) {
	for _, s := range []string{"*-5\r\n", "*0\r\n", "*1\r\n$-1\r\n", "PING\r\n", "*1\r\n$4\r\nPING\r\n", encodeRequest("HELLO", "3") + encodeRequest("ECHO", "x")} {
		f.Add([]byte(s))
	}
	r := startForFuzzing(f)
	f.Fuzz(func(t *testing.T, requests []byte) { serve(t, r, string(requests)) })
}

var (
	fuzzedNames = slices.Sorted(maps.Keys(allowed))
	fuzzedArgs  = strings.Split(`|[z-a]|[a-c]*|x[]|\\E(|\\*|[\\|[a\\]b]|[\\Q]|\\\E|a\\\\E(|\E[|[[:x:]|[^a]?|[a]b[|0|1|-1|2|-2|3|a|b|k|l|h|s|z|x|str|*|?|[|[^|\|[a-|(|(1|(a|[a|-|+|~|=|$|>|0-0|1-1|0-|-0|1-*|5-*|18446744073709551615-18446744073709551615|inf|-inf|+inf|nan|1e400|0x10|1.5|`+
		`9223372036854775807|-9223372036854775808|9223372036854775808|4294967296|-4294967296|2147483647|NX|XX|GT|LT|CH|INCR|EX|PX|EXAT|PXAT|KEEPTTL|GET|WITHSCORES|LIMIT|BYSCORE|BYLEX|REV|COUNT|MATCH|TYPE|hash|string|`+
		`MAXLEN|MINID|NOMKSTREAM|LOAD|EXISTS|FLUSH|USAGE|SAMPLES|SETNAME|GETNAME|AUTH|default|LEFT|RIGHT|ASYNC|SYNC|server|clients|stats|return 1|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|�|`+"\x00\xff", "|")
)

// commandsOf turns bytes into valid requests. The bytes choose the length of each request, its command and its arguments.
func commandsOf(choices []byte) string {
	var all strings.Builder
	for len(choices) > 1 {
		n := int(choices[0]) % 8
		args := []string{fuzzedNames[int(choices[1])%len(fuzzedNames)]}
		choices = choices[2:]
		for ; n > 0 && len(choices) > 0; n-- {
			args = append(args, fuzzedArgs[int(choices[0])%len(fuzzedArgs)])
			choices = choices[1:]
		}
		all.WriteString(encodeRequest(args...))
	}
	return all.String()
}

// No allowed command makes miniredis panic, whatever its arguments are.
func FuzzCommands(f *testing.F) {
	f.Add(bytes.Repeat([]byte{3, 1, 2, 3}, 8))
	r := startForFuzzing(f)
	f.Fuzz(func(t *testing.T, choices []byte) {
		serve(t, r, encodeRequest("FLUSHALL")+encodeRequest("SET", "str", "x")+encodeRequest("RPUSH", "l", "a", "b")+encodeRequest("HSET", "h", "a", "1")+encodeRequest("SADD", "s", "a")+
			encodeRequest("ZADD", "z", "1", "a", "2", "b")+encodeRequest("XADD", "x", "1-1", "a", "b")+commandsOf(choices))
	})
}
