package embedded

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/tdf-framework/tdf/internal/resp"
)

// A client is the front's side of a connection. Its goroutine reads requests, makes miniredis execute them, and writes
// the replies.
type client struct {
	redis *Redis
	conn  net.Conn
	rd    *bufio.Reader
	out   bytes.Buffer // replies to write
	peer  *server.Peer // miniredis's side of the connection; it writes to out

	known    bool // the client has logged in, or there is no password
	database int
	inMulti  bool // the client is between MULTI and EXEC
}

// loginTime is the time within which a client must log in if there is a password.
const loginTime = 10 * time.Second

var (
	// strangerLimits apply to the requests of a client that has not logged in.
	strangerLimits = resp.Limits{List: 10, Bytes: 16 << 10, Requests: true}
	// clientLimits apply to all other clients. A real Redis has the same limits.
	clientLimits = resp.Limits{List: 1 << 20, Bytes: 512 << 20, Requests: true}
)

// keepBuffer is the largest size of a buffer that is used again for the next reply.
const keepBuffer = 1 << 20

func newClient(r *Redis, conn net.Conn) *client {
	c := &client{redis: r, conn: conn, known: r.password == ""}
	c.rd = bufio.NewReaderSize(c, 16<<10)
	c.peer = server.NewPeer(bufio.NewWriter(&c.out))
	return c
}

// Read reads from the connection. It first writes the replies to earlier requests, because the client may wait for them
// before it sends more. If requests arrive together, their replies are written together.
func (c *client) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.conn.Read(p)
}

func (c *client) flush() error {
	if c.out.Len() == 0 {
		return nil
	}
	_, err := c.conn.Write(c.out.Bytes())
	c.out.Reset()
	if c.out.Cap() > keepBuffer {
		c.out = bytes.Buffer{}
	}
	return err
}

func (c *client) serve() {
	defer c.redis.leave(c)
	defer c.conn.Close()
	if !c.known {
		_ = c.conn.SetReadDeadline(time.Now().Add(loginTime))
	}
	for c.serveNext() {
	}
	c.hangUp()
}

// hangUp sends the last reply, and then reads and discards requests for a moment. If the connection were closed with
// unread bytes, it would be reset, and the client might lose the reply.
func (c *client) hangUp() {
	const most, moment = 64 << 10, time.Second
	half, ok := c.conn.(interface{ CloseWrite() error })
	if c.flush() != nil || !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(moment))
	_, _ = io.CopyN(io.Discard, c.conn, most)
}

// serveNext serves one request. It returns false if the connection must end.
func (c *client) serveNext() bool {
	most := clientLimits
	if !c.known {
		most = strangerLimits
	}
	frame, err := resp.Read(c.rd, most)
	if err != nil {
		if wrong := resp.Error(""); errors.As(err, &wrong) {
			c.fail("ERR Protocol error: " + wrong.Error())
		}
		return false
	}
	request := frame.Words
	if c.out.Len() > keepBuffer {
		if err := c.flush(); err != nil {
			return false
		}
	}
	return c.answer(strings.ToUpper(request[0]), request)
}

// answer executes a request. It returns false if the connection must end.
func (c *client) answer(name string, request []string) bool {
	problem := objection(name, request)
	switch {
	case !allowed[name]:
		c.fail(fmt.Sprintf("ERR unknown command '%s': the embedded Redis has no such command", printable(request[0])))
	case c.redis.password != "" && (name == "AUTH" || name == "HELLO"):
		return c.login(name, request)
	case !c.known && name != "QUIT":
		c.fail("NOAUTH Authentication required.")
	case !c.mayRun(name, request):
		c.fail(fmt.Sprintf("FOREIGNSCRIPT this Redis is embedded in TDF %s and runs only its scripts; restart it "+
			"with the same version, or set [redis] password", c.redis.release))
	case problem != "":
		c.fail(problem)
	case name == "SELECT" && c.inMulti:
		c.fail("ERR SELECT is not allowed in transactions")
	case name == "INFO" && len(request) > 1 && strings.EqualFold(request[1], "server"):
		c.info()
	case (name == "BLPOP" || name == "BRPOP") && !c.inMulti:
		return c.pop(name, request)
	default:
		return c.execute(name, request)
	}
	return true
}

// info answers INFO server with what clients need to notice that Redis was restarted.
func (c *client) info() {
	text := "# Server\r\nrun_id:" + c.redis.runID + "\r\n"
	fmt.Fprintf(&c.out, "$%d\r\n%s\r\n", len(text), text)
}

// mayRun reports whether the client may send this request, which may run a script. If there is a password, a client
// that has logged in may run any script. So several versions of TDF can use the Redis at the same time. Without a
// password, every user of the machine can connect, and an endless script would block all clients. So only the scripts
// given to [Scripts] may run.
func (c *client) mayRun(name string, request []string) bool {
	switch {
	case c.redis.scripts == nil, c.redis.password != "", len(request) < 2:
		return true
	case name == "EVALSHA":
		return c.redis.scripts[strings.ToLower(request[1])]
	case name == "EVAL":
		return c.redis.scripts[sha1Hex(request[1])]
	case name == "SCRIPT" && strings.EqualFold(request[1], "load"):
		return len(request) == 3 && c.redis.scripts[sha1Hex(request[2])]
	}
	return true
}

// execute makes miniredis execute a request. It returns false if the connection must end.
func (c *client) execute(name string, request []string) bool {
	c.redis.mu.Lock()
	defer c.redis.mu.Unlock()
	start := c.out.Len()
	if !c.dispatch(request) {
		return false
	}
	c.note(name, request, c.out.Bytes()[start:])
	if !c.redis.commands.IsReadOnlyCommand(name) {
		c.redis.wake()
	}
	return !c.peer.Closed()
}

// dispatch calls miniredis. The caller must hold the lock of the Redis. If miniredis panics, dispatch replies with an
// error and returns false, because the connection must end.
func (c *client) dispatch(request []string) (ok bool) {
	start := c.out.Len()
	defer func() {
		why := recover()
		if why == nil {
			return
		}
		// A panic may leave miniredis locked. Only the holder of the front's lock calls miniredis, so no other
		// goroutine holds miniredis's lock.
		c.redis.mini.TryLock()
		c.redis.mini.Unlock()
		c.out.Truncate(start)
		c.fail("ERR the embedded Redis failed at this command")
		c.redis.panicked(request, why)
		ok = false
	}()
	c.redis.commands.Dispatch(c.peer, request)
	c.peer.Flush()
	return true
}

// note remembers which database the client has chosen, and whether it has begun a transaction. Later requests depend on
// both.
func (c *client) note(name string, request []string, reply []byte) {
	done := len(reply) > 0 && reply[0] != '-'
	switch name {
	case "SELECT":
		if done {
			c.database = number(request[1])
		}
	case "MULTI":
		c.inMulti = c.inMulti || done
	case "EXEC", "DISCARD":
		// with arguments, EXEC and DISCARD are errors that do not end the transaction
		c.inMulti = c.inMulti && len(request) > 1
	}
}

// fail replies with an error.
func (c *client) fail(text string) { fmt.Fprintf(&c.out, "-%s\r\n", text) }

func sha1Hex(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
