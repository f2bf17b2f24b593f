package resources

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
)

// Variables by which a program sees only some GPUs.
const (
	cudaDevices = "CUDA_VISIBLE_DEVICES"
	rocrDevices = "ROCR_VISIBLE_DEVICES"
)

// nvidia returns how many GPUs NVIDIA's driver has.
func nvidia(root fs.FS) int {
	found, _ := fs.ReadDir(root, "proc/driver/nvidia/gpus")
	return len(found)
}

// amd returns how many GPUs AMD's driver has. Cores are nodes of its topology, too, with the id 0.
func amd(root fs.FS) (n int) {
	files, _ := fs.Glob(root, "sys/class/kfd/kfd/topology/nodes/*/gpu_id")
	for _, file := range files {
		id := strings.TrimSpace(read(root, file))
		if id != "" && id != "0" {
			n++
		}
	}
	return n
}

// visible returns the names of n GPUs, or those in a variable of the environment. As for CUDA, the list ends before the
// first name that is none, such as -1, or the NoDevFiles of Slurm.
func visible(n int, env func(string) (string, bool), variable string) (names []string) {
	text, set := env(variable)
	if !set {
		for i := range n {
			names = append(names, strconv.Itoa(i))
		}
		return names
	}
	seen := map[string]bool{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		if !isGPU(name) || seen[name] || len(names) == class.MaxIndices {
			break
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

func isGPU(name string) bool {
	_, err := strconv.ParseUint(name, 10, 32)
	return err == nil || strings.HasPrefix(name, "GPU-") || strings.HasPrefix(name, "MIG-")
}
