package resources

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// Environment returns the variables by which a program finds its share. If the worker offers GPUs, a
// program without a GPU sees none.
func (s *Share) Environment() []string {
	cores := s.Amounts.Of(class.CPUs)
	env := []string{
		"TDF_CPUS=" + class.Amount{Name: class.CPUs, Units: cores}.Value(),
		"OMP_NUM_THREADS=" + strconv.FormatInt(max((cores+class.Scale-1)/class.Scale, 1), 10),
		"TDF_RESOURCES=" + s.asked().String(),
	}
	if memory := s.Amounts.Of(class.Memory); memory > 0 {
		env = append(env, "TDF_MEMORY="+strconv.FormatInt(memory, 10))
	}
	if s.variable != "" {
		env = append(env, s.variable+"="+cmp.Or(strings.Join(s.labels(class.GPUs), ","), noDevice))
	}
	return env
}

// noDevice is the name of no GPU.
const noDevice = "-1"

// asked returns the amounts without the slot of a task that asks for nothing.
func (s *Share) asked() (all class.Amounts) {
	for _, a := range s.Amounts {
		if a.Name != class.Slots {
			all = append(all, a)
		}
	}
	return all
}

func (s *Share) labels(name string) (all []string) {
	for _, x := range s.parts[name] {
		all = append(all, x.label)
	}
	return all
}

// Cores returns the numbers of the cores of the share. It returns none if the share has none, or if the worker offers
// more cores than the machine has.
func (s *Share) Cores() (all []int) {
	for _, label := range s.labels(class.CPUs) {
		n, err := strconv.Atoi(label)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}
