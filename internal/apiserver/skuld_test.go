package apiserver

import (
	"testing"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The interface of Skuld is served only at the prefix of its key.
func TestSkuldIsServed(t *testing.T) {
	expect.Len(t, interfaces(config.HTTP{}, nil, nil), 0)
	all := interfaces(config.HTTP{Skuld: "/old"}, nil, nil)
	expect.True(t, len(all) == 1 && all[0].Prefix == "/old" && len(all[0].Routes) > 0, all)
}
