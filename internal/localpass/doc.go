// Package localpass keeps the password of the Redis that tdf up runs on this machine, so that the other components of the
// same user find it (docs/tdf.md, "All of it on one machine").
//
// There is one file for each address, of mode 0600, in a directory that belongs to the user. It is locked as long as tdf up
// runs: a file that nobody holds was left by a process that was killed, and counts for nothing.
package localpass
