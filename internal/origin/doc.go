// Package origin makes http requests whose credentials stay with the scheme, host and port that they were given for,
// and errors that show none of them (docs/programs.md, "Sources"). Workers that fetch programs and managers that explain
// tasks use the same rules.
package origin
