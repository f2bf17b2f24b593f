// Package blobs has the blobs of a namespace: large values that a directory holds (docs/blobs.md). Redis has their
// sizes, owners and last uses.
package blobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/redisstate/conn"
	"github.com/tdf-framework/tdf/redisstate/lua"
)

// Blobs has the methods for blobs. Many goroutines may use it at the same time.
type Blobs struct{ Conn *conn.Conn }

const atOnce = 500

// ErrLost means that a blob is not stored: it was never stored, or it was removed after its last use.
var ErrLost = task.NewError(task.CodeNotFound, "it is not stored; store it again")

// RegisterBlob records that the directory of the namespace holds a blob, and renews its last use. The blob counts as
// one of the token that has stored it first; "" means none.
func (b Blobs) RegisterBlob(ctx context.Context, blob task.Blob, token string) error {
	now, err := b.Conn.Now(ctx)
	if err != nil {
		return err
	}
	return b.Conn.Pipeline(ctx, "register a blob", func(p redis.Pipeliner) {
		p.ZAddArgs(ctx, b.Conn.Keys.BlobsUsed(), redis.ZAddArgs{GT: true, Members: []redis.Z{
			{Score: float64(now), Member: blob.SHA256},
		}})
		p.ZAdd(ctx, b.Conn.Keys.Blobs(), redis.Z{Score: float64(blob.Bytes), Member: blob.SHA256})
		if token != "" {
			p.HSetNX(ctx, b.Conn.Keys.BlobOwners(), blob.SHA256, token)
		}
	})
}

// UseBlobs renews the last use of blobs. It returns those that are not stored.
func (b Blobs) UseBlobs(ctx context.Context, sums ...string) (lost []string, err error) {
	if len(sums) == 0 {
		return nil, nil
	}
	now, err := b.Conn.Now(ctx)
	if err != nil {
		return nil, err
	}
	return b.lost(ctx, sums, func(p redis.Pipeliner, page []string) {
		used := redis.ZAddArgs{XX: true, GT: true}
		for _, sum := range page {
			used.Members = append(used.Members, redis.Z{Score: float64(now), Member: sum})
		}
		p.ZAddArgs(ctx, b.Conn.Keys.BlobsUsed(), used)
	})
}

// LostBlobs returns the blobs that are not stored.
func (b Blobs) LostBlobs(ctx context.Context, sums ...string) (lost []string, err error) {
	return b.lost(ctx, sums, func(redis.Pipeliner, []string) {})
}

func (b Blobs) lost(ctx context.Context, sums []string, before func(p redis.Pipeliner, page []string)) (lost []string,
	err error,
) {
	for page := range slices.Chunk(sums, atOnce) {
		var found *redis.FloatSliceCmd
		err := b.Conn.Pipeline(ctx, "find blobs", func(p redis.Pipeliner) {
			before(p, page)
			found = p.ZMScore(ctx, b.Conn.Keys.BlobsUsed(), page...)
		})
		if err != nil {
			return nil, err
		}
		for i, score := range found.Val() {
			if score == 0 {
				lost = append(lost, page[i])
			}
		}
	}
	return lost, nil
}

// CheckBlobs checks that the blobs that new tasks name are stored, and renews their last use. The error wraps [ErrLost]
// if one of them is not. For a request that was carried out before, it checks nothing.
func (b Blobs) CheckBlobs(ctx context.Context, definitions []task.Properties) error {
	if conn.IsRepeated(ctx) {
		return nil
	}
	var sums []string
	for i := range definitions {
		for _, text := range definitions[i].Blobs {
			sum, _, _ := strings.Cut(text, ":")
			sums = append(sums, sum)
		}
	}
	slices.Sort(sums)
	lost, err := b.UseBlobs(ctx, slices.Compact(sums)...)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("blob %s: %w", lost[0], ErrLost)
	}
	return err
}

// HasBlobs reports whether the namespace has blobs.
func (b Blobs) HasBlobs(ctx context.Context) (bool, error) {
	n, err := conn.Ask(ctx, b.Conn, "count blobs", func(r redis.Cmdable) *redis.IntCmd {
		return r.ZCard(ctx, b.Conn.Keys.BlobsUsed())
	})
	return n > 0, err
}

// BlobBytes returns how many bytes the blobs of each token have. The blobs of no token are those of "".
func (b Blobs) BlobBytes(ctx context.Context) (map[string]int64, error) {
	owners, sizes := map[string]string{}, map[string]int64{}
	err := b.Conn.EachField(ctx, "read the owners of blobs", b.Conn.Keys.BlobOwners(), func(sum, token string) bool {
		owners[sum] = token
		return true
	})
	for from := int64(0); err == nil; from += atOnce {
		var page []redis.Z
		page, err = conn.Ask(ctx, b.Conn, "list blobs", func(r redis.Cmdable) *redis.ZSliceCmd {
			return r.ZRangeWithScores(ctx, b.Conn.Keys.Blobs(), from, from+atOnce-1)
		})
		for _, z := range page {
			sizes[owners[conn.Text(z.Member)]] += int64(z.Score)
		}
		if len(page) < atOnce {
			break
		}
	}
	return sizes, err
}

// RemoveUnusedBlobs forgets blobs whose last use was before the given time, at most so many. If a client uses one in
// the meantime, it stays.
func (b Blobs) RemoveUnusedBlobs(ctx context.Context, before task.Time, most int64) error {
	if b.Conn.ScanRefused() {
		return nil // walks may have left out tasks
	}
	const doing = "remove unused blobs"
	unused, err := conn.Ask(ctx, b.Conn, doing, func(r redis.Cmdable) *redis.StringSliceCmd {
		return r.ZRangeArgs(ctx, redis.ZRangeArgs{
			Key: b.Conn.Keys.BlobsUsed(), ByScore: true, Start: "-inf", Stop: "(" + before.String(), Count: most,
		})
	})
	if err != nil || len(unused) == 0 {
		return err
	}
	keys, args := []string{b.Conn.Keys.BlobsUsed(), b.Conn.Keys.Blobs(), b.Conn.Keys.BlobOwners()}, []any{before.String()}
	for _, sum := range unused {
		args = append(args, sum)
	}
	_, err = b.Conn.Run(ctx, doing, lua.Unused, keys, args, conn.ManyTexts)
	return err
}

// SetBlobPlace stores where the directory of the namespace's blobs is: its id and its path on the machine of the
// server.
func (b Blobs) SetBlobPlace(ctx context.Context, id, path string) error {
	return b.Conn.Pipeline(ctx, "store the place of blobs", func(p redis.Pipeliner) {
		p.Set(ctx, b.Conn.Keys.BlobPlace(), id+" "+path, 0)
	})
}

// BlobPlace returns what SetBlobPlace has stored, or "" twice.
func (b Blobs) BlobPlace(ctx context.Context) (id, path string, err error) {
	var at *redis.StringCmd
	err = b.Conn.Pipeline(ctx, "read the place of blobs", func(p redis.Pipeliner) {
		at = p.Get(ctx, b.Conn.Keys.BlobPlace())
	})
	id, path, _ = strings.Cut(at.Val(), " ")
	return id, path, err
}
