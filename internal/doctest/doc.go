// Package doctest contains only tests, which compare the project's pages with its code (docs/development.md). They
// check links, tables, the tests that docs/compared.md names, the diagram of docs/lifecycle.md, and the tutorial's
// dashboard.
package doctest
