// Package doctest tests the project's pages against its code (docs/development.md): links, tables, the README's diagram,
// and the tutorial's manager. It has only tests.
package doctest
