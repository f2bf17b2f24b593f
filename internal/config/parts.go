package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A Part is what a worker has for one of several namespaces.
type Part struct {
	Namespace   string
	Concurrency int
	Resources   *class.ResourceOffer
}

// Each returns the configuration of the worker of each namespace.
func (w Worker) Each() (all []Worker) {
	if len(w.Namespaces) == 0 {
		return []Worker{w}
	}
	for _, p := range w.Namespaces {
		one := w
		one.Namespace, one.Concurrency, one.Resources, one.Namespaces = p.Namespace, p.Concurrency, p.Resources, nil
		all = append(all, one)
	}
	return all
}

// A divided is the value of a key that may have a part for each of several namespaces.
type divided[T any] struct {
	whole T
	parts map[string]T // nil if the key has no parts
}

func (d *divided[T]) of(namespace string) T {
	if part, has := d.parts[namespace]; has {
		return part
	}
	return d.whole
}

// fits reports whether the key has a part for each of the namespaces and for no other, or none at all.
func (d *divided[T]) fits(namespaces []string) bool {
	return d.parts == nil ||
		slices.Equal(slices.Sorted(maps.Keys(d.parts)), slices.Sorted(slices.Values(namespaces)))
}

// inParts returns the kind of a value that may have parts, such as a:4,b:4. A word NAMESPACE:WORD begins a part.
func inParts[T any](want string, parse func(string) (T, bool), at func(*settings) *divided[T]) kind {
	return bind(want, func(text string) (d divided[T], ok bool) {
		of, texts := "", map[string]string{}
		for _, word := range words(text) {
			if i := strings.LastIndexByte(word, ':'); i >= 0 {
				of, word = word[:i], word[i+1:]
				if _, twice := texts[of]; twice || of == "" {
					return d, false
				}
			}
			texts[of] += " " + word
		}
		if of == "" {
			d.whole, ok = parse(strings.TrimSpace(text))
			return d, ok
		}
		d.parts = map[string]T{}
		for name, part := range texts {
			if d.parts[name], ok = parse(strings.TrimSpace(part)); name == "" || !ok {
				return d, false
			}
		}
		return d, true
	}, at)
}

// forNamespaces returns the worker's configuration, with a part for each namespace if there are several. It returns an
// error if they would share cores, memory or files.
func (s *settings) forNamespaces() (Worker, error) {
	w, all := s.worker, s.namespaces
	if len(all) == 0 {
		all = []string{s.namespace}
	}
	expected := "; expected a part for each of " + strings.Join(all, ", ")
	switch {
	case !s.slots.fits(all):
		return w, s.fault("worker", "concurrency", "names other namespaces than [tdf]"+expected)
	case !s.offers.fits(all):
		return w, s.fault("worker", "resources", "names other namespaces than [tdf]"+expected)
	}
	if len(all) == 1 {
		return w, nil
	}
	for _, name := range all {
		w.Namespaces = append(w.Namespaces, Part{name, s.slots.of(name), s.offers.of(name)})
	}
	return w, s.checkParts(w.Namespaces, expected)
}

// checkParts returns an error if several namespaces would share what only one can have.
func (s *settings) checkParts(all []Part, expected string) error {
	for _, file := range [][2]string{
		{"task_output_filename", s.worker.TaskOutputFilename}, {"task_error_filename", s.worker.TaskErrorFilename},
	} {
		if filepath.IsAbs(file[1]) {
			return s.fault("worker", file[0], "several namespaces have tasks with the same ids, and would share the files; "+
				"expected a path below the working directory")
		}
	}
	for _, p := range all {
		switch {
		case p.Concurrency == 0:
			return s.fault("worker", "concurrency", fmt.Sprintf("auto would give each core to all of %d namespaces; "+
				"expected a number, or one for each, such as %s:4", len(all), p.Namespace))
		case p.Resources != nil && (s.offers.parts == nil || p.Resources.Auto):
			return s.fault("worker", "resources", "each namespace would offer the same cores and memory"+expected+
				", such as "+p.Namespace+":cpus=4,memory=8G, without auto")
		}
	}
	if s.worker.MetricsListen != "" {
		return s.fault("worker", "metrics_listen",
			"is set beside [tdf] namespaces, and would serve only one of them; expected no metrics_listen")
	}
	return nil
}
