package apiserver

import (
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
)

// No prefix of an interface may hide a path of another interface whose prefix is /. So config knows the first parts of all paths.
func TestPathsOfInterfacesAreReserved(t *testing.T) {
	all := interfaces(config.HTTP{Taskmaster: "/", TaskStore: "/", Skuld: "/"}, serialManager(t), testspace.Silent)
	expect.MustTrue(t, len(all) > 0, "no interfaces")
	for _, i := range all {
		for _, r := range i.Routes {
			first := strings.Split(r.Path, "/")[1]
			_, err := config.LoadTool("", []string{"TDF_CFG_HTTP_SKULD=/" + first})
			expect.Fails(t, err, "no path of the API")
		}
	}
}
