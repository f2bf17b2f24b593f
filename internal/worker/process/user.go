package process

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/internal/task"
)

// A runAs is a user that programs run as.
type runAs struct {
	credential *syscall.Credential // nil means the user of this process
	env        []string
}

// A ConfigError says why this machine does not allow what a field of Config asks for.
type ConfigError struct {
	Key string // the key of the worker's configuration: user or memory
	err error
}

func (e *ConfigError) Error() string { return e.err.Error() }

// Code returns the error's code (docs/manager.md, "Codes of errors").
func (*ConfigError) Code() task.Code { return task.CodeInvalid }
func (e *ConfigError) Unwrap() error { return e.err }

func userError(name, format string, args ...any) error {
	return &ConfigError{"user", fmt.Errorf("user %q: "+format, append([]any{name}, args...)...)}
}

// slotNumber is the placeholder for the number of a slot in Config.User.
const slotNumber = "%n"

// lookUp returns the user of each slot, or a single user if all slots have the same user. If some users do not exist on
// this machine, the error names the first missing user.
func lookUp(cfg Config) ([]runAs, error) {
	if !strings.Contains(cfg.User, slotNumber) {
		one, err := lookUpOne(cfg.User)
		if err == nil && one.isSelf() {
			one.credential = nil
		}
		return []runAs{one}, err
	}
	var all []runAs
	slots := map[uint32]string{}
	for n := 1; n <= max(cfg.Slots, 1); n++ {
		name := strings.ReplaceAll(cfg.User, slotNumber, strconv.Itoa(n))
		one, err := lookUpOne(name)
		if err != nil {
			return nil, fmt.Errorf("slot %d of %d: %w", n, max(cfg.Slots, 1), err)
		}
		uid := one.credential.Uid
		if one.isSelf() {
			return nil, userError(name, "the worker itself runs as this user; want another user for each slot")
		}
		if other, taken := slots[uid]; taken {
			return nil, userError(name, "it has the same number, %d, as %q; want another user for each slot", uid,
				other)
		}
		slots[uid] = name
		all = append(all, one)
	}
	return all, nil
}

// lookUpOne finds a user by name or number.
func lookUpOne(name string) (runAs, error) {
	if name == "" {
		return runAs{}, nil
	}
	u, err := user.Lookup(name)
	var unknown user.UnknownUserError
	if _, notNumber := strconv.ParseUint(name, 10, 32); errors.As(err, &unknown) && notNumber == nil {
		u, err = user.LookupId(name)
	}
	if err != nil {
		return runAs{}, userError(name, "there is no such user on this machine: %w", err)
	}
	credential, err := credentialOf(u)
	if err != nil {
		return runAs{}, userError(name, "%w", err)
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

// isSelf reports whether r is the user of this process.
func (r runAs) isSelf() bool {
	return r.credential == nil || int(r.credential.Uid) == os.Geteuid()
}

// userOf returns the user of a slot.
func (h *Host) userOf(slot int) runAs {
	if len(h.users) == 1 {
		return h.users[0]
	}
	return h.users[slot-1]
}

// OtherUser reports whether this process and its programs run as different users.
func (h *Host) OtherUser() bool { return h.users[0].credential != nil }

// Credential returns the user of the programs of a slot. It is nil if they run as the user of this process.
func (h *Host) Credential(slot int) *syscall.Credential { return h.userOf(slot).credential }

// UserEnv returns HOME, USER and LOGNAME of the user of a slot, or nothing if Config.User is empty.
func (h *Host) UserEnv(slot int) []string { return h.userOf(slot).env }
