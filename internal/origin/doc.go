// Package origin makes HTTP requests. It sends the credentials of a URL only to the scheme, host and port of that URL.
// Its errors contain no credentials (docs/programs.md, "Sources"). Workers fetch programs with it, and managers check
// sources with it.
package origin
