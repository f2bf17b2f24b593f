package conn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/expect"
)

type replied string

func (e replied) Error() string { return string(e) }
func (replied) RedisError()     {}

var _ redis.Error = replied("")

// If Redis refuses the first call of a client, the call fails. After a first success, refused calls wait until Redis
// accepts them again. An error that concerns only one task is always returned at once.
func TestRefusalsAfterTheFirstContactAreOutages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err                  error
		first, later, worked bool // whether a call that gets err waits: before the first success, after the first success, and after a script has succeeded
	}{
		{replied("NOAUTH Authentication required."), false, true, true},
		{fmt.Errorf("failed to authenticate: %w", replied("WRONGPASS invalid username-password pair or user is disabled.")), false, true, true},
		{replied("ERR AUTH <password> called without any password configured for the default user."), false, true, true},
		{replied("ERR Protocol error: unauthenticated bulk length"), false, true, true},
		{replied("DENIED Redis is running in protected mode"), false, true, true},
		{replied("ERR DB index is out of range"), false, true, true},
		{fmt.Errorf("tls: failed to verify certificate: %w", x509.UnknownAuthorityError{}), false, true, true},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(116)}, false, true, true},
		{replied("NOPERM this user has no permissions to run the 'evalsha' command"), false, false, true},
		{replied("ERR The user executing the script can't run this command or subcommand script: x"), false, false, true},
		{replied("READONLY You can't write against a read only replica."), true, true, true},
		{replied("LOADING Redis is loading the dataset in memory"), true, true, true},
		{replied("MASTERDOWN Link with MASTER is down"), true, true, true},
		{replied("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"), true, true, true},
		{replied("ERR WAIT cannot be used with replica instances. Please also note"), true, true, true},
		{replied("ERR Script attempted to access a non local key in a cluster node script: x"), true, true, true},
		{replied("WRONGTYPE Operation against a key holding the wrong kind of value"), false, false, false},
		{replied("ERR Protocol error: invalid bulk length"), false, false, false},
		{replied("FOREIGNSCRIPT this Redis is embedded in TDF v1 and runs only its scripts"), false, false, false},
		{replied("ERR Error running script: no password is mentioned, nor x509: or tls:"), false, false, false},
		{redis.Nil, false, false, false},
		{redis.ErrClosed, false, false, false},
	} {
		s := &Conn{}
		check := func(when string, want bool) {
			why, passes := s.outage(c.err)
			expect.Equal(t, passes, want, when, why)
			expect.NotEqual(t, passes, why == "", when, why)
		}
		check("before the first contact", c.first)
		s.connected.Store(true)
		check("after the first contact", c.later)
		s.scriptWorked.Store(true)
		check("after a script has worked", c.worked)
	}
}

func TestUnstorableErrors(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		replied("ERR Protocol error: invalid bulk length"):                      true,
		replied("ERR string exceeds maximum allowed size (proto-max-bulk-len)"): true,
		replied("WRONGTYPE N:due is not a sorted set"):                          false, // this error concerns all tasks
		replied("ERR unknown command 'evalsha'"):                                false,
		errors.New("invalid bulk length"):                                       false,
	} {
		var found *UnstorableError
		expect.Equal(t, errors.As(Unstorable(err), &found), want)
	}
}
