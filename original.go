package tdf

import (
	"slices"
	"strings"
)

// originalEndings are the endings of the sources from which workers of the original TDF fetch programs.
var originalEndings = []string{".zip", ".tar", ".tar.gz", ".tar.bz", ".tar.bz2", "/run.sh", ":run.sh"}

// OriginalFetches reports whether workers of the original TDF can fetch a program from the source. They know neither stored programs,
// nor the endings .tgz, .tar.xz and .tar.zst, nor checksums (docs/redis.md, "Beside the original").
func OriginalFetches(source string) bool {
	scheme, _, _ := strings.Cut(source, ":")
	known := scheme == SchemeRsync || scheme == SchemeHTTP || scheme == SchemeHTTPS
	return known && slices.ContainsFunc(originalEndings, func(ending string) bool { return strings.HasSuffix(source, ending) })
}
