package apiserver

import (
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The interface of Skuld is served only at the prefix of its key.
func TestSkuldIsServed(t *testing.T) {
	expect.Len(t, interfaces(config.HTTP{}, nil, nil), 0)
	all := interfaces(config.HTTP{Skuld: "/old"}, newManager(t), nil)
	expect.MustLen(t, all, 1)
	expect.MustEqual(t, all[0].Prefix, "/old")
	expect.Compare(t, len(all[0].Routes), ">", 0)
}
