// Package access says who may do what without access to Redis. A token names its role, and a table says what each role
// may do. Package redisstate stores tokens, and package admin adds, checks and removes them.
package access
