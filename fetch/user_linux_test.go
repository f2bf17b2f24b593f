package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// forNobody returns a fetcher whose programs run as nobody, and a directory of that user.
func forNobody(t *testing.T) (f *Fetcher, own string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes as another user")
	}
	needRsync(t)
	f, own = newFetcher(t), openDir(t)
	f.Dir = openDir(t)
	f.User = &User{Credential: syscall.Credential{Uid: nobody, Gid: nobody}, Env: []string{"HOME=" + own}}
	must(t, os.Chown(own, nobody, nobody))
	return f, own
}

// A source on the worker's machine is opened with the rights of the user as which the program runs.
func TestSourcesOfThisMachineForAnotherUser(t *testing.T) {
	f, own := forNobody(t)
	private := filepath.Join(openDir(t), "private")
	must(t, os.Mkdir(private, 0o700))
	hidden := write(t, private+"/run.sh", []byte(goodScript)) // everyone may read it, but not enter its directory
	secret := write(t, own+"/secret.tar", pack(t, "tar", runItem))
	must(t, os.Chmod(secret, 0o600))
	for link, to := range map[string]string{"run.sh": hidden, "x.tar": secret, "env-run.sh": "/proc/self/environ"} {
		must(t, os.Symlink(to, own+"/"+link))
	}
	must(t, os.Mkdir(own+"/dir.tar", 0o755))
	must(t, syscall.Mkfifo(own+"/fifo.tar", 0o644))
	for name, want := range map[string]string{
		hidden: "Permission denied", secret: "Permission denied", own + "/run.sh": "Permission denied", own + "/x.tar": "Permission denied",
		own + "/none.tar": "No such file or directory", own + "/dir.tar": "the source is a directory", own + "/fifo.tar": "rsync copied 0 files",
	} {
		fetchFails(t, f, "rsync:"+name, "fetching rsync:"+name+": rsync: ", want)
	}
	mine := write(t, own+"/mine/x.tar", pack(t, "tar", runItem))
	must(t, os.Chown(mine, nobody, nobody))
	must(t, os.Chmod(mine, 0o400))
	must(t, os.Symlink(mine, own+"/mine.tar"))
	fetchWorks(t, f, "rsync:"+own+"/mine.tar")
}

// ssh runs as the user as which the program runs, so it logs in with the keys of that user.
func TestRsyncShellForAnotherUser(t *testing.T) {
	f, own := forNobody(t)
	t.Setenv("SSH_AUTH_SOCK", "/root/agent")
	fakeSSH(t, `{ id -u; id -g; env; } >$HOME/ran; exec sh -c "$*"`)
	mine := write(t, own+"/mine.tar", pack(t, "tar", runItem))
	must(t, os.Chmod(own, 0o755))
	fetchWorks(t, f, "rsync:far.example:"+mine)
	ran := string(expect.Result(os.ReadFile(own + "/ran")).Value(t))
	expect.Contains(t, ran, fmt.Sprintf("%[1]d\n%[1]d\n", nobody))
	expect.Contains(t, ran, "HOME="+own+"\n")
	expect.NotContains(t, ran, "agent")
}

// The programs' user can replace the journal of a copy. A name in it does not lead out of the copy.
func TestJournalOfAnotherUser(t *testing.T) {
	f := newFetcher(t)
	c := makeCopy(t, f, source(t, runItem))
	write(t, f.Dir+"/secret", nil)
	text := `{"done": true, "files": ["../secret"], "copy_of": "prog"}`
	must(t, os.WriteFile(c.Dir+"/"+journalName, []byte(text), 0o644))
	to := t.TempDir()
	_, err := f.CopyInto(t.Context(), "prog", "rsync:/x/run.sh", c.Dir, mkdir(t, to+"/into"), CopyOptions{MaxBytes: 1 << 20})
	checkFailed(t, err, `"../secret" is not a path below the program's directory`)
	expect.Result(os.Lstat(to+"/secret")).Fails(t, "", "a file was copied out of the program")
}
