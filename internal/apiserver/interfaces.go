package apiserver

import (
	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/web/wire"
)

// interfaces returns the interfaces of other systems that the configuration enables.
func interfaces(_ config.HTTP, _ *manager.Manager) (all []wire.Interface) { return all }
