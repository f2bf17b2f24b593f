package localpass

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// renamed is the environment variable with which the test starts itself on a machine with another host name.
const renamed = "TDF_TEST_RENAMED"

// Find finds the password after a change of the host name.
func TestFindAfterChangeOfHostName(t *testing.T) {
	if os.Getenv(renamed) != "" {
		expect.NoError(t, syscall.Sethostname([]byte("renamed.example")))
		fmt.Printf("found %s\n", Find("127.0.0.1", 6379))
		return
	}
	useTempDirs(t)
	f := create(t, "127.0.0.1", 6379)
	defer f.Close()
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	again.Env = append(os.Environ(), renamed+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUTS}
	if os.Geteuid() != 0 {
		again.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		again.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		again.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	out, err := again.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Skipf("this system gives no process a host name of its own: %v", err)
	}
	expect.NoError(t, err, string(out))
	expect.Contains(t, string(out), "found "+f.Secret+"\n")
}
