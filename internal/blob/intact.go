package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// looks are the files that this process has read, and whether their bytes were those of their names.
var looks = struct {
	sync.Mutex
	of map[string]reading
}{of: map[string]reading{}}

type reading struct {
	info   fs.FileInfo
	intact bool
}

const (
	mostLooks = 10_000
	young     = time.Minute // a file that was changed since is taken for intact: it has just been stored
)

// look reports whether a file has the bytes of its name. It reads the file once in each process, because faults and
// users change files. If ctx has a deadline, it reads for at most half of the time that is left, so that a call to the
// API has an answer in time, and takes the rest for intact.
func look(ctx context.Context, f *os.File, sum string) (info fs.FileInfo, intact bool, err error) {
	info, err = f.Stat()
	if err != nil {
		return nil, false, err
	}
	looks.Lock()
	known := looks.of[f.Name()]
	looks.Unlock()
	switch {
	case known.info != nil && isSame(known.info, info):
		return info, known.intact, nil
	case time.Since(info.ModTime()).Abs() < young:
		return info, true, nil
	}
	until, hurried := ctx.Deadline()
	until = until.Add(-time.Until(until) / 2)
	got, buffer := sha256.New(), make([]byte, 1<<20)
	for n := 0; err == nil; {
		n, err = f.Read(buffer)
		got.Write(buffer[:n])
		switch {
		case ctx.Err() != nil:
			return info, false, context.Cause(ctx)
		case hurried && time.Now().After(until):
			return info, true, nil
		}
	}
	if !errors.Is(err, io.EOF) {
		return info, false, err
	}
	intact = hex.EncodeToString(got.Sum(nil)) == sum
	looks.Lock()
	defer looks.Unlock()
	if len(looks.of) >= mostLooks {
		clear(looks.of)
	}
	looks.of[f.Name()] = reading{info, intact}
	return info, intact, nil
}

func isSame(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
