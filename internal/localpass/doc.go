// Package localpass stores the password of the Redis that tdf up runs, and a token for its HTTP API. Other programs of
// the same user can then find them (docs/tdf.md, "All of it on one machine").
//
// Each address has a file of mode 0600 in a directory of the user. tdf up locks the file while it runs. [Find] ignores
// a file that is not locked, because the process that wrote it has been killed. The next tdf up removes the file.
package localpass
