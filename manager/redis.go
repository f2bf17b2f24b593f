package manager

import (
	"errors"

	"github.com/tdf-framework/tdf/redisstate"
)

// errNoRedis is what managers say that were made by [NewOn].
var errNoRedis = errors.New("the tasks are not kept in Redis")

// redis is the Redis itself, for what only makes sense there.
func (m *Manager) redis() (*redisstate.Store, error) {
	if s, ok := m.store.(redisStore); ok {
		return s.Store, nil
	}
	return nil, errNoRedis
}
