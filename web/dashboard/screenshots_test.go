package dashboard_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/access"
	"github.com/tdf-framework/tdf/admin"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/redisstate"
	"github.com/tdf-framework/tdf/redisstate/embedded"
	"github.com/tdf-framework/tdf/redisstate/presence"
	"github.com/tdf-framework/tdf/web"
)

// The pictures of the pages in docs/images (make screenshots). They come from a campaign on an embedded Redis whose clock the test moves, so that they change only if
// the pages do. With TDF_SCREENSHOTS, the test writes them into that directory.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	redis := expect.Result(embedded.Start("127.0.0.1:0")).Value(t)
	t.Cleanup(redis.Close)
	cfg := testspace.Config(t, redis.Addr())
	cfg.Namespace, cfg.Redis.DB = "lab", 0
	redis.SetTime(time.Date(2030, 1, 31, 11, 0, 0, 0, time.UTC))
	m := testspace.Manager(t, cfg)
	s := &site{t, web.New(m, web.Options{Log: testspace.Silent, Timeout: time.Hour}), cfg, m, admin.New(m), testspace.Connect(t, cfg), nil}
	expect.Result(s.admin.AddToken(t.Context(), access.Token{Name: "operator", Role: access.Operator})).OK(t)
	b := s.tab(s.serve())
	expect.Result(chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "UTC"})).OK(t)
	b.login(access.Operator)
	const campaign = "/ui/campaigns/night?kind=line&x=lr&y=result.loss&xscale=log&colour=opt"
	s.simulate(redis, time.Date(2030, 1, 31, 11, 0, 0, 0, time.UTC), func() { b.open(campaign) })
	expect.Eventually(t, "the rate of the campaign, which needs two looks", func() bool {
		b.open(campaign)
		return eval[string](b, `[...document.querySelectorAll("#progress dl div")].find(d => d.textContent.startsWith("Finished per second")).lastChild.textContent`) != "0"
	})
	const most = 1500 // the height of a picture
	total, dir := 0, cmp.Or(os.Getenv("TDF_SCREENSHOTS"), t.TempDir())
	for _, p := range []struct {
		name, path, scheme string
		ready              string // what the page has when it can be taken
	}{
		{"overview", "/ui", "light", "svg.bars path.succeeded[d]"},
		{"campaign", campaign, "light", "svg.plot path.s1"},
	} {
		expect.Result(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: p.scheme}}})).OK(t)
		b.do(chromedp.EmulateViewport(1200, 800))
		b.open(p.path)
		b.sees(p.name, fmt.Sprintf("document.querySelector(%q) !== null", p.ready))
		// What needs attention is true only of this test: its Redis is embedded, and the clock of this Redis is not that of the machine.
		height := eval[int64](b, `document.querySelector("#attention")?.remove(); document.querySelector("main").scrollHeight + 90`)
		b.do(chromedp.EmulateViewport(1200, min(height, most)))
		shot := expect.Result(chromedp.Run(b.ctx, chromedp.CaptureScreenshot())).Value(t)
		small := smaller(t, shot)
		total += len(small)
		expect.NoError(t, os.WriteFile(filepath.Join(dir, p.name+".png"), small, 0o644))
	}
	expect.True(t, total < 300_000, "the pictures have", total, "bytes")
}

// simulate runs 50 minutes of two campaigns on three workers with two slots. Some tasks fail, for two reasons. A minute before the end, it calls a function.
func (s *site) simulate(redis *embedded.Redis, begin time.Time, beforeEnd func()) {
	ctx := s.Context()
	for group := range strings.SplitSeq("night day", " ") {
		var all []manager.Definition
		for i := range 150 {
			d := testspace.Define("train", "rsync:/p/run.sh", fmt.Sprint("--seed ", i))
			d.Group, d.Meta = group, fmt.Sprintf(`{"lr":%g,"opt":"%s"}`, []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3}[i%6], []string{"sgd", "adam"}[i/6%2])
			d.FailOn = tdf.FailOnExit
			all = append(all, d)
		}
		expect.Result(s.manager.Open(ctx, all...)).OK(s)
	}
	type slot struct {
		worker string
		free   time.Duration
		claim  *redisstate.Claim
		begun  tdf.Time
	}
	slots := []*slot{}
	for i := range 6 {
		slots = append(slots, &slot{worker: fmt.Sprint("lab-", 1+i/2), free: tdf.Seconds(i).Std()})
	}
	counting, minute := s.counting(), time.Duration(0)
	const end = 50 * time.Minute
	for {
		x := slices.MinFunc(slots, func(a, b *slot) int { return cmp.Compare(a.free, b.free) })
		for ; minute < min(x.free, end); minute += time.Minute { // each minute, a server stores the history
			redis.SetTime(begin.Add(minute))
			expect.NoError(s, counting.Close())
			counting = s.counting()
			expect.NoError(s, s.store.KeepHistory(ctx, tdf.At(begin.Add(minute))))
		}
		if x.free >= end {
			break
		}
		redis.SetTime(begin.Add(x.free))
		if beforeEnd != nil && x.free >= end-time.Minute {
			beforeEnd()
			beforeEnd = nil
		}
		now := tdf.At(begin.Add(x.free))
		if x.claim != nil {
			result := trained(x.claim.Task.ID, now.Sub(x.begun))
			testspace.End(s, counting, *x.claim, result)
		}
		got := expect.Result(counting.Claim(ctx, redisstate.ClaimParams{Worker: x.worker, Most: 1, Lease: 7200})).Value(s)
		expect.MustTrue(s, len(got.Claims) == 1, "claims", got)
		x.claim, x.begun = &got.Claims[0], now
		x.free += tdf.Seconds(40 + x.claim.Task.ID*37%50).Std()
	}
	expect.NoError(s, counting.Close())
	for _, x := range slots {
		var runs []int64
		for _, y := range slots {
			if y.worker == x.worker {
				runs = append(runs, y.claim.Task.ID)
			}
		}
		expect.Result(s.store.WorkerHeartbeat(ctx, presence.WorkerInfo{Name: x.worker, Boot: x.worker, Host: x.worker, Lease: 7200, State: "working", Slots: 2, Runs: runs})).OK(s)
	}
	expect.NoError(s, s.store.ServerHeartbeat(ctx, "server", expect.Result(s.store.Now(ctx)).Value(s)))
}

// counting returns a connection that counts for the history. Its counts are in Redis when it is closed.
func (s *site) counting() *redisstate.Store {
	c := testspace.Connect(s, s.cfg)
	c.KeepCounts()
	return c
}

// trained is the result of a task.
func trained(id int64, took tdf.Seconds) tdf.Result {
	r := tdf.Result{Exit: "0", Seconds: took, JSON: fmt.Sprintf(`{"loss":%.3f}`, 0.3+math.Abs(math.Log10(float64(1+id%6)/4))+float64(id*7919%100)/400+float64(id/6%2)/5)}
	switch {
	case id%29 == 0:
		r.Exit, r.JSON, r.Error = "1", "", "Traceback (most recent call last):\nMemoryError: batch of 4096 rows\n"
	case id%41 == 0:
		r.Exit, r.JSON, r.Error = "2", "", "ValueError: loss is NaN\n"
	}
	return r
}

// smaller returns a picture with the 256 colours that are most frequent in it. Other colours, at the edges of letters, become the nearest of them.
func smaller(t *testing.T, shot []byte) []byte {
	from := expect.Result(png.Decode(bytes.NewReader(shot))).Value(t)
	counts := map[color.RGBA]int{}
	area := from.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var palette color.Palette
	for _, c := range all[:min(len(all), 256)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(area, palette)
	draw.Draw(to, area, from, area.Min, draw.Src)
	var b bytes.Buffer
	expect.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, to))
	return b.Bytes()
}
