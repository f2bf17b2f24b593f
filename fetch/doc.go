// Package fetch turns a source into a program's directory on a worker (docs/programs.md).
//
// The promise: ./$program/ is either complete or as it was, whatever fails, whoever is killed,
// however many workers share the directory. What it rests on:
//
//   - run.sh comes last, by a rename. What has no run.sh is no program.
//   - One flock for each program ("lock.go"). Only its holder writes to $program/ and to the
//     staging directory .tdf/staging/$program, so whatever is found there under the lock is
//     what a dead process left behind, and is swept ("stage.go").
//   - Before anything is moved into $program/, a journal in it says what was there and what
//     will come ("journal.go"). A failure undoes by it at once, a crash at the next fetch.
//   - Everything is obtained and unpacked in staging, on the same file system.
//
// The way of a source: obtain (http.go, rsync.go, local.go, blob.go) spools it to one file and
// sums it; identify.go says by its content what it is; unpack.go, with stream.go, tar.go,
// zip.go and links.go, unpacks it within limits.go; install.go moves it into place, runs setup.sh
// (setup.go), writes the record (record.go).
//
// Everything in an archive is hostile until unpacked: names are checked here, and once more by
// os.Root, through which all of it is written.
package fetch
