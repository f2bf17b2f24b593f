// Package doctest contains only tests, which compare the project's pages with its code (docs/development.md): links,
// tables that repeat the code, and the tests that pages name.
package doctest
