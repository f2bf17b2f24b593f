// Package bundle packs the files that a round brings back, and reads them where they go (docs/programs.md, "Files that
// a round brings back"). A bundle is a tar.gz with regular files alone. Its readers trust nothing in it, because a
// program or a worker of another user may have made it.
package bundle
