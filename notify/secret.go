package notify

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/worker/secrets"
)

const maxSecret = 64 << 10 // bytes

// readSecret reads the file that a key of the configuration names. Without a name, there is no secret. The file must
// belong to its owner alone, as other files with secrets.
func readSecret(key, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	secret, err := readPrivate(path)
	if err == nil && len(secret) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		return nil, &config.Error{Section: "notify", Key: key, Problem: err.Error()}
	}
	return secret, nil
}

func readPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // to open a FIFO would otherwise wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := secrets.Private(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret))
	return bytes.TrimSpace(text), err
}
