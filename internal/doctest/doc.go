// Package doctest tests the project's pages against its code: that links lead somewhere, that
// tables have every row and no other, and that what the README shows works
// (docs/development.md). It has no code of its own but tests.
package doctest
