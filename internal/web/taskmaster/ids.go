package taskmaster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/internal/web/wire"
	"github.com/tdf-framework/tdf/redisstate/index"
)

// ids makes UUIDs from the ids of a namespace's tasks, and back. A UUID has version 8 (RFC 9562): its last 62 bits are
// the id, and its first ones are a check, so that no UUID of another namespace or of another system names a task.
type ids struct{ namespace string }

func (n ids) uuid(id int64) string {
	b := n.check(id)
	binary.BigEndian.PutUint64(b[8:], 1<<63|uint64(id)) // the variant is 10
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// check returns the first half of the UUID of an id.
func (n ids) check(id int64) []byte {
	sum := sha256.Sum256([]byte(n.namespace + "\x00" + strconv.FormatInt(id, 10)))
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80
	return b
}

// id returns the id of a UUID. The error says that the text is no UUID, or that no task has it.
func (n ids) id(text string) (int64, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil || len(b) != 16 || len(text) != 36 {
		return 0, wire.Invalid(fmt.Sprintf("the id %.50q is no UUID", text))
	}
	id := int64(binary.BigEndian.Uint64(b[8:]) &^ (3 << 62))
	if id < 1 || id > index.MaxID || n.uuid(id) != strings.ToLower(text) {
		return 0, task.ErrNoTask
	}
	return id, nil
}
