package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A disk is a file system of its own, which can be full.
type disk struct {
	t   testing.TB
	dir string
}

// canMount reports whether this process may mount file systems.
func canMount() bool {
	return os.Geteuid() == 0 && exec.Command("unshare", "--mount", "true").Run() == nil
}

// newDisk mounts an empty file system at dir. It ends with the test.
func newDisk(t testing.TB, dir string) *disk {
	d := &disk{t, dir}
	d.mount("-t", "tmpfs", "-o", sizeOf(roomy), "tdf-chaos", dir)
	t.Cleanup(func() { expect.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return d
}

// roomy is the size of a disk with space, in bytes.
const roomy = 4 << 30

func sizeOf(bytes int64) string { return fmt.Sprintf("size=%d", bytes) }

func (d *disk) mount(args ...string) {
	d.t.Helper()
	printed, err := exec.Command("mount", args...).CombinedOutput()
	expect.NoError(d.t, err, string(printed))
}

// fill leaves few bytes free, and empty as many as before. The kernel refuses a size that is too small because the disk
// has got more bytes in the meantime.
func (d *disk) fill(few int) {
	d.t.Helper()
	var printed []byte
	expect.Eventually(d.t, "the disk is full", func() bool {
		var now unix.Statfs_t
		expect.NoError(d.t, unix.Statfs(d.dir, &now))
		used := int64(now.Blocks-now.Bfree) * now.Bsize
		var err error
		printed, err = exec.Command("mount", "-o", "remount,"+sizeOf(used+int64(few)+now.Bsize), d.dir).CombinedOutput()
		return err == nil
	}, func() any { return string(printed) })
}

func (d *disk) empty() {
	d.t.Helper()
	d.mount("-o", "remount,"+sizeOf(roomy), d.dir)
}
