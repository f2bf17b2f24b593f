// Package origin makes http requests that send credentials only to their scheme, host and port. Its errors contain no
// credentials (docs/programs.md, "Sources"). Workers fetch programs with it, and managers check sources with it.
package origin
