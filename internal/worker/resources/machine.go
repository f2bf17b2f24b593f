package resources

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// A Machine is what this process may use of its machine.
type Machine struct {
	Cores  []Core   `json:"cores,omitempty" doc:"the cores on which programs may run"`
	Memory int64    `json:"memory,omitempty" doc:"bytes; 0 if it is unknown"`
	GPUs   []string `json:"gpus,omitempty" doc:"their numbers or UUIDs"`

	Variable string `json:"variable,omitempty" doc:"the variable of the environment by which a program sees only some of the GPUs; CUDA_VISIBLE_DEVICES if it is missing"`

	given map[string]int // how many cores and GPUs the Pools of this machine have
}

// A Core is a logical processor.
type Core struct {
	Number int `json:"number"`
	Node   int `json:"node,omitempty" doc:"its NUMA node"`
}

// Detect finds what the machine has. root is the root of the file system. cores are the numbers of the cores on which
// this process may run, and env returns a variable of its environment.
//
// A limit of the process's cgroup bounds the cores and the memory. CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES bound
// the GPUs. AMD's GPUs count only if there are none of NVIDIA, because a program uses those of one maker.
func Detect(root fs.FS, cores []int, env func(string) (string, bool)) *Machine {
	m, groups := &Machine{}, cgroups(root)
	nodes := nodesOf(root)
	for _, n := range cores {
		m.Cores = append(m.Cores, Core{n, nodes[n]})
	}
	slices.SortStableFunc(m.Cores, func(a, b Core) int { return a.Node - b.Node })
	m.Cores = m.Cores[:min(len(m.Cores), mostCores(root, groups))]
	m.Memory = memory(root, groups)
	m.findGPUs(root, env)
	return m
}

func (m *Machine) findGPUs(root fs.FS, env func(string) (string, bool)) {
	m.Variable, m.GPUs = cudaDevices, visible(nvidia(root), env, cudaDevices)
	if len(m.GPUs) > 0 {
		return
	}
	m.GPUs = visible(amd(root), env, rocrDevices)
	if len(m.GPUs) > 0 {
		m.Variable = rocrDevices
	}
}

// resources returns what the machine has, without the cores and GPUs of other Pools.
func (m *Machine) resources() map[string]resource {
	found := map[string]resource{}
	cores := resource{name: class.CPUs, unit: class.Scale}
	for _, c := range m.Cores[min(m.given[class.CPUs], len(m.Cores)):] {
		cores.indices = append(cores.indices, index{label: strconv.Itoa(c.Number), node: c.Node, free: cores.unit})
	}
	gpus := resource{name: class.GPUs, unit: class.Scale}
	for _, label := range m.GPUs[min(m.given[class.GPUs], len(m.GPUs)):] {
		gpus.indices = append(gpus.indices, index{label: label, free: gpus.unit})
	}
	found[class.CPUs] = cores
	if len(m.GPUs) > 0 {
		found[class.GPUs] = gpus
	}
	if m.Memory > 0 {
		found[class.Memory] = whole(class.Amount{Name: class.Memory, Units: m.Memory})
	}
	return found
}

// nodesOf returns the NUMA node of each core. Without nodes, all cores are of node 0.
func nodesOf(root fs.FS) map[int]int {
	nodes := map[int]int{}
	dirs, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*")
	for _, dir := range dirs {
		node, err := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node"))
		if err != nil {
			continue
		}
		for _, core := range list(read(root, dir+"/cpulist")) {
			nodes[core] = node
		}
	}
	return nodes
}

// mostListed bounds a list of numbers, because a kernel has fewer cores.
const mostListed = 1 << 16

// list reads a list of numbers such as "0-3,8".
func list(text string) (all []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		low, high, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		if !ranged {
			last, err2 = first, nil
		}
		if err != nil || err2 != nil || first < 0 || last >= mostListed {
			continue
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	return all
}

// cgroups returns the directories of the process's cgroups (version 2, and those of version 1 for cores and memory),
// and of those above them. A container may see only the last of these, the root, with the limits of the container.
func cgroups(root fs.FS) (dirs []string) {
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			if controller != "" && controller != "cpu" && controller != "memory" {
				continue
			}
			for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
				dirs = append(dirs, path.Join("sys/fs/cgroup", controller, dir))
				if dir == "/" {
					break
				}
			}
		}
	}
	return dirs
}

// mostCores returns how many cores the quotas of the cgroups allow, rounded up.
func mostCores(root fs.FS, groups []string) int {
	most := class.MaxIndices
	for _, dir := range groups {
		var quota, period int
		fields := strings.Fields(read(root, dir+"/cpu.max") +
			read(root, dir+"/cpu.cfs_quota_us") + " " + read(root, dir+"/cpu.cfs_period_us")) // version 2, version 1
		if len(fields) == 2 {
			quota, _ = strconv.Atoi(fields[0]) // "max" is no number
			period, _ = strconv.Atoi(fields[1])
		}
		if quota > 0 && period > 0 {
			most = min(most, (quota-1)/period+1)
		}
	}
	return most
}

func memory(root fs.FS, groups []string) (bytes int64) {
	for line := range strings.Lines(read(root, "proc/meminfo")) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			bytes = min(max(kilobytes, 0), class.MaxMemory/1024) * 1024
		}
	}
	for _, dir := range groups {
		text := read(root, dir+"/memory.max") + read(root, dir+"/memory.limit_in_bytes") // version 2, version 1
		most, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err == nil && most > 0 && (bytes == 0 || most < bytes) {
			bytes = most
		}
	}
	return min(bytes, class.MaxMemory) &^ (1<<20 - 1) // whole mebibytes, so that many machines of a kind offer the same
}

func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil { // the kernel has no such file
		return ""
	}
	return string(text)
}
