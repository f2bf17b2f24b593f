// Package fetch turns a source into a program's directory on a worker (docs/programs.md).
//
// A fetch completes ./$program/ or leaves it unchanged. This holds after every error and crash, and for any number
// of workers that share the directory. It follows from four rules:
//
//   - run.sh comes last, by a rename. A directory without run.sh is not a program.
//   - Each program has a flock (lock.go). Only its holder writes to $program/ and to the staging directory
//     .tdf/staging/$program. So the holder may delete the files of a dead process there (stage.go).
//   - A journal in $program/ lists the files that exist and those that will come (journal.go). It is written
//     before the first move. An error undoes the fetch at once, and the next fetch undoes a crashed one.
//   - Sources are spooled and unpacked in the staging directory, on the same file system.
//
// A source passes through these steps:
//
//  1. obtain.go spools it to one file and computes its SHA-256 (http.go, rsync.go, local.go, blob.go).
//  2. identify.go recognizes its format by its content.
//  3. unpack.go unpacks it (stream.go, tar.go, zip.go, links.go) within the limits of limits.go.
//  4. install.go moves it into place, runs setup.sh (setup.go), and writes the record (record.go).
//
// Archives are hostile: this package checks every name, and writes only through os.Root.
package fetch
