// Package safepath opens directories and files in places where programs may write. It protects the worker against
// links that programs made (docs/programs.md, "Isolation").
//
// A path has two parts. The base is controlled by the administrator, and the package opens it as it is. Below the
// base, a worker that runs as root opens one directory after the other, each relative to the descriptor of the one
// before. It follows a link only if root or the worker's user made it, and no other user could have replaced it.
//
// A worker that is not root runs programs as its own user. Such programs can do everything that the worker can do, so
// the package checks nothing then.
package safepath
