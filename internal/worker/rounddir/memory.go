package rounddir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// InMemory returns a Dir without a directory, for a round that runs in the worker's process: what [Dir.Replace] and
// [Dir.Append] write stays in memory. [Dir.MoveTo] gives it a directory. It holds at most what the limits allow.
func InMemory(before Before, limits Limits, s *secrets.Secrets) *Dir {
	return &Dir{limits: limits, secrets: s, seen: state{checkpoint: sum(before.Checkpoint)}}
}

// OnDisk reports whether there is a directory.
func (d *Dir) OnDisk() bool { return d.dir != nil }

// A held is the content of a file in memory.
type held struct {
	data []byte
	size int64 // larger than the data if the limit allows no more
}

// most returns the largest useful size of a file in memory: of a larger one, only the size matters.
func (l *Limits) most(name string) int64 {
	switch name {
	case ResultFile:
		return l.Result + 1
	case CheckpointFile:
		return l.Checkpoint + 1
	case UpdatesFile:
		return l.Updates + updateBytes
	}
	return progressLine
}

// Replace gives a file a new content in one step, so that the worker never reads half of it.
func (d *Dir) Replace(name string, data []byte) error {
	if d.OnDisk() {
		return d.replaceFile(name, data)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := slices.Clone(data[:min(int64(len(data)), d.limits.most(name))])
	d.hold(name, held{kept, int64(len(data))})
	return nil
}

// Append adds a line to a file.
func (d *Dir) Append(name, line string) error {
	line = strings.TrimSuffix(line, "\n") + "\n"
	if d.OnDisk() {
		return d.appendFile(name, line)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.held[name]
	f.data = append(f.data, line[:max(0, min(int64(len(line)), d.limits.most(name)-f.size))]...)
	f.size = int64(len(f.data))
	d.hold(name, f)
	return nil
}

func (d *Dir) hold(name string, f held) {
	if d.held == nil {
		d.held = map[string]held{}
	}
	d.held[name] = f
}

// MoveTo moves the files from memory into a new directory. The caller then uses that directory only.
func (d *Dir) MoveTo(disk *Dir) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, f := range d.held {
		if err := disk.replaceFile(name, f.data); err != nil {
			return err
		}
	}
	disk.seen, disk.reported = d.seen, d.reported
	return nil
}

// replaceFile replaces a file on disk.
func (d *Dir) replaceFile(name string, data []byte) error {
	f, err := os.CreateTemp(d.path, "."+name+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(d.path, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func (d *Dir) appendFile(name, line string) error {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, line)
	return errors.Join(err, f.Close())
}

// A heldFile is an open file in memory.
type heldFile struct{ *bytes.Reader }

// Close does nothing.
func (heldFile) Close() error { return nil }

// openHeld does for a file in memory what open does for one on disk. The caller holds d.mu, or the round has ended.
func (d *Dir) openHeld(name string) (reader, *unix.Stat_t, error) {
	f, ok := d.held[name]
	if !ok {
		return nil, nil, nil
	}
	return heldFile{bytes.NewReader(f.data)}, &unix.Stat_t{Size: f.size}, nil
}
