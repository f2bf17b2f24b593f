// Package accounts has the tokens, sessions and logins of a namespace (package access) in Redis.
package accounts

import "github.com/tdf-framework/tdf/redisstate/conn"

// Accounts has the methods for tokens, sessions and logins.
type Accounts struct{ Conn *conn.Conn }
