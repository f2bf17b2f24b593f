// Package safepath opens directories and files in places where programs may write. It protects the worker against
// links that programs made (docs/programs.md, "Isolation").
//
// A path has two parts. The administrator controls the base, so the package opens it without checks. Below the base, a
// worker that runs as root opens one directory after the other, each relative to the descriptor of the previous
// directory. It follows a link only if root or the worker's user made the link, and if no other user could have
// replaced it.
//
// A worker that is not root runs programs as its own user. Such programs can do everything that the worker can do, so
// for a worker that is not root the package checks nothing.
package safepath
