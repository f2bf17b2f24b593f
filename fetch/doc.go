// Package fetch turns a source into a program's directory on a worker (docs/programs.md).
//
// A fetch completes ./$program/ or leaves it unchanged. This promise holds after every error and every crash, and also
// if many workers share the directory. Four rules keep the promise:
//
//   - A fetch moves run.sh into place last, with a rename. A directory without run.sh is not a program.
//   - Each program has a lock (lock.go). Only the lock's holder writes to $program/ and to the staging directory
//     .tdf/staging/$program. So the holder may delete the files of a dead process in these directories (stage.go).
//   - A journal in $program/ lists the files that exist before the fetch and the files that the fetch adds
//     (journal.go). A fetch writes the journal before it moves the first file. After an error, the fetch undoes its own
//     changes. After a crash, the next fetch undoes the changes.
//   - A fetch downloads and unpacks the source in the staging directory, so that a rename can move the files.
//
// A source passes through these steps:
//
//  1. obtain.go writes its content to the file payload, and computes the SHA-256 (http.go, rsync.go).
//  2. identify.go recognizes the format of an archive from its first bytes.
//  3. unpack.go unpacks the archive (stream.go, tar.go, zip.go, links.go) within the limits of limits.go.
//  4. install.go moves the unpacked files into place, runs setup.sh (setup.go), and writes the record (record.go).
//
// An archive may be hostile. This package checks every name in it, and writes only through os.Root.
package fetch
