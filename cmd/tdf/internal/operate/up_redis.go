package operate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/local"
	"github.com/tdf-framework/tdf/internal/localpass"
)

// localOnly returns the address for the Redis of tdf up. It refuses an address that other machines could reach.
func localOnly(at config.Redis) (config.Redis, error) {
	if at.Host == "localhost" {
		at.Host = "127.0.0.1"
	}
	ip := net.ParseIP(at.Host)
	switch {
	case !at.Fixed():
		return at, cli.Usagef("[redis] sentinels or cluster is set: the Redis of tdf up has neither; leave them out")
	case ip == nil || !ip.IsLoopback():
		return at, cli.Usagef(
			"[redis] host is %s: tdf up runs Redis only on the loopback interface; leave the host out, "+
				"or use tdf-server and tdf-worker with the Redis there", at.Host)
	case at.TLS:
		return at, cli.Usagef("[redis] tls is set: the Redis of tdf up has no TLS; leave tls out")
	case at.Username != "" && at.Username != "default":
		return at, cli.Usagef("[redis] username is %q: the Redis of tdf up has no such user; leave username out",
			at.Username)
	}
	return at, nil
}

// maxPorts is how many ports tdf up tries, from the usual one on, if the user names no address.
const maxPorts = 100

// openRedis starts Redis with a password. If the user has named no address and the port is taken, it takes the next
// free port. Other commands of this user find the port and the password in the file of the password.
func (u *up) openRedis(at *config.Redis, named bool) (*local.Redis, error) {
	for last := at.Port + maxPorts; ; at.Port++ {
		redis, err := u.tryRedis(at)
		if !errors.Is(err, local.ErrTaken) {
			return redis, err
		}
		if named || at.Port == last {
			return nil, cli.Usagef("listen on %s: address in use; choose another port with tdf --redis localhost:PORT "+
				"up, or use tdf-server and tdf-worker if your own Redis runs there", at.Addr())
		}
	}
}

// tryRedis makes a password unless the configuration has one, and starts Redis. The error is [local.ErrTaken] if the
// address is in use.
func (u *up) tryRedis(at *config.Redis) (*local.Redis, error) {
	if at.Password != "" {
		return u.startRedis(*at)
	}
	password, err := localpass.Create(at.Host, at.Port)
	switch {
	case errors.Is(err, localpass.ErrHeld):
		return nil, local.ErrTaken
	case err != nil:
		return nil, fmt.Errorf("store the password of Redis: %w; [redis] password sets a password without a file", err)
	}
	with := *at
	with.Password = password.Secret
	redis, err := u.startRedis(with)
	if err != nil {
		return nil, errors.Join(err, password.Close())
	}
	u.password, *at = password, with
	return redis, nil
}

// letIn lets programs that run as [worker] user enter the directory --data. Their files are below this directory.
// Without letIn, only the owner can enter --data.
func (u *up) letIn(other string) error {
	if other == "" {
		return nil
	}
	syscall.Umask(0o022)
	if u.data == "" {
		return nil
	}
	return os.Chmod(u.data, 0o711)
}

// startRedis starts Redis. Only this user can read the files of Redis, because they contain programs, inputs and
// outputs.
func (u *up) startRedis(at config.Redis) (redis *local.Redis, err error) {
	defer syscall.Umask(syscall.Umask(0o077))
	if u.data == "" {
		redis, err = local.Temporary(at)
	} else {
		redis, err = local.Serve(at, u.data)
	}
	switch {
	case errors.Is(err, local.ErrInUse), errors.Is(err, local.ErrSnapshot):
		return nil, cli.Usagef("--data %s: %v", u.data, err)
	case errors.Is(err, local.ErrNoProgram):
		return nil, cli.Usagef("%v", err)
	case err != nil && !errors.Is(err, local.ErrTaken):
		return nil, fmt.Errorf("start redis: %w", err)
	}
	return redis, err
}
