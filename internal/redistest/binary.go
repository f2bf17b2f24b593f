package redistest

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
)

// oldest is the oldest major version of Redis that supports all features that the project uses.
const oldest = 7

var errMissing = errors.New("redis-server is not installed: apt-get install redis-server (make test does it)")

// binary returns the result of findBinary, which it calls only once.
var binary = sync.OnceValues(findBinary)

// findBinary returns the path of redis-server. It returns an error if redis-server is missing or too old.
func findBinary() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errMissing
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", path, err)
	}
	return path, checkVersion(path, string(out))
}

var versionPattern = regexp.MustCompile(`\bv=(\d+)\.(\d+)`)

// checkVersion returns an error if redis-server is too old. It reads the output of redis-server --version, such as
// "Redis server v=7.0.15 sha=…".
func checkVersion(path, printed string) error {
	found := versionPattern.FindStringSubmatch(printed)
	if found == nil {
		return fmt.Errorf("redis-server %d.0 or later is needed: %s --version prints %q", oldest, path, printed)
	}
	if major, err := strconv.Atoi(found[1]); err != nil || major < oldest {
		return fmt.Errorf("redis-server %d.0 or later is needed, and %s is %s.%s; see https://redis.io/docs/install",
			oldest, path, found[1], found[2])
	}
	return nil
}
