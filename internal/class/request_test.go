package class

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestResourceRequests(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		" ":                             "",
		"cpus=4":                        "cpus=4",
		"cpus=04.50":                    "cpus=4.5",
		"cpus=0":                        "cpus=0",
		"cpus=0.0001":                   "cpus=0.0001",
		"memory=2G cpus=4":              "cpus=4 memory=2G",
		"memory=2048M,cpus=4":           "cpus=4 memory=2G",
		"memory=1.5g":                   "cpus=1 memory=1536M",
		"memory=1000":                   "cpus=1 memory=1000",
		"memory=1KiB":                   "cpus=1 memory=1K",
		"memory=1024T":                  "cpus=1 memory=1024T",
		"gpus=1 or cpus=16":             "cpus=1 gpus=1 or cpus=16",
		"cpus=1 or cpus=1.0 or  cpus=2": "cpus=1 or cpus=2",
		"licence=1 a.b-c/d_9=0.5":       "a.b-c/d_9=0.5 cpus=1 licence=1",
		"cpus=1000000000":               "cpus=1000000000",
		fmt.Sprint("cpus=1", strings.Repeat(" or cpus=1", 20)): "cpus=1",
	} {
		r, err := ParseRequest(text)
		expect.NoError(t, err, text)
		expect.Equal(t, r.String(), want, text)
		again, err := ParseRequest(r.String())
		expect.NoError(t, err, text)
		expect.Equal(t, again.String(), want, text)
	}
}

func TestInvalidResourceRequests(t *testing.T) {
	for text, why := range map[string]string{
		"cpus":                         "no amount",
		"cpus=":                        "want a number",
		"cpus=-1":                      "want a number",
		"cpus=+1":                      "want a number",
		"cpus=NaN":                     "want a number",
		"cpus=inf":                     "want a number",
		"cpus=1e3":                     "want a number",
		"cpus=1e400":                   "want a number",
		"cpus=0x10":                    "want a number",
		"cpus=1_000":                   "want a number",
		"cpus=1.":                      "want a number",
		"cpus=.5":                      "want a number",
		"cpus=1.2.3":                   "want a number",
		"cpus=0.00001":                 "want a number",
		"cpus=1000000001":              "want a number",
		"cpus=1000000000.0001":         "want a number",
		"cpus=99999999999999999999999": "want a number",
		"cpus=9223372036854775807":     "want a number",
		"cpus=٣":                       "want a number",
		"cpus=1=2":                     "want a number",
		"gpus=0":                       "above 0",
		"memory=0G":                    "above 0",
		"memory=":                      "want bytes",
		"memory=G":                     "want bytes",
		"memory=-1G":                   "want bytes",
		"memory=1X":                    "want bytes",
		"memory=1.5":                   "want bytes",
		"memory=0.0001K":               "want bytes",
		"memory=1025T":                 "want bytes",
		"memory=9999999999999999T":     "want bytes",
		"memory=1BB":                   "want bytes",
		"=1":                           "no name",
		"CPUS=1":                       "no name",
		"1a=1":                         "no name",
		"a;b=1":                        "no name",
		"a:b=1":                        "no name",
		"a|b=1":                        "no name",
		"ü=1":                          "no name",
		"a\n=1":                        "no name",
		strings.Repeat("a", 33) + "=1": "no name",
		"cpu=1":                        "want cpus",
		"gpu=1":                        "want gpus",
		"mem=1G":                       "want memory",
		"concurrency=1":                "is a key of workers",
		"cpus=1 cpus=2":                "twice",
		"cpus=1 cpus=1":                "twice",
		"or":                           "is empty",
		"cpus=1 or":                    "is empty",
		"or cpus=1":                    "is empty",
		"cpus=1 or or cpus=2":          "is empty",
		many("cpus=%d", " or ", 9):     "9 alternatives",
		many("r%d=1", " ", 16):         "at most 16",
		many("r%d=1", " ", 17):         "at most 16",
		strings.Repeat(" ", 5000):      "5000 bytes",
	} {
		expect.Result(ParseRequest(text)).Fails(t, why, text)
	}
	expect.Result(ParseRequest(many("cpus=%d", " or ", 8))).OK(t)
	expect.Result(ParseRequest(many("r%d=1", " ", 15))).OK(t)
}

// many returns n words with the numbers from 1 up.
func many(word, separator string, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf(word, i+1)
	}
	return strings.Join(words, separator)
}

func drawAmounts(r *rapid.T, most int64) (all Amounts) {
	for _, name := range []string{CPUs, GPUs, "licence", Memory} {
		units := rapid.Int64Range(0, most).Draw(r, name)
		if name == CPUs || units > 0 {
			all = append(all, Amount{name, units})
		}
	}
	return all
}

// The name of a requirement gives back each request, and no other text is one.
func TestRequestsInRequirements(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var request Request
		for range rapid.IntRange(1, 3).Draw(r, "alternatives") {
			request = append(request, drawAmounts(r, 50_000))
		}
		request, err := ParseRequest(request.String())
		if got := parsePart(request.Part()); err != nil || !reflect.DeepEqual(got, request) {
			r.Fatal(request, "is read as", got, err)
		}
	})
	for _, text := range []string{
		"", "cpus", "cpus:", "cpus:x", "cpus:-1", "cpus:01", "cpus:1|", "|cpus:1", "gpus:1", "cpus:1,cpus:1", "memory:1,cpus:1",
		"cpus:1|cpus:1", "cpus:1 or cpus:2", "cpus:99999999999999999999", "cpus:10000,gpus:0",
	} {
		expect.Equal(t, parsePart(text), nil, text)
	}
}

func FuzzResourceRequest(f *testing.F) {
	f.Add("gpus=1 memory=2.5G or cpus=16,licence=0.25")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequest(text)
		if err != nil {
			return
		}
		again, err := ParseRequest(r.String())
		expect.NoError(t, err)
		expect.Equal(t, again.String(), r.String())
		if r != nil {
			expect.Equal(t, parsePart(r.Part()), r)
		}
	})
}

func amounts(t testing.TB, text string) Amounts {
	t.Helper()
	return expect.Result(ParseAmounts(text)).Value(t)
}

func request(t testing.TB, text string) Request {
	t.Helper()
	return expect.Result(ParseRequest(text)).Value(t)
}

// A whole GPU is not made of two halves, and a fraction comes from the smallest part.
func TestCapacities(t *testing.T) {
	free := CapacitiesOf(amounts(t, "cpus=4 gpus=2 memory=1G licence=1"))
	steps := []struct {
		asks, alternative string
		left              string
	}{
		{"cpus=0.5 gpus=0.5", "0", "cpus=3.5 gpus=1.5 licence=1 memory=1G"},
		{"cpus=0 gpus=0.5", "0", "cpus=3.5 gpus=1 licence=1 memory=1G"},
		{"cpus=0 gpus=0.7", "0", "cpus=3.5 gpus=0.3 licence=1 memory=1G"},
		{"cpus=0 gpus=0.4", "-1", ""},
		{"cpus=0 gpus=1 or cpus=3 memory=1024M", "1", "cpus=0.5 gpus=0.3 licence=1 memory=0"},
		{"cpus=0.5 memory=1", "-1", ""},
		{"cpus=1", "-1", ""},
		{"cpus=0.5 tpus=1", "-1", ""},
		{"cpus=0.5 licence=0.9", "0", "cpus=0 gpus=0.3 licence=0.1 memory=0"},
	}
	for _, step := range steps {
		left, alternative := free.Without(request(t, step.asks))
		expect.Equal(t, fmt.Sprint(alternative), step.alternative, step.asks)
		if alternative >= 0 {
			free = left
			expect.Equal(t, free.Amounts().String(), step.left, step.asks)
		}
	}
}

// What is taken and what is left is always the whole, and no part is as large as an index.
func TestCapacitiesTakeWhatIsAsked(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		free := CapacitiesOf(Amounts{{CPUs, 80_000}, {GPUs, 40_000}, {"licence", 30_000}, {Memory, 90_000}})
		for range 20 {
			before := fmt.Sprint(free)
			asked := drawAmounts(r, 25_000)
			left, alternative := free.Without(Request{asked})
			if after := fmt.Sprint(free); after != before {
				r.Fatal(before, "became", after)
			}
			if alternative < 0 {
				continue
			}
			for i := range left {
				if left[i].Units()+asked.Of(left[i].Name) != free[i].Units() {
					r.Fatal(free, "without", asked, "is", left)
				}
				if slices.ContainsFunc(left[i].Parts, func(n int64) bool { return n <= 0 || n >= left[i].Unit }) {
					r.Fatal("the parts of", left)
				}
			}
			free = left
		}
	})
}

func TestResourceOffers(t *testing.T) {
	for _, text := range []string{"", " ", "none"} {
		expect.Equal(t, expect.Result(ParseResourceOffer(text)).Value(t), nil)
	}
	for text, why := range map[string]string{
		"gpus=1": "cpus are missing", "cpus=0": "cpus are missing", "cpus=1.5": "whole number", "cpus=1 gpus=0.5": "whole number",
		"none cpus=1": "no amount", "auto cpus=0": "cpus are missing", "all": "no amount", "cpus=10001": "up to 10000", "cpus=-1": "want a number",
		"auto cpus=1 cpus=2": "twice", "auto concurrency=9": "is a key",
	} {
		expect.Result(ParseResourceOffer(text)).Fails(t, why, text)
	}
	both := expect.Result(ParseResourceOffer("licence=1, auto")).Value(t)
	expect.True(t, both.Auto)
	expect.Equal(t, both.Amounts.String(), "licence=1")
}
