// Package fetch turns a source into a program's directory on a worker (docs/programs.md).
//
// A fetch completes ./$program/ or leaves it unchanged. This holds after every error and every crash, and also if many
// workers share the directory. Four rules make sure of this:
//
//   - A fetch moves run.sh into place last, by a rename. A directory without run.sh is not a program.
//   - Each program has a lock, by flock (lock.go). Only the lock's holder writes to $program/ and to the staging
//     directory .tdf/staging/$program. So the holder may delete the files of a dead process there (stage.go).
//   - A journal in $program/ lists the files that exist before the fetch and the files that the fetch adds
//     (journal.go). It is written before the first move. After an error, the fetch is undone at once. After a crash,
//     the next fetch undoes it.
//   - A fetch spools and unpacks the source in the staging directory, which is on the same file system.
//
// A source passes through these steps:
//
//  1. obtain.go spools its content, an archive, to one file, and computes the SHA-256 (http.go, rsync.go, local.go,
//     blob.go).
//  2. identify.go recognizes the archive's format by the first bytes.
//  3. unpack.go unpacks the archive (stream.go, tar.go, zip.go, links.go) within the limits of limits.go.
//  4. install.go moves the unpacked files into place, runs setup.sh (setup.go), and writes the record (record.go).
//
// An archive may be hostile. This package checks every name in it, and writes only through os.Root.
package fetch
