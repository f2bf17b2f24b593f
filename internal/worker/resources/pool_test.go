package resources

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

// twoNodes has the cores 0 to 3 in node 0 and 4 to 7 in node 1, and GPUs.
func twoNodes() *Machine {
	m := &Machine{Memory: 1 << 34, GPUs: []string{"0", "1"}, Variable: cudaDevices}
	for n := range 8 {
		m.Cores = append(m.Cores, Core{n, n / 4})
	}
	return m
}

func pool(t testing.TB, offer string, m *Machine) *Pool {
	t.Helper()
	return New(expect.Result(class.ParseResourceOffer(offer)).Value(t), m, 2)
}

func request(t testing.TB, text string) class.Request {
	t.Helper()
	return expect.Result(class.ParseRequest(text)).Value(t)
}

func take(t testing.TB, p *Pool, text string) Share {
	t.Helper()
	s, ok := p.Take(request(t, text), nil)
	expect.MustTrue(t, ok, text)
	return s
}

// Workers of one process get different cores and GPUs, also if they name more than the machine has.
func TestPoolsOfOneMachine(t *testing.T) {
	m := twoNodes()
	a, b := pool(t, "cpus=4 gpus=1", m), pool(t, "cpus=4 gpus=2", m)
	first, second := take(t, a, "cpus=4 gpus=1"), take(t, b, "cpus=4 gpus=2")
	expect.Equal(t, first.Cores(), []int{0, 1, 2, 3})
	expect.Equal(t, second.Cores(), []int{4, 5, 6, 7})
	expect.Equal(t, first.labels(class.GPUs), []string{"0"})
	expect.Equal(t, second.labels(class.GPUs), []string{"1", "2"})
}

func TestWholeCoresOfOneNode(t *testing.T) {
	p := pool(t, "auto", twoNodes())
	first := take(t, p, "cpus=3")
	expect.Equal(t, first.Cores(), []int{0, 1, 2})
	second := take(t, p, "cpus=2")
	expect.Equal(t, second.Cores(), []int{4, 5}, "node 0 has only one free core")
	third := take(t, p, "cpus=1")
	expect.Equal(t, third.Cores(), []int{3}, "the fullest node that has enough")
	p.Put(first)
	all := take(t, p, "cpus=5")
	expect.Equal(t, all.Cores(), []int{0, 1, 2, 6, 7}, "no node has 5 cores: as few nodes as possible")
	_, ok := p.Take(request(t, "cpus=0.1"), nil)
	expect.True(t, !ok)
}

func TestFractionsShareAnIndex(t *testing.T) {
	p := pool(t, "auto", twoNodes())
	half, other := take(t, p, "cpus=0.5 gpus=0.5"), take(t, p, "cpus=0.5 gpus=0.25")
	expect.Equal(t, half.Cores(), other.Cores())
	expect.Equal(t, half.labels(class.GPUs), []string{"0"})
	expect.Equal(t, other.labels(class.GPUs), []string{"0"})
	whole := take(t, p, "cpus=1.5 gpus=1")
	expect.Equal(t, whole.labels(class.GPUs), []string{"1"})
	expect.Len(t, whole.Cores(), 2)
	_, ok := p.Take(request(t, "cpus=0 gpus=0.3"), nil)
	expect.True(t, !ok, "a quarter of GPU 0 is left")
}

// From the loan of a claim, a round takes the rounded amounts with which Redis has computed, so that it gets the same alternative. In
// fact, it gets what it asks for.
func TestRoundedRequests(t *testing.T) {
	p := pool(t, "cpus=16 gpus=1 memory=10444M", twoNodes())
	lent := p.Lend()
	first, ok := p.Take(request(t, "memory=5222M"), lent)
	expect.True(t, ok)
	expect.Equal(t, first.Amounts.String(), "cpus=1 memory=5222M")
	expect.Equal(t, lent.Free().Amounts().Of(class.Memory), 4812<<20)
	second, ok := p.Take(request(t, "gpus=1 memory=4710M or cpus=8"), lent)
	expect.True(t, ok)
	expect.Equal(t, second.Amounts.String(), "cpus=8")
	expect.Equal(t, p.Used().String(), "cpus=9 memory=5222M")
	p.End(lent)
	third := take(t, p, "memory=5222M")
	for _, s := range []Share{first, second, third} {
		p.Put(s)
	}
	expect.Equal(t, p.Used(), nil)
}

func TestEnvironment(t *testing.T) {
	p := pool(t, "auto licence=2", twoNodes())
	some := take(t, p, "cpus=2.5 memory=1G gpus=2 licence=1")
	expect.Equal(t, some.Environment(), []string{
		"TDF_CPUS=2.5", "OMP_NUM_THREADS=3", "TDF_RESOURCES=cpus=2.5 gpus=2 licence=1 memory=1G", "TDF_MEMORY=1073741824",
		"CUDA_VISIBLE_DEVICES=0,1",
	})
	nothing, ok := p.Take(class.PlainRequest, nil)
	expect.MustTrue(t, ok)
	expect.Equal(t, nothing.Environment(), []string{"TDF_CPUS=1", "OMP_NUM_THREADS=1", "TDF_RESOURCES=cpus=1", "CUDA_VISIBLE_DEVICES=-1"})
	idle := take(t, p, "cpus=0")
	expect.Equal(t, idle.Environment()[:2], []string{"TDF_CPUS=0", "OMP_NUM_THREADS=1"})
	expect.Len(t, idle.Cores(), 0)
	plain := take(t, pool(t, "cpus=2", twoNodes()), "cpus=2")
	expect.Equal(t, plain.Environment(), []string{"TDF_CPUS=2", "OMP_NUM_THREADS=2", "TDF_RESOURCES=cpus=2"})
}

// A task that asks for nothing takes a core and a slot: concurrency bounds these tasks, and no others.
func TestPlainTasksTakeASlot(t *testing.T) {
	p := pool(t, "cpus=4", twoNodes())
	for range 2 {
		_, ok := p.Take(class.PlainRequest, nil)
		expect.True(t, ok)
	}
	_, ok := p.Take(class.PlainRequest, nil)
	expect.True(t, !ok)
	take(t, p, "cpus=2")
	expect.Equal(t, p.Used().String(), "cpus=4")
	expect.Equal(t, p.Offered().String(), "cpus=4")
}

func TestOffers(t *testing.T) {
	for text, want := range map[string]string{
		"auto":                       "cpus=8 gpus=2 memory=16G",
		"auto gpus=1,licence=3":      "cpus=8 gpus=1 licence=3 memory=16G",
		"auto cpus=2 memory=4G":      "cpus=2 gpus=2 memory=4G",
		"cpus=3":                     "cpus=3",
		"cpus=100 gpus=4 memory=1T":  "cpus=100 gpus=4 memory=1T",
		"licence=0.5 memory=1 auto ": "cpus=8 gpus=2 licence=0.5 memory=1",
	} {
		expect.Equal(t, pool(t, text, twoNodes()).Offered().String(), want, text)
	}
	virtual := take(t, pool(t, "cpus=100", twoNodes()), "cpus=2")
	expect.Len(t, virtual.Cores(), 0, "the machine has fewer cores")
}

// A Pool gives the same answers as the capacities of a claim, never gives an index twice, and gets everything back.
func TestPoolsFollowCapacities(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := New(&class.ResourceOffer{Auto: true, Amounts: class.Amounts{{Name: "licence", Units: 25_000}}}, twoNodes(), 3)
		began := p.Free()
		var shares []Share
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			if len(shares) > 0 && rapid.IntRange(0, 2).Draw(r, "step") == 0 {
				i := rapid.IntRange(0, len(shares)-1).Draw(r, "share")
				p.Put(shares[i])
				shares = append(shares[:i], shares[i+1:]...)
				continue
			}
			asked := class.Request{{
				{Name: "cpus", Units: rapid.SampledFrom([]int64{0, 2_500, 5_000, 10_000, 17_500, 30_000}).Draw(r, "cpus")},
				{Name: "gpus", Units: rapid.SampledFrom([]int64{1, 3_333, 10_000, 15_000}).Draw(r, "gpus")},
				{Name: "licence", Units: rapid.Int64Range(1, 10_000).Draw(r, "licence")},
			}}
			want, alternative := p.Free().Without(asked)
			var lent *Loan
			if rapid.Bool().Draw(r, "with a loan") {
				lent = p.Lend()
				if p.Lend() != nil {
					r.Fatal("lent twice")
				}
			}
			s, ok := p.Take(asked, lent)
			if p.End(lent) != (lent != nil) || p.End(lent) {
				r.Fatal("a loan ends once")
			}
			if ok != (alternative >= 0) {
				r.Fatal(asked, "fits", alternative, "but", ok)
			}
			if !ok {
				continue
			}
			if fmt.Sprint(p.Free()) != fmt.Sprint(want) {
				r.Fatal(asked, "leaves", p.Free(), "and not", want)
			}
			shares = append(shares, s)
		}
		for _, s := range shares {
			p.Put(s)
		}
		if !reflect.DeepEqual(p.Free(), began) {
			r.Fatal("in the end", p.Free(), "and not", began)
		}
	})
}

// A task takes from a loan what Redis has computed for it, also if more has become free since.
func TestLoansDoNotGrow(t *testing.T) {
	p := pool(t, "cpus=8 gpus=1", twoNodes())
	other := take(t, p, "cpus=0 gpus=1")
	lent := p.Lend()
	p.Put(other)
	first, ok := p.Take(request(t, "cpus=6 gpus=1 or cpus=2"), lent)
	expect.True(t, ok)
	expect.Equal(t, first.Amounts.String(), "cpus=2")
	_, ok = p.Take(request(t, "cpus=6"), lent)
	expect.True(t, ok)
	_, ok = p.Take(request(t, "gpus=1 cpus=0"), lent)
	expect.True(t, !ok)
	p.End(lent)
	take(t, p, "gpus=1 cpus=0")
	late, ok := p.Take(request(t, "cpus=0.5"), lent)
	expect.True(t, !ok, late)
	p.Put(first)
	_, ok = p.Take(request(t, "cpus=0.5"), lent)
	expect.True(t, ok, "after its end, a claim takes what is free")
	expect.Equal(t, p.Used().String(), "cpus=6.5 gpus=1")
}
