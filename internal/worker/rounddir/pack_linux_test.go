package rounddir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// A file of another user may be a hard link to one that the program may not read, so it is not packed.
func TestPackOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only root can make a directory for another user")
	}
	const nobody = 65534
	d := expect.Result(Create(filepath.Join(t.TempDir(), "d"), Before{}, &Owner{nobody, nobody}, Limits{}, nil)).Value(t)
	t.Cleanup(func() { _ = d.Remove() })
	dir := filepath.Join(d.Path(), ScratchDir)
	put(t, dir, "theirs", "ours")
	expect.NoError(t, os.Chown(dir+"/theirs", nobody, nobody))
	packed, _, err := pack(d, []string{"theirs"}, 100, nil)
	expect.NoError(t, err)
	expect.Equal(t, packedNames(t, packed, "theirs"), "theirs")
	_, _, err = pack(d, []string{"*"}, 100, nil)
	expect.Fails(t, err, "ours: the file belongs to another user")
}
