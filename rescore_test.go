package tdf

import "testing"

func TestRescore(t *testing.T) {
	for name, c := range map[string]struct {
		start, entered, score, now Time
		i                          int
		want, stamp                Time // 0: none
		ready                      string
	}{
		"right":                           {0, 50, 50, 100, 0, 0, 0, ""},
		"start_after to come":             {5000, 50, 5000, 100, 0, 0, 0, ""},
		"put off by a claim":              {0, 50, 105, 100, 0, 0, 0, ""},
		"the clock was set back":          {0, 5000, 5000, 100, 0, 100, 100, ""},
		"the third of them":               {0, 5002, 5002, 100, 2, 100.000002, 100.000002, ""},
		"start_after in between":          {2000, 5000, 5000, 100, 0, 2000, 100, ""},
		"the third with such start_after": {2000, 5000, 5000, 100, 2, 2000.000002, 100.000002, "2000.000002"},
		"a score that nothing explains":   {0, 50, 5000, 100, 0, 50, 0, ""},
		"start_after was changed":         {200, 50, 5000, 100, 0, 200, 0, ""},
	} {
		task := taskIn(Open)
		task.StartAfter, task.EndBefore = c.start, 9000
		task.Current().Entered[Open] = c.entered
		m, ok := task.Rescore(c.score, c.now, c.i)
		if ok != (c.want > 0) {
			t.Errorf("%s: %v, %+v", name, ok, m)
			continue
		}
		if !ok {
			continue
		}
		var stamp Time
		for _, s := range m.Stamp {
			stamp = s.At.Min
		}
		ready := ""
		for _, f := range m.Set {
			if f.Name == "ready" {
				ready = f.Value
			}
		}
		if m.Score != exactly(c.want) || stamp != c.stamp || ready != c.ready || m.Look != exactly(9000) || m.From != Open || m.To != Open || m.Next != 2 {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for _, state := range States[1:] {
		task := taskIn(state)
		if m, ok := task.Rescore(5000, 100, 0); ok {
			t.Errorf("%s: %+v", state, m)
		}
	}
}
