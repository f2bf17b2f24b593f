package fetch

import (
	"context"
	"errors"
	"io/fs"
)

// fromRedis takes redis:SHA256. That the content sums to its name is checked by obtain.
func (j *job) fromRedis(ctx context.Context) (string, error) {
	if j.Blob == nil {
		return "", errors.New("programs stored in Redis cannot be fetched here")
	}
	r, err := j.Blob(ctx, j.src.SHA256)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("nothing is stored in this namespace under that sum; store the archive again")
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	return j.spool(ctx, r)
}
