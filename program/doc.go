// Package program packs directories of programs. It stores, lists and removes programs in the Redis of a namespace
// (docs/programs.md).
package program
