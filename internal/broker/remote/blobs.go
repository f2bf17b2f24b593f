package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/task"
)

// Blobs returns the store of the namespace's blobs.
func (r *Remote) Blobs(context.Context) (blob.Store, error) { return blobs{r.client}, nil }

type blobs struct{ *client }

// partBytes is how many bytes of a blob the answer to one call has.
const partBytes = 8 << 20

func (b blobs) WriteBlob(ctx context.Context, of task.Blob, from int64, part []byte) (int64, error) {
	var got struct{ Have int64 }
	err := b.call(ctx, &request{
		method: http.MethodPut, path: fmt.Sprintf("/blobs/%s?bytes=%d&from=%d", of.SHA256, of.Bytes, from),
		body: append([]byte{}, part...), answer: &got, longest: bulkTime,
	})
	if hasStatus(err, http.StatusNotFound) {
		err = fmt.Errorf("%w: %w", blob.ErrElsewhere, err)
	}
	return got.Have, err
}

func (b blobs) ReadBlob(ctx context.Context, of task.Blob, from int64, to io.Writer) error {
	for from < of.Bytes {
		var part []byte
		err := b.call(ctx, &request{
			method: http.MethodGet, path: fmt.Sprintf("/blobs/%s?from=%d&most=%d", of.SHA256, from, partBytes),
			answer: &part, longest: bulkTime,
		})
		if hasStatus(err, http.StatusNotFound) && b.keepsNone(ctx) {
			return fmt.Errorf("%w: %w", blob.ErrElsewhere, err)
		}
		if err != nil {
			return err
		}
		if len(part) == 0 {
			return fmt.Errorf("blob %s: the API has %d bytes of it instead of %d", of.SHA256, from, of.Bytes)
		}
		if _, err := to.Write(part); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return nil
}

// keepsNone reports whether the API keeps no blobs at all.
func (b blobs) keepsNone(ctx context.Context) bool {
	err := b.call(ctx, &request{method: http.MethodGet, path: "/blobs", longest: bulkTime})
	return hasStatus(err, http.StatusNotFound)
}
