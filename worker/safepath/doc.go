// Package safepath opens directories and files that lie where programs may write, so that a link which a program
// made does not lead the worker elsewhere (docs/programs.md, "Isolation").
//
// A path has two parts. Its base is the administrator's, and is opened as it is. Below it, a worker that
// runs as root opens each directory by its descriptor, one after the other. There it follows a link only
// if root or the worker's user made it, and nobody else could have exchanged it.
//
// A worker that is not root runs programs as itself: they can do all that it can, and nothing is checked.
package safepath
