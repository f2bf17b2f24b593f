package fetch

import (
	"context"
	"errors"
	"io/fs"
)

// fromRedis writes the content of a source redis:SHA256 to the file payload. The caller must check the SHA-256.
func (j *job) fromRedis(ctx context.Context) (string, error) {
	if j.Blob == nil {
		return "", errors.New("no Redis to fetch from")
	}
	r, err := j.Blob(ctx, j.src.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("nothing is stored in this namespace under that SHA-256; store the archive again")
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	return j.spool(ctx, r)
}
