// Package program packs programs' directories, and stores, lists and removes programs in a namespace's own Redis
// (docs/programs.md).
package program
