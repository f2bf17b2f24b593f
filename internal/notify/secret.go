package notify

import (
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/worker/secrets"
)

// readSecret reads the file that a key of the configuration names. Without a name, there is no secret. The file must
// belong to its owner alone, as other files with secrets.
func readSecret(key, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	secret, err := secrets.Text(path)
	if err != nil {
		return nil, &config.Error{Section: "notify", Key: key, Problem: err.Error()}
	}
	return secret, nil
}
