package embedded

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
)

// start starts an embedded Redis, and closes it at the end of the test. If miniredis panics, the test fails.
func start(t testing.TB, options ...Option) *Redis {
	t.Helper()
	failing := func(r *Redis) {
		r.panicked = func(request []string, why any) { t.Errorf("%.200q: miniredis panics: %v", request, why) }
	}
	r := expect.Result(Start("127.0.0.1:0", append([]Option{failing}, options...)...)).Value(t)
	t.Cleanup(r.Close)
	return r
}

func connect(t testing.TB, r *Redis) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := expect.Result(net.Dial("tcp", r.Addr())).Value(t)
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn, bufio.NewReader(conn)
}

// exchange sends a request, and returns all replies that arrive before the Redis closes the connection.
func exchange(t testing.TB, r *Redis, request string) string {
	t.Helper()
	conn, rd := connect(t, r)
	_, _ = io.WriteString(conn, request) // the Redis may refuse the request before it is complete
	_ = conn.(*net.TCPConn).CloseWrite()
	reply, _ := io.ReadAll(rd)
	return string(reply)
}

func clientOf(t testing.TB, r *Redis, password string) *redis.Client {
	c := redistest.Client(t, redis.Options{Addr: r.Addr(), Password: password, MaxRetries: -1, DisableIdentity: true})
	return c
}

// encodeRequest returns a request with these words, in Redis's protocol.
func encodeRequest(args ...string) string {
	text := fmt.Sprintf("*%d\r\n", len(args))
	for _, a := range args {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(a), a)
	}
	return text
}

// If a request is invalid, the client gets an error, and its connection is closed. Other connections stay open.
func TestMalformedRequests(t *testing.T) {
	r := start(t)
	for _, request := range []string{
		"*-5\r\n", "*-1\r\n", "*0\r\n", "*\r\n", "*1\n", "*+1\r\n", "* 1\r\n", "*1x\r\n", "*1048577\r\n", "*99999999999999999999999\r\n",
		"PING\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "$4\r\nPING\r\n", "\r\n", "\x16\x03\x01\r\n", strings.Repeat("*", 20<<10) + "\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$536870913\r\nx", "*1\r\n:1\r\n", "*1\r\n+PING\r\n", "*1\r\n$4\r\nPINGPONG\r\n", "*2\r\n$4\r\nECHO\r\n*1\r\n$1\r\nx\r\n",
	} {
		got := exchange(t, r, request)
		expect.True(t, strings.HasPrefix(got, "-ERR Protocol error: "), request, "got", got)
		expect.True(t, strings.HasSuffix(got, "\r\n"), request, "got", got)
		expect.Equal(t, strings.Count(got, "\n"), 1, request)
	}
	for _, request := range []string{"*1\r\n$4\r\nPI", "*3\r\n$3\r\nSET\r\n", "*1000000\r\n$536870911\r\nx", "*"} { // incomplete requests
		expect.Equal(t, exchange(t, r, request), "", request)
	}
	expect.Equal(t, exchange(t, r, encodeRequest("PING")+encodeRequest("echo", "x\r\ny")), "+PONG\r\n$4\r\nx\r\ny\r\n", "afterwards")
}

// If a command is not allowed, the client gets an error of one line. The connection stays open.
func TestUnknownCommands(t *testing.T) {
	r := start(t)
	for _, name := range []string{"SUBSCRIBE", "setrange", "XREADGROUP", "SHUTDOWN", "", "x\r\n+OK", strings.Repeat("x", 1000)} {
		got := exchange(t, r, encodeRequest(name, "a", "b")+encodeRequest("PING"))
		expect.True(t, strings.HasPrefix(got, "-ERR unknown command '"), name, "got", got)
		expect.True(t, strings.HasSuffix(got, "\r\n+PONG\r\n"), name, "got", got)
		expect.Equal(t, strings.Count(got, "\n"), 2, name)
	}
}

// If a client makes miniredis panic, only the connection of this client ends.
func TestPanicIsAnError(t *testing.T) {
	r := start(t)
	var panicked []string
	r.panicked = func(request []string, _ any) { panicked = append(panicked, request[0]) }
	const request = "return print"
	if got := exchange(t, r, encodeRequest("PING")+encodeRequest("EVAL", request, "0")+encodeRequest("PING")); got != "+PONG\r\n-ERR the embedded Redis failed at this command\r\n" {
		t.Errorf("got %q", got)
	}
	got := exchange(t, r, encodeRequest("MULTI")+encodeRequest("EVAL", request, "0")+encodeRequest("EXEC"))
	expect.True(t, strings.HasSuffix(got, "-ERR the embedded Redis failed at this command\r\n"), got)
	expect.Len(t, panicked, 2, "panics")
	expect.NoError(t, clientOf(t, r, "").Set(t.Context(), "k", "v", 0).Err(), "afterwards")
}

func TestPassword(t *testing.T) {
	r := start(t, Password("secret"))
	for request, want := range map[string]string{
		encodeRequest("GET", "k"):                                "-NOAUTH ",
		encodeRequest("HELLO", "2"):                              "-NOAUTH ",
		encodeRequest("HELLO", "3", "AUTH", "default", "Secret"): "-WRONGPASS ",
		encodeRequest("AUTH", "wrong"):                           "-WRONGPASS ",
		encodeRequest("AUTH", ""):                                "-WRONGPASS ",
		encodeRequest("AUTH", "root", "secret"):                  "-WRONGPASS ",
		encodeRequest("AUTH"):                                    "-ERR wrong number",
		encodeRequest("SUBSCRIBE", "c"):                          "-ERR unknown command",
		encodeRequest("ECHO", strings.Repeat("x", 20<<10)):       "-ERR Protocol error",
		"*11\r\n":             "-ERR Protocol error",
		encodeRequest("QUIT"): "+OK",
	} {
		got := exchange(t, r, request+encodeRequest("GET", "k"))
		expect.True(t, strings.HasPrefix(got, want), request, got, want)
		expect.NotContains(t, got, "$-1", request)
	}
	for _, request := range []string{encodeRequest("AUTH", "secret"), encodeRequest("AUTH", "default", "secret"), encodeRequest("hello", "2", "setname", "x", "auth", "default", "secret")} {
		got := exchange(t, r, request+encodeRequest("ECHO", strings.Repeat("x", 20<<10)))
		expect.True(t, strings.HasSuffix(got, "x\r\n"), request, got)
	}
	expect.NoError(t, clientOf(t, r, "secret").Ping(t.Context()).Err())
	err := clientOf(t, r, "other").Ping(t.Context()).Err()
	expect.MustTrue(t, err != nil, "with a wrong password", err)
	expect.True(t, strings.HasPrefix(err.Error(), "WRONGPASS"), "with a wrong password", err)
}

// Without a password, a client may run only the scripts of this release of TDF. For another script, the error is not
// NOPERM, because a client of TDF might wait for the missing right.
func TestScripts(t *testing.T) {
	r := start(t, Scripts("v1.2", sha1Hex("return 1")))
	c := clientOf(t, r, "")
	expect.Result(redis.NewScript("return 1").Run(t.Context(), c, nil).Int()).Is(t, 1)
	const endless = "while true do end"
	for _, err := range []error{
		c.Eval(t.Context(), endless, nil).Err(), c.ScriptLoad(t.Context(), endless).Err(), c.EvalSha(t.Context(), sha1Hex(endless), nil).Err(),
	} {
		expect.MustTrue(t, err != nil, "another script", err)
		expect.True(t, strings.HasPrefix(err.Error(), "FOREIGNSCRIPT this Redis is embedded in TDF v1.2 and runs only its scripts"), "another script", err)
	}
}

// If there is a password, a client with the password may run scripts of any release of TDF. A client without the
// password may not run scripts.
func TestScriptsWithAPassword(t *testing.T) {
	r := start(t, Password("secret"), Scripts("v1.2", sha1Hex("return 1")))
	script := redis.NewScript("return 2")
	expect.Result(script.Run(t.Context(), clientOf(t, r, "secret"), nil).Int()).Is(t, 2)
	err := script.Run(t.Context(), clientOf(t, r, ""), nil).Err()
	expect.MustTrue(t, err != nil, "without the password", err)
	expect.True(t, strings.HasPrefix(err.Error(), "NOAUTH"), "without the password", err)
}

// If several clients wait for a list, they get its elements in the order in which the clients began to wait. Any command may add
// the elements.
func TestBlockingPop(t *testing.T) {
	r := start(t)
	c := clientOf(t, r, "")
	expect.Equal[any](t, c.Do(t.Context(), "BLPOP", "l", "0.001").Err(), redis.Nil)
	const waiting = 5
	var readers []*bufio.Reader
	for i := range waiting {
		conn, rd := connect(t, r)
		expect.Result(io.WriteString(conn, encodeRequest("SELECT", "0")+encodeRequest("BLPOP", "other", "l", "0"))).OK(t)
		readers = append(readers, rd)
		inLine(t, r, "l", i+1)
	}
	gone, _ := connect(t, r)
	expect.Result(io.WriteString(gone, encodeRequest("BRPOP", "l", "0"))).OK(t)
	inLine(t, r, "l", waiting+1)
	gone.Close()
	inLine(t, r, "l", waiting)
	if err := c.Eval(t.Context(), "redis.call('RPUSH', KEYS[1], 'a', 'b')", []string{"l"}).Err(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.RPush(t.Context(), "l", "c")
		p.RPush(t.Context(), "l", "d", "e")
		return nil
	})
	expect.NoError(t, err)
	all := map[string]bool{}
	for _, rd := range readers {
		var lines [6]string
		for i := range lines {
			lines[i], _ = rd.ReadString('\n')
		}
		all[strings.TrimSpace(lines[5])] = true
	}
	expect.Len(t, all, waiting)
	expect.True(t, all["a"], "got", all)
	expect.True(t, all["e"], "got", all)
	expect.Equal(t, c.LLen(t.Context(), "l").Val(), 0, "elements are left")
}

// inLine waits until the wanted number of clients wait for a list.
func inLine(t *testing.T, r *Redis, key string, want int) {
	t.Helper()
	expect.Eventually(t, fmt.Sprint(want, " clients wait for ", key), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.waiting[place{0, key}]) == want
	})
}

func TestBlockingPopRefuses(t *testing.T) {
	r := start(t)
	for request, want := range map[string]string{
		encodeRequest("BLPOP", "l", "-1"):                                                                             "-ERR timeout is negative",
		encodeRequest("BLPOP", "l", "nan"):                                                                            "-ERR timeout is not a float",
		encodeRequest("BLPOP", "l", "1e99"):                                                                           "-ERR timeout is not a float",
		encodeRequest("BLPOP", "l"):                                                                                   "-ERR wrong number",
		encodeRequest("SET", "s", "x") + encodeRequest("BRPOP", "l", "s", "0"):                                        "+OK\r\n-WRONGTYPE",
		encodeRequest("MULTI") + encodeRequest("BLPOP", "none", "0") + encodeRequest("EXEC"):                          "+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n",
		encodeRequest("MULTI") + encodeRequest("SELECT", "1") + encodeRequest("EXEC"):                                 "+OK\r\n-ERR SELECT is not allowed",
		encodeRequest("MULTI") + encodeRequest("EXEC", "x") + encodeRequest("SELECT", "1") + encodeRequest("DISCARD"): "+OK\r\n-ERR wrong number of arguments for 'exec' command\r\n-ERR SELECT is not",
		encodeRequest("SELECT", "3") + encodeRequest("RPUSH", "l3", "x") + encodeRequest("BLPOP", "l3", "0"):          "+OK\r\n:1\r\n*2\r\n$2\r\nl3\r\n$1\r\nx\r\n",
	} {
		got := exchange(t, r, request)
		expect.True(t, strings.HasPrefix(got, want), request, "got", got, "want", want)
	}
}

// If a client does not read its replies, other clients are not delayed.
func TestSlowReader(t *testing.T) {
	r := start(t)
	c := clientOf(t, r, "")
	expect.NoError(t, c.Set(t.Context(), "large", strings.Repeat("x", 32<<20), 0).Err())
	conn, _ := connect(t, r)
	expect.Result(io.WriteString(conn, encodeRequest("GET", "large")+encodeRequest("INCR", "read"))).OK(t)
	for range 100 {
		expect.NoError(t, c.Incr(t.Context(), "other").Err())
	}
}

func TestCloseWithClients(t *testing.T) {
	r := expect.Result(Start("127.0.0.1:0")).Value(t)
	conn, rd := connect(t, r)
	expect.Result(io.WriteString(conn, encodeRequest("BLPOP", "l", "0"))).OK(t)
	inLine(t, r, "l", 1)
	r.Close()
	expect.Result(rd.ReadByte()).Fails(t, "", "the connection is still open")
}
