// Package localpass stores the password of the Redis that tdf up runs, so that other components of the same user find
// it (docs/tdf.md, "All of it on one machine").
//
// Each address has a file of mode 0600 in a directory of the user. tdf up locks the file while it runs. [Find] ignores an
// unlocked file, because a killed process has left it behind.
package localpass
