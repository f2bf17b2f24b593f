package run

import (
	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/worker/resources"
)

// offerResources makes the worker of the call offer resources if the commands ask for some: those of its key resources,
// or else what this machine has. It returns an error if the machine has too little.
func (r *run) offerResources(w *config.Worker) error {
	offer := w.Resources
	w.Resources = nil
	if !r.changed("resources") {
		return nil
	}
	request, err := class.ParseRequest(*r.task.Text["resources"])
	if request == nil || err != nil {
		return err
	}
	if offer == nil {
		offer = &class.ResourceOffer{Auto: true}
	}
	w.Resources = offer
	has := resources.New(offer, resources.Here(), 1).Offered()
	lacks := class.CapacitiesOf(has).Lacking(request.Rounded())
	if lacks != nil {
		return cli.Usagef("resources %v: this machine has %v, and lacks %v for the request, with memory rounded up; ask for "+
			"less, or let workers run the command with --shared or --send", request, has, lacks)
	}
	return nil
}
