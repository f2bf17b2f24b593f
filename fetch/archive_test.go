package fetch_test

import (
	"github.com/tdf-framework/tdf/fetch"
	"github.com/tdf-framework/tdf/fetch/archive"
)

func init() { fetch.TestCompressions = archive.Compressions() }
