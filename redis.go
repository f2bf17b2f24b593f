package tdf

import (
	"github.com/redis/go-redis/v9"

	"github.com/tdf-framework/tdf/internal/config"
)

// Redis says where Redis is, and how to log in (docs/configuration.md, "[redis]").
type Redis = config.Redis

// RedisFrom returns the address and the login of a program's own Redis client. TDF makes its own connections, with its
// own timeouts and retries, so it ignores the rest of the options. The error is a *[ConfigError] if the options choose
// the address or the login anew for each connection.
func RedisFrom(o *redis.UniversalOptions) (Redis, error) { return config.RedisFrom(o) }

// A ConfigError is the reason why a configuration is invalid. It names the file, the section and the key.
type ConfigError = config.Error
