package tdf

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var version string

// Version returns the number of this release of TDF, such as "0.1.0".
func Version() string { return strings.TrimSpace(version) }
