// Package bench contains benchmarks of TDF's calls to Redis (docs/development.md, "Measuring"). The benchmarks are in
// the package's tests. Its subdirectories contain commands that compare TDF with other programs.
package bench
