// Package doctest tests the project's pages against its code: that links lead somewhere, that
// tables have every row and no other, that the README's diagram has every transition, and that the tutorial's manager works
// (docs/development.md). It has no code but tests.
package doctest
