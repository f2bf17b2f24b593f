package resources

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
)

// A worker over the HTTP API subtracts what its tasks get, and adds it in the end. Its claims get what those of a worker
// with a Pool get.
func TestPoolsOfOtherWorkers(t *testing.T) {
	m := &Machine{Cores: []Core{{0, 0}, {4, 0}, {1, 1}, {5, 1}}, Memory: 1 << 34, GPUs: []string{"GPU-a", "3"}}
	expect.NoError(t, m.Check())
	offer := expect.Result(class.ParseResourceOffer("auto licence=2")).Value(t)
	near := New(offer, m, 4)
	whole := append(class.Amounts{{Name: class.Slots, Units: 4 * class.Scale}}, near.Offered()...)
	free := near.Stocks()
	for _, asked := range []string{"cpus=1 gpus=1 memory=3G", "cpus=0.5 gpus=0.5", "cpus=1.5 licence=0.25", "", "cpus=0 gpus=0.5"} {
		request := class.PlainRequest
		if asked != "" {
			request = expect.Result(class.ParseRequest(asked)).Value(t)
		}
		var sent []Stock
		expect.NoError(t, json.Unmarshal(expect.Result(json.Marshal(free)).Value(t), &sent))
		far := expect.Result(Restore(sent, whole)).Value(t)
		expect.Equal(t, far.Free(), near.Free())
		expect.Equal(t, far.Used().String(), near.Used().String())
		s, fits := near.Take(request, nil)
		expect.MustTrue(t, fits, asked)
		share, _ := far.Take(request, far.Lend())
		r := share.Remote()
		expect.Equal(t, r, s.Remote(), asked)
		for _, x := range r.Taken {
			of := &free[indexOf(free, x.Name)]
			for i := range of.Pieces {
				if of.Pieces[i].Label == x.Label {
					of.Pieces[i].Free -= x.Units
				}
			}
		}
	}
	expect.Equal(t, near.Used().String(), "cpus=4 gpus=2 licence=0.25 memory=3G")
}

func indexOf(all []Stock, name string) int {
	for i, s := range all {
		if s.Name == name {
			return i
		}
	}
	return -1
}

func TestHostileStocks(t *testing.T) {
	whole := expect.Result(class.ParseAmounts("cpus=2 licence=1 memory=1G")).Value(t)
	for _, text := range []string{
		`[{"name":"cpus","pieces":[{"free":-1}]}]`, `[{"name":"cpus","pieces":[{"free":10001}]}]`,
		`[{"name":"cpus","pieces":[{"free":10000},{"free":10000},{"free":1}]}]`, `[{"name":"cpus"},{"name":"cpus"}]`,
		`[{"name":"gpus","pieces":[{"free":1}]}]`, `[{"name":"licence","pieces":[{"free":10000},{"free":10000}]}]`,
		`[{"name":"memory","pieces":[{"free":1073741825}]}]`, `[{"name":"memory","pieces":[{"free":9223372036854775807},{"free":9223372036854775807}]}]`,
	} {
		var all []Stock
		expect.NoError(t, json.Unmarshal([]byte(text), &all))
		_, err := Restore(all, whole)
		expect.True(t, err != nil, text)
	}
	many := make([]Stock, 100_000) // of names that the worker does not offer
	for i := range many {
		many[i].Name = strconv.Itoa(i)
	}
	expect.Len(t, expect.Result(Restore(many, whole)).Value(t).all, len(whole))
	_, err := Restore([]Stock{{Name: class.CPUs, Pieces: make([]Piece, class.MaxIndices+1)}}, whole)
	expect.Fails(t, err, "want at most")
	p := expect.Result(Restore(StocksOf(class.CapacitiesOf(whole)), whole)).Value(t)
	expect.Equal(t, p.Free(), class.CapacitiesOf(whole))
	for _, m := range []Machine{
		{Cores: []Core{{-1, 0}}},
		{Cores: []Core{{0, -1}}},
		{Cores: []Core{{1, 0}, {1, 1}}},
		{Memory: -1},
		{Memory: 1 << 51},
		{GPUs: []string{"0", "0"}},
		{GPUs: []string{"-1"}},
		{GPUs: []string{"GPU-a,b"}},
		{GPUs: []string{"GPU-\n"}},
		{Variable: "PATH"},
		{GPUs: []string{"GPU-" + strings.Repeat("a", 100)}},
		{Cores: make([]Core, class.MaxIndices+1)},
	} {
		expect.True(t, m.Check() != nil, m)
	}
}
