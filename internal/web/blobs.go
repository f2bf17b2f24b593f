package web

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/tdf-framework/tdf/internal/blob"
	"github.com/tdf-framework/tdf/internal/managing"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate"
)

// addBlobs adds the routes of blobs (docs/blobs.md). Who knows the SHA-256 of a blob may read it, because it is as
// secret as the content.
func (a *api) addBlobs() {
	add(a, route{http.MethodGet, "/blobs", "locate-blobs", "Say where the directory of the blobs is", wire.ToStore, false},
		a.locateBlobs)
	add(a, route{http.MethodGet, "/blobs/{sha256}", "get-blob", "Read a blob, or a part of it", wire.ToRead, true},
		a.getBlob)
	a.alsoAnswers("get-blob", octets)
	addReading(a, route{
		http.MethodPut, "/blobs/{sha256}", "store-blob",
		"Add a part to a blob; an empty part asks how many bytes are stored", wire.ToStore, true,
	}, []string{octets}, a.storeBlob)
	a.huma.OpenAPI().Paths[base+"/blobs/{sha256}"].Put.RequestBody.Required = false
}

// blobPlace is where the blobs of the namespace are.
type blobPlace struct {
	ID   string `json:"id" doc:"a random text, which the file id in the directory has, too"`
	Path string `json:"path" doc:"the directory on the machine of the API; a client that has it there may read blobs from it, and write them"`
}

func (a *api) locateBlobs(_ context.Context, _ *call, _ *none) (*out[blobPlace], error) {
	if a.Blobs == nil {
		return nil, errNoBlobs
	}
	return &out[blobPlace]{blobPlace{a.Blobs.ID, a.Blobs.Path}}, nil
}

var errNoBlobs = task.NewError(task.CodeNotFound, "this API keeps no blobs; set [http] blobs in its configuration")

// A BlobInput names a blob, and a place in it.
type BlobInput struct {
	SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"the SHA-256 of the blob's content"`
	From   int64  `query:"from" minimum:"0" doc:"the number of bytes that come before"`
}

type readInput struct {
	BlobInput
	Most int64 `query:"most" minimum:"0" doc:"the largest number of bytes of the answer; 0 for no limit"`
}

func (a *api) getBlob(_ context.Context, c *call, in *readInput) (*streamed, error) {
	if a.Blobs == nil {
		return nil, errNoBlobs
	}
	f, err := a.Blobs.File(task.Blob{SHA256: in.SHA256})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(in.From, io.SeekStart); err != nil {
		return nil, err
	}
	from := io.Reader(f)
	if in.Most > 0 {
		from = io.LimitReader(f, in.Most)
	}
	return nil, a.stream(c, octets, func(s *stream) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{s}, from, make([]byte, writeBuffer))
		return err
	})
}

type blobPart struct {
	BlobInput
	Bytes   int64  `query:"bytes" minimum:"0" required:"true" doc:"how many bytes the whole blob has"`
	RawBody []byte `contentType:"application/octet-stream" required:"false"`
}

// storedPart is the answer to a call that stores a part.
type storedPart struct {
	Have int64 `json:"have" doc:"how many bytes are stored, from which you continue; the blob is whole if these are all"`
}

func (a *api) storeBlob(ctx context.Context, c *call, in *blobPart) (*out[storedPart], error) {
	if a.Blobs == nil {
		return nil, errNoBlobs
	}
	b, err := task.ParseBlob(task.Blob{SHA256: in.SHA256, Bytes: in.Bytes}.String())
	if err != nil {
		return nil, task.NewError(task.CodeInvalid, err.Error())
	}
	owner := c.token.Owner()
	store := managing.Of(a.manager).Store
	if len(in.RawBody) > 0 && owner != "" {
		if err := a.shares.begin(ctx, store, a.Blobs, owner, b); err != nil {
			return nil, err
		}
	}
	have, err := blob.Direct{Dir: a.Blobs, Registry: store.Blobs, Token: owner}.WriteBlob(ctx, b, in.From, in.RawBody)
	if have == b.Bytes {
		a.shares.end(owner, b, err == nil)
	}
	return &out[storedPart]{storedPart{have}}, err
}

// A token may store at most a part of the bytes for which the disk has space, so that it leaves the rest for others.
// The same part of the blobs that are stored at once may be its own.
const (
	blobShare  = 4
	mostParts  = 1000
	sharesLife = time.Minute
)

// blobShares counts how many bytes the blobs of each token have. It reads those of whole blobs from Redis at times, and
// adds what clients store meanwhile.
type blobShares struct {
	mu    sync.Mutex
	read  time.Time
	whole map[string]int64       // by token
	parts map[string]partOfToken // by SHA-256
}

type partOfToken struct {
	token string
	bytes int64
	last  time.Time
}

// begin returns an error if a blob would exceed the share of a token.
func (s *blobShares) begin(ctx context.Context, store *redisstate.Store, dir *blob.Dir, token string,
	b task.Blob,
) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole == nil || time.Since(s.read) > sharesLife {
		whole, err := store.Blobs.BlobBytes(ctx)
		if err != nil {
			return err
		}
		s.whole, s.read = whole, time.Now()
		maps.DeleteFunc(s.parts, func(_ string, p partOfToken) bool { return time.Since(p.last) > blob.PartKeep })
	}
	room, _, err := dir.Free()
	if err != nil {
		return err
	}
	for _, bytes := range s.whole {
		room += bytes
	}
	own, count := s.whole[token]+b.Bytes, 1
	for sum, p := range s.parts {
		if p.token == token && sum != b.SHA256 {
			own, count = own+p.bytes, count+1
		}
	}
	switch {
	case own > room/blobShare:
		return task.NewError(task.CodeFull, fmt.Sprintf("with blob %s, those of the token %s would have %d bytes, more than "+
			"its share of the disk, a quarter (%d)", b.SHA256, token, own, room/blobShare))
	case count > mostParts/blobShare:
		return task.NewError(task.CodeFull, fmt.Sprintf("the token %s has begun to store %d blobs; finish some of them",
			token, count-1))
	}
	if s.parts == nil {
		s.parts = map[string]partOfToken{}
	}
	s.parts[b.SHA256] = partOfToken{token, b.Bytes, time.Now()}
	return nil
}

// end says that a blob is whole, or that its bytes were wrong and are removed.
func (s *blobShares) end(token string, b task.Blob, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.parts[b.SHA256]
	delete(s.parts, b.SHA256)
	if known && whole {
		s.whole[token] += b.Bytes
	}
}
