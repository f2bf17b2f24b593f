package resources

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A worker over the HTTP API may be a program in any language. It says what its machine has, and then what is free. The
// API makes a Pool of this for each claim, so that the rules are only here. The worker adds and subtracts.

// A Stock is what is free of a resource of such a worker.
type Stock struct {
	Name     string  `json:"name"`
	Variable string  `json:"variable,omitempty" doc:"for gpus: the variable of the environment by which a program sees only some of them"`
	Pieces   []Piece `json:"pieces" doc:"the cores or the GPUs; all of another resource is one piece"`
}

// A Piece is an index, with what is free of it.
type Piece struct {
	Label string `json:"label,omitempty" doc:"the number of the core, or the name of the GPU"`
	Node  int    `json:"node,omitempty" doc:"the NUMA node of the core"`
	Free  int64  `json:"free" doc:"in 1/10,000, and for memory in bytes"`
}

// A RemoteShare is a Share for such a worker.
type RemoteShare struct {
	Taken  []Taken  `json:"taken" doc:"what to subtract from what is free, until the round has ended"`
	Env    []string `json:"env" doc:"variables for the program, as NAME=VALUE"`
	Cores  []int    `json:"cores,omitempty" doc:"the cores for the program; missing: all"`
	Memory int64    `json:"memory,omitempty" doc:"bytes that the program may need"`
}

// Taken is what a round has of a piece.
type Taken struct {
	Name  string `json:"name"`
	Label string `json:"label,omitempty"`
	Units int64  `json:"units"`
}

// Stocks returns what is free.
func (p *Pool) Stocks() (all []Stock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.all {
		s := Stock{Name: r.name}
		if r.name == class.GPUs {
			s.Variable = p.variable
		}
		for _, x := range r.indices {
			s.Pieces = append(s.Pieces, Piece{x.label, x.node, x.free})
		}
		all = append(all, s)
	}
	return all
}

// StocksOf returns stocks with these capacities, without labels: their worker chooses the pieces itself.
func StocksOf(all class.Capacities) (stocks []Stock) {
	for _, c := range all {
		s := Stock{Name: c.Name, Pieces: []Piece{}}
		for range c.Whole {
			s.Pieces = append(s.Pieces, Piece{Free: c.Unit})
		}
		for _, units := range c.Parts {
			s.Pieces = append(s.Pieces, Piece{Free: units})
		}
		stocks = append(stocks, s)
	}
	return stocks
}

// Restore returns the Pool with these stocks, of a worker that has this in all. Nothing is free of what has no stock.
func Restore(stocks []Stock, whole class.Amounts) (*Pool, error) {
	p := &Pool{}
	for _, s := range stocks {
		unit := class.CapacityOf(class.Amount{Name: s.Name}).Unit
		r, left := resource{name: s.Name, unit: unit}, whole.Of(s.Name)
		switch {
		case len(s.Pieces) > class.MaxIndices:
			return nil, fmt.Errorf("%.100s: want at most %d pieces", s.Name, class.MaxIndices)
		case slices.ContainsFunc(p.all, func(of resource) bool { return of.name == s.Name }):
			return nil, fmt.Errorf("%.100q occurs twice", s.Name)
		}
		for _, x := range s.Pieces {
			if x.Free < 0 || x.Free > min(left, unit) {
				return nil, fmt.Errorf("%.100s: want pieces of 0 to %d units, and in all at most %d", s.Name,
					min(unit, whole.Of(s.Name)), whole.Of(s.Name))
			}
			left -= x.Free
			r.indices = append(r.indices, index{x.Label, x.Node, x.Free})
		}
		if whole.Of(s.Name) == 0 {
			continue // so that p.all is short, whatever the worker says
		}
		if s.Name == class.GPUs {
			p.variable = s.Variable
		}
		p.all = append(p.all, r)
	}
	for _, a := range whole {
		if !slices.ContainsFunc(p.all, func(of resource) bool { return of.name == a.Name }) {
			p.all = append(p.all, resource{name: a.Name})
		}
	}
	p.whole = slices.DeleteFunc(slices.Clone(whole), isSlots)
	return p, nil
}

// Remote returns the share as a worker over the HTTP API gets it.
func (s *Share) Remote() *RemoteShare {
	r := &RemoteShare{Taken: []Taken{}, Env: s.Environment(), Cores: s.Cores(), Memory: s.Amounts.Of(class.Memory)}
	for _, name := range sortedKeys(s.parts) {
		for _, x := range s.parts[name] {
			r.Taken = append(r.Taken, Taken{name, x.label, x.units})
		}
	}
	return r
}

// Check returns an error for a machine that cannot be: a worker says what it has found.
func (m *Machine) Check() error {
	seen := map[string]bool{}
	for _, c := range m.Cores {
		seen[fmt.Sprint(c.Number)] = true
		if c.Number < 0 || c.Node < 0 {
			return fmt.Errorf("core %d of node %d: want numbers from 0 up", c.Number, c.Node)
		}
	}
	for _, name := range m.GPUs {
		seen["GPU "+name] = true
		if !isGPU(name) || len(name) > class.MaxResourceName*2 || strings.ContainsAny(name, ", \n\x00") {
			return fmt.Errorf("gpus: %.100q is no number or UUID of a GPU", name)
		}
	}
	switch {
	case max(len(m.Cores), len(m.GPUs)) > class.MaxIndices || len(seen) < len(m.Cores)+len(m.GPUs):
		return fmt.Errorf("want each core and each GPU once, and at most %d of them", class.MaxIndices)
	case m.Memory < 0 || m.Memory > class.MaxMemory:
		return fmt.Errorf("memory: want 0 to %d bytes", int64(class.MaxMemory))
	case m.Variable != "" && m.Variable != cudaDevices && m.Variable != rocrDevices:
		return fmt.Errorf("variable: want %s or %s", cudaDevices, rocrDevices)
	}
	return nil
}
