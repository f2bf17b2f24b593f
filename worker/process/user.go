package process

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// A runAs is the user that programs run as.
type runAs struct {
	credential *syscall.Credential // nil: as this process
	env        []string
}

// lookUp finds a user by name or number.
func lookUp(name string) (runAs, error) {
	if name == "" {
		return runAs{}, nil
	}
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if _, notNumber := strconv.ParseUint(name, 10, 32); errors.As(err, &unknown) && notNumber == nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return runAs{}, fmt.Errorf("user %q: this machine does not know it: %w", name, err)
	}
	credential, err := credentialOf(u)
	if err != nil {
		return runAs{}, fmt.Errorf("user %q: %w", name, err)
	}
	return runAs{credential, []string{"HOME=" + u.HomeDir, "USER=" + u.Username, "LOGNAME=" + u.Username}}, nil
}

func credentialOf(u *user.User) (*syscall.Credential, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	names, groupsErr := u.GroupIds()
	if err := errors.Join(uidErr, gidErr, groupsErr); err != nil {
		return nil, err
	}
	c := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, name := range names {
		id, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return nil, err
		}
		c.Groups = append(c.Groups, uint32(id))
	}
	return c, nil
}

// isSelf says whether programs would run as this process does, whatever it may.
func (r runAs) isSelf() bool {
	return r.credential == nil || int(r.credential.Uid) == os.Geteuid()
}

// Credentials returns whom programs run as, so that what they need can be given to them. ok is
// false when that is whoever this process runs as.
func (h *Host) Credentials() (uid, gid int, ok bool) {
	if h.user.credential == nil {
		return 0, 0, false
	}
	return int(h.user.credential.Uid), int(h.user.credential.Gid), true
}

// UserEnv returns HOME, USER and LOGNAME of Config.User; nothing where that is empty.
func (h *Host) UserEnv() []string { return h.user.env }
