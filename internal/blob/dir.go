// Package blob keeps large values in a directory, by their SHA-256 (docs/blobs.md).
package blob

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/task"
)

// Names in the directory of a namespace. Whole blobs are in directories with the first two digits of their SHA-256.
const (
	idFile   = "id"
	partsDir = "parts"
)

// PartKeep is how long the beginning of a blob stays if nobody continues it.
const PartKeep = 24 * time.Hour

// A Dir is the directory of the blobs of one namespace. Processes may share it, also on a disk that machines share.
type Dir struct {
	Path string
	ID   string // a random text, by which clients recognize the directory
}

// OpenDir opens the directory of a namespace below dir, and makes it if it is missing.
func OpenDir(dir, namespace string) (*Dir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &Dir{Path: filepath.Join(dir, url.PathEscape(namespace))}
	if err := os.MkdirAll(filepath.Join(d.Path, partsDir), 0o755); err != nil {
		return nil, err
	}
	at := filepath.Join(d.Path, idFile)
	id, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		err = makeID(at)
		if err == nil {
			id, err = os.ReadFile(at)
		}
	}
	if err == nil && len(id) == 0 {
		err = fmt.Errorf("%s is empty; remove it, and start again", at)
	}
	d.ID = string(id)
	return d, err
}

// makeID writes a new id, unless another process has written one. No process sees a part of it.
func makeID(at string) error {
	text := rand.Text()
	written := at + "." + text
	defer os.Remove(written)
	if err := os.WriteFile(written, []byte(text), 0o644); err != nil {
		return err
	}
	err := os.Link(written, at)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// FindDir returns the directory with an id that a server has announced. The error wraps [ErrElsewhere] if this machine
// does not have it.
func FindDir(id, path string) (*Dir, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: no server of the namespace has one; set [server] blobs in server.cfg", ErrElsewhere)
	}
	there, err := os.ReadFile(filepath.Join(path, idFile))
	if err != nil || string(there) != id {
		return nil, fmt.Errorf("%w: this machine does not have the server's directory %s; put [server] blobs onto a "+
			"shared disk, or let the worker work over the HTTP API", ErrElsewhere, path)
	}
	return &Dir{path, id}, nil
}

// ErrElsewhere means that this process cannot reach the blobs of the namespace.
var ErrElsewhere = task.NewError(task.CodeNotFound, "no directory of blobs")

func (d *Dir) place(sum string) string { return filepath.Join(d.Path, sum[:2], sum) }
func (d *Dir) part(sum string) string  { return filepath.Join(d.Path, partsDir, sum) }

// File opens a blob. The error wraps [fs.ErrNotExist] if it is not whole.
func (d *Dir) File(b task.Blob) (*os.File, error) {
	f, err := os.OpenFile(d.place(b.SHA256), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("blob %s: %w", b.SHA256, ErrLost)
	}
	return f, err
}

// ErrLost means that a blob was removed, or was never whole.
var ErrLost = task.NewError(task.CodeNotFound, "it is not stored any more; store it again, and open the task again")

// Has reports whether a blob is whole: storing a damaged one again replaces it. The error says that the stored one has
// another size than b.
func (d *Dir) Has(ctx context.Context, b task.Blob) (bool, error) {
	f, err := d.File(b)
	if errors.Is(err, ErrLost) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, intact, err := look(ctx, f, b.SHA256)
	switch {
	case err != nil || !intact:
		return false, err
	case info.Size() != b.Bytes:
		return false, task.NewError(task.CodeInvalid, fmt.Sprintf("blob %s has %d bytes, not %d", b.SHA256, info.Size(),
			b.Bytes))
	}
	return true, nil
}

// Write adds a part to a blob that is not whole, if it begins where the stored part ends. It returns how many bytes are
// stored, from which the caller continues: all of them if the blob is whole. If all bytes are there, and are not those
// of the SHA-256, Write removes them, and returns an error.
func (d *Dir) Write(ctx context.Context, b task.Blob, from int64, part []byte) (have int64, err error) {
	whole, err := d.Has(ctx, b)
	if whole || err != nil {
		return b.Bytes, err
	}
	how := os.O_RDWR | unix.O_NOFOLLOW
	if len(part) > 0 || b.Bytes == 0 { // a question leaves no file
		how |= os.O_CREATE
	}
	f, err := os.OpenFile(d.part(b.SHA256), how, 0o644)
	if errors.Is(err, fs.ErrNotExist) && how&os.O_CREATE == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := lock(ctx, f, unix.LOCK_EX); err != nil { // another client may write the same part
		return 0, err
	}
	if whole, err := d.Has(ctx, b); whole || err != nil || !d.isPart(f, b) { // it was finished or removed meanwhile
		return map[bool]int64{true: b.Bytes}[whole], err
	}
	sum := sha256.New()
	have, err = d.resume(f, b, sum)
	if err != nil || have < b.Bytes && (from != have || len(part) == 0) {
		return have, err
	}
	if int64(len(part)) > b.Bytes-have {
		return have, task.NewError(task.CodeInvalid, fmt.Sprintf("blob %s: there are more than %d bytes", b.SHA256, b.Bytes))
	}
	if err := d.room(int64(len(part))); err != nil {
		return have, err
	}
	if _, err := f.WriteAt(part, have); err != nil {
		return have, err
	}
	have += int64(len(part))
	sum.Write(part)
	if have < b.Bytes {
		err := f.Sync() // the state must not vouch for bytes that a power cut loses
		if err == nil {
			err = d.save(b, sum)
		}
		return have, err
	}
	return have, d.finish(f, b, sum)
}

func (d *Dir) isPart(f *os.File, b task.Blob) bool {
	is, err := f.Stat()
	at, err2 := os.Lstat(d.part(b.SHA256))
	return errors.Join(err, err2) == nil && os.SameFile(is, at)
}

// resume reads how far the stored part is hashed, and cuts off what is not.
func (d *Dir) resume(f *os.File, b task.Blob, sum hash.Hash) (have int64, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	state, err := os.ReadFile(d.part(b.SHA256) + ".state")
	if err == nil && len(state) > 8 {
		for _, digit := range state[:8] {
			have = have<<8 | int64(digit)
		}
		err = sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(state[8:])
	}
	if err != nil || have > min(info.Size(), b.Bytes) { // or a client has named a wrong number of bytes
		sum.Reset()
		have = 0
	}
	return have, f.Truncate(have)
}

func (d *Dir) save(b task.Blob, sum hash.Hash) error {
	info, err := os.Stat(d.part(b.SHA256))
	if err != nil {
		return err
	}
	state, err := sum.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		return err
	}
	text := make([]byte, 8, 8+len(state))
	for i := range 8 {
		text[i] = byte(info.Size() >> (56 - 8*i))
	}
	at := d.part(b.SHA256) + ".state"
	if err := os.WriteFile(at+".new", append(text, state...), 0o644); err != nil {
		return err
	}
	return os.Rename(at+".new", at)
}

func (d *Dir) finish(f *os.File, b task.Blob, sum hash.Hash) error {
	at := d.part(b.SHA256)
	_ = os.Remove(at + ".state") // missing if there was one part
	if got := hex.EncodeToString(sum.Sum(nil)); got != b.SHA256 {
		return errors.Join(task.NewError(task.CodeInvalid, fmt.Sprintf("blob %s: the bytes have the SHA-256 %s",
			b.SHA256, got)), os.Remove(at))
	}
	err := f.Sync()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(d.place(b.SHA256)), 0o755)
	}
	if err == nil {
		err = os.Rename(at, d.place(b.SHA256))
	}
	return err
}

// reserve is the share of the disk that blobs leave free.
const reserve = 20

// room returns an error if the disk would be nearly full with so many further bytes.
func (d *Dir) room(bytes int64) error {
	free, size, err := d.Free()
	if err != nil {
		return err
	}
	if free-bytes < size/reserve {
		return task.NewError(task.CodeFull, fmt.Sprintf("the disk of %s has too little space: blobs leave a %dth of it free",
			d.Path, reserve))
	}
	return nil
}

// Free returns how many bytes are free on the disk, and how many it has.
func (d *Dir) Free() (free, size int64, err error) {
	var s unix.Statfs_t
	err = unix.Statfs(d.Path, &s)
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, err
}

// Locked calls a function while no [Dir.Sweep] removes blobs, so that a blob which is there stays until it is
// registered.
func (d *Dir) Locked(ctx context.Context, f func() error) error {
	return d.locked(ctx, os.O_RDONLY, unix.LOCK_SH, f)
}

// alone calls a function while no other process is in [Dir.Locked].
func (d *Dir) alone(ctx context.Context, f func() error) error {
	return d.locked(ctx, os.O_RDWR, unix.LOCK_EX, f) // NFS locks only a file that may be written
}

func (d *Dir) locked(ctx context.Context, open, how int, f func() error) error {
	id, err := os.OpenFile(filepath.Join(d.Path, idFile), open, 0)
	if err != nil {
		return err
	}
	defer id.Close()
	if err := lock(ctx, id, how); err != nil {
		return err
	}
	return f()
}

// lockPause is the pause between two attempts to lock a file. The kernel would wait longer than ctx: the process that
// has the lock may be stopped, or wait for Redis.
const lockPause = 10 * time.Millisecond

func lock(ctx context.Context, f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s, which another process has locked: %w", f.Name(), context.Cause(ctx))
		case <-time.After(lockPause):
		}
	}
}

// Sweep removes the blobs that are lost: that Redis does not know any more, although they are older than
// [task.BlobKeep]. It also removes old parts.
func (d *Dir) Sweep(ctx context.Context, lost func(ctx context.Context, sums ...string) ([]string, error)) error {
	for i := range 256 {
		first := fmt.Sprintf("%02x", i)
		entries, err := os.ReadDir(filepath.Join(d.Path, first))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		var sums []string
		for _, e := range entries {
			info, err := e.Info()
			if err == nil && len(e.Name()) == 2*sha256.Size && time.Since(info.ModTime()) > task.BlobKeep.Std() {
				sums = append(sums, e.Name())
			}
		}
		if len(sums) == 0 {
			continue
		}
		err = d.alone(ctx, func() error {
			gone, err := lost(ctx, sums...)
			for _, sum := range gone {
				err = errors.Join(err, remove(d.place(sum)))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return d.alone(ctx, d.sweepParts) // so that no client is about to continue one of them
}

func (d *Dir) sweepParts() error {
	entries, err := os.ReadDir(filepath.Join(d.Path, partsDir))
	for _, e := range entries {
		info, gone := e.Info()
		if gone == nil && time.Since(info.ModTime()) > PartKeep {
			err = errors.Join(err, remove(filepath.Join(d.Path, partsDir, e.Name())))
		}
	}
	return err
}

// remove removes a file, unless another process has removed it.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// BlobOf returns the blob of a file's content.
func BlobOf(f io.Reader) (task.Blob, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return task.Blob{SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: n}, err
}
