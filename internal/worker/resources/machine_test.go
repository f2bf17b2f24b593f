package resources

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tdf-framework/tdf/internal/expect"
)

func files(all map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range all {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func unset(string) (string, bool) { return "", false }

func env(name, value string) func(string) (string, bool) {
	return func(of string) (string, bool) { return value, of == name }
}

var server = map[string]string{
	"proc/meminfo":                          "MemTotal:       16384 kB\nMemFree:  1 kB\n",
	"proc/self/cgroup":                      "5:memory:/m\n3:cpuset:/\n2:cpu,cpuacct:/docker/c\n1:name=systemd:/x\n0::/tdf.slice/w\n",
	"proc/driver/x/a":                       "",
	"sys/fs/cgroup/a":                       "",
	"proc/self/environ":                     "",
	"sys/fs/cgroup/cpu/cpu.cfs_period_us":   "100000\n",
	"sys/devices/system/node/node0/cpulist": "0-1,4\n",
	"sys/devices/system/node/node1/cpulist": "2-3,5-7\n",
	"sys/devices/system/node/nodex/cpulist": "0-7\n",
}

func with(more map[string]string) map[string]string {
	all := map[string]string{}
	for _, from := range []map[string]string{server, more} {
		for name, text := range from {
			all[name] = text
		}
	}
	return all
}

func TestCoresAndMemory(t *testing.T) {
	m := Detect(files(server), []int{0, 2, 3, 4, 9}, unset)
	expect.Equal(t, m.Cores, []Core{{0, 0}, {4, 0}, {9, 0}, {2, 1}, {3, 1}})
	expect.Equal(t, m.Memory, 16<<20)
	expect.Len(t, m.GPUs, 0)
	empty := Detect(files(nil), []int{0, 1}, unset)
	expect.Equal(t, empty.Cores, []Core{{0, 0}, {1, 0}})
	expect.Equal(t, empty.Memory, 0)
}

// The limits of a cgroup above count, too. Half a core is one core, because a worker without a core runs nothing.
func TestLimitsOfCgroups(t *testing.T) {
	for _, c := range []struct {
		file, text string
		cores      int
		memory     int64
	}{
		{"tdf.slice/w/cpu.max", "250000 100000", 3, 16 << 20},
		{"tdf.slice/cpu.max", "100000 100000", 1, 16 << 20},
		{"cpu.max", "50000 100000", 1, 16 << 20},
		{"cpu.max", "max 100000", 4, 16 << 20},
		{"cpu.max", "900000 100000", 4, 16 << 20},
		{"cpu.max", "-5 0", 4, 16 << 20},
		{"cpu.max", "x", 4, 16 << 20},
		{"memory.max", "max", 4, 16 << 20},
		{"tdf.slice/memory.max", "4198400", 4, 4 << 20}, // in whole mebibytes
		{"tdf.slice/w/memory.max", "99999999999", 4, 16 << 20},
		{"tdf.slice/w/memory.max", "-1", 4, 16 << 20},
		{"cpu/cpu.cfs_quota_us", "150000\n", 2, 16 << 20},
		{"cpu/cpu.cfs_quota_us", "-1\n", 4, 16 << 20},
		{"memory/m/memory.limit_in_bytes", "4194304", 4, 4 << 20},
		{"memory/memory.limit_in_bytes", "9223372036854771712", 4, 16 << 20},
	} {
		m := Detect(files(with(map[string]string{"sys/fs/cgroup/" + c.file: c.text})), []int{0, 1, 2, 3}, unset)
		expect.Len(t, m.Cores, c.cores, c.file, c.text)
		expect.Equal(t, m.Memory, c.memory, c.file, c.text)
	}
}

// The worker in Python finds what its machine has by the same rules.
func TestPythonFindsTheSame(t *testing.T) {
	noteSource(t)
	kfd, gpu := "sys/class/kfd/kfd/topology/nodes/", "proc/driver/nvidia/gpus/0000:01:00.0/information"
	for _, c := range []struct {
		files map[string]string
		env   string
	}{
		{server, ""},
		{with(map[string]string{"sys/fs/cgroup/tdf.slice/w/cpu.max": "250000 100000", "sys/fs/cgroup/memory/m/memory.limit_in_bytes": "4198400"}), ""},
		{with(map[string]string{"sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"}), "CUDA_VISIBLE_DEVICES= GPU-8a ,3,x"},
		{with(map[string]string{"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n", gpu: ""}), ""},
		{with(map[string]string{kfd + "0/gpu_id": "0\n", kfd + "1/gpu_id": "4711\n", gpu: ""}), "CUDA_VISIBLE_DEVICES=-1"},
		{map[string]string{"proc/meminfo": "MemTotal: 9223372036854775807 kB\n"}, "ROCR_VISIBLE_DEVICES=1,1"},
		{map[string]string{"proc/meminfo": "MemTotal: -1 kB\n"}, ""},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			expect.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			expect.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
		}
		name, value, _ := strings.Cut(c.env, "=")
		command := exec.CommandContext(t.Context(), "python3", "-c", "import json, tdf.cores; print(json.dumps(tdf.cores.machine("+strconv.Quote(root)+", [0, 2, 3, 4, 9])))")
		command.Env = append(command.Environ(), "PYTHONPATH=../../../python", "PYTHONDONTWRITEBYTECODE=1", c.env)
		var found Machine
		expect.NoError(t, json.Unmarshal(expect.Result(command.Output()).Value(t), &found))
		want := Detect(os.DirFS(root), []int{0, 2, 3, 4, 9}, env(name, value))
		expect.Equal(t, found.Cores, want.Cores)
		expect.Equal(t, strings.Join(found.GPUs, ","), strings.Join(want.GPUs, ","))
		expect.Equal(t, found.Memory, want.Memory)
		expect.Equal(t, found.Variable, want.Variable)
	}
}

// noteSource reads what the test depends on, so that Go's test cache runs it again after a change.
func noteSource(t *testing.T) {
	expect.Result(os.ReadFile("../../../python/tdf/cores.py")).OK(t)
}

func TestForeignTexts(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "x": nil, "3-1": nil, "-1": nil, "0-99999999": nil, "1,x,3-4": {1, 3, 4}, "99999999999999999999": nil, "1--2": nil,
	} {
		expect.Equal(t, list(text), want, text)
	}
	for _, text := range []string{"MemTotal: x kB", "MemTotal: -1 kB", "MemTotal: 1 MB", "MemTotal:"} {
		expect.Equal(t, Detect(files(map[string]string{"proc/meminfo": text}), nil, unset).Memory, 0, text)
	}
	huge := Detect(files(map[string]string{"proc/meminfo": "MemTotal: 9223372036854775807 kB"}), nil, unset)
	expect.Equal(t, huge.Memory, 1<<50)
}

func TestGPUs(t *testing.T) {
	two := with(map[string]string{"proc/driver/nvidia/gpus/0000:01:00.0/information": "", "proc/driver/nvidia/gpus/0000:02:00.0/information": ""})
	kfd := "sys/class/kfd/kfd/topology/nodes/"
	three := with(map[string]string{kfd + "0/gpu_id": "0\n", kfd + "1/gpu_id": "4711\n", kfd + "2/gpu_id": "4712\n", kfd + "3/gpu_id": "4713"})
	for _, c := range []struct {
		files    map[string]string
		env      func(string) (string, bool)
		gpus     []string
		variable string
	}{
		{server, unset, nil, cudaDevices},
		{two, unset, []string{"0", "1"}, cudaDevices},
		{two, env(cudaDevices, "1"), []string{"1"}, cudaDevices},
		{two, env(cudaDevices, " GPU-8a , GPU-9b "), []string{"GPU-8a", "GPU-9b"}, cudaDevices},
		{two, env(cudaDevices, "0,-1,1"), []string{"0"}, cudaDevices},
		{two, env(cudaDevices, "1,1"), []string{"1"}, cudaDevices},
		{two, env(cudaDevices, ""), nil, cudaDevices},
		{two, env(cudaDevices, "-1"), nil, cudaDevices},
		{two, env(rocrDevices, "5"), []string{"0", "1"}, cudaDevices},
		{three, unset, []string{"0", "1", "2"}, rocrDevices},
		{three, env(rocrDevices, "2,0"), []string{"2", "0"}, rocrDevices},
		{three, env(rocrDevices, ""), nil, cudaDevices},
	} {
		m := Detect(files(c.files), []int{0}, c.env)
		expect.Equal(t, m.GPUs, c.gpus)
		expect.Equal(t, m.Variable, c.variable)
	}
}

func TestHere(t *testing.T) {
	m := Here()
	expect.Compare(t, len(m.Cores), ">", 0)
	expect.Compare(t, m.Memory, ">", 0)
	expect.Len(t, m.Cores, Cores())
}
