package embedded

import (
	"crypto/subtle"
	"slices"
	"strings"
	"time"
)

const (
	wrongPassword = "WRONGPASS invalid username-password pair or user is disabled."
	helloFirst    = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
		"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at " +
		"the same time"
)

// login answers AUTH and HELLO if the Redis has a password.
func (c *client) login(name string, request []string) bool {
	if name == "HELLO" {
		return c.hello(request)
	}
	user, password := "default", ""
	switch len(request) {
	case 2:
		password = request[1]
	case 3:
		user, password = request[1], request[2]
	default:
		c.fail("ERR wrong number of arguments for 'auth' command")
		return true
	}
	if c.authenticate(user, password) {
		c.out.WriteString("+OK\r\n")
	}
	return true
}

// hello answers HELLO. If the request contains AUTH USER PASSWORD, hello logs the client in. Miniredis executes the
// rest of the request.
func (c *client) hello(request []string) bool {
	if i := slices.IndexFunc(request, func(word string) bool {
		return strings.EqualFold(word, "auth")
	}); i >= 2 && len(request) > i+2 {
		if !c.authenticate(request[i+1], request[i+2]) {
			return true
		}
		request = slices.Delete(request, i, i+3)
	}
	if !c.known {
		c.fail(helloFirst)
		return true
	}
	return c.execute("HELLO", request)
}

// authenticate logs a client in. It returns false and replies with an error if the user or the password is wrong.
func (c *client) authenticate(user, password string) bool {
	same := subtle.ConstantTimeCompare([]byte(password), []byte(c.redis.password)) == 1
	if user != "default" || !same {
		c.fail(wrongPassword)
		return false
	}
	c.known = true
	_ = c.conn.SetReadDeadline(time.Time{})
	return true
}
