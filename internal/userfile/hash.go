package userfile

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"

	"github.com/tdf-framework/tdf/internal/task"
)

// A hash is the argon2id hash of a password.
type hash struct {
	memory, time uint32 // memory in KiB
	threads      uint8
	salt, key    []byte
}

// The parameters of new hashes, as OWASP recommends them.
var usual = hash{memory: 19 << 10, time: 2, threads: 1}

// Bounds of the parameters in a file, so that a login costs a bounded time and memory.
const (
	mostMemory  = 256 << 10 // KiB
	mostTime    = 20
	mostThreads = 16
)

const (
	minPassword = 8
	maxPassword = 1000
)

var errHash = errors.New("invalid hash")

// parseHash reads $argon2id$v=19$m=19456,t=2,p=1$SALT$KEY.
func parseHash(text string) (hash, error) {
	parts := strings.Split(text, "$")
	var h hash
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != "v=19" {
		return h, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads); err != nil ||
		parts[3] != h.parameters() {
		return h, errHash
	}
	var err, err2 error
	h.salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	h.key, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	ok := err == nil && err2 == nil && h.memory >= 8 && h.memory <= mostMemory && h.time >= 1 && h.time <= mostTime &&
		h.threads >= 1 && h.threads <= mostThreads &&
		len(h.salt) >= 8 && len(h.salt) <= 64 && len(h.key) >= 16 && len(h.key) <= 64
	if !ok {
		return h, errHash
	}
	return h, nil
}

func (h hash) parameters() string { return fmt.Sprintf("m=%d,t=%d,p=%d", h.memory, h.time, h.threads) }

func (h hash) accepts(password string) bool {
	key := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, uint32(len(h.key)))
	return subtle.ConstantTimeCompare(key, h.key) == 1
}

// Hash returns the hash of a password, for a line of the file.
func Hash(password string) (string, error) {
	if len(password) < minPassword || len(password) > maxPassword {
		return "", task.NewError(task.CodeInvalid, fmt.Sprintf("invalid password: want %d to %d bytes", minPassword,
			maxPassword))
	}
	h := usual
	h.salt = make([]byte, 16)
	_, _ = rand.Read(h.salt) // never fails
	h.key = argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.threads, 32)
	to := base64.RawStdEncoding.EncodeToString
	return "$argon2id$v=19$" + h.parameters() + "$" + to(h.salt) + "$" + to(h.key), nil
}
