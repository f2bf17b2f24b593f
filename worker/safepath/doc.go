// Package safepath opens directories and files in places where programs may write. A link that a program made does
// not lead the worker elsewhere (docs/programs.md, "Isolation").
//
// A path has two parts. The base is controlled by the administrator, and is opened as it is. Below it, a worker that
// runs as root opens one directory after the other, each by its descriptor. It follows a link only if root or the
// worker's user made it, and no other user could have replaced it.
//
// A worker that is not root runs programs as its own user. They can do all that the worker can, so nothing is
// checked.
package safepath
