package bars

import "testing"

func TestLine(t *testing.T) {
	for _, test := range []struct {
		bar  Bar
		want string
	}{
		{
			Bar{Name: "open-bulk", Parts: []Part{{Unit: "× asynq with 16 callers", Limit: 2, Samples: []float64{1.8, 1.6, 1.89}}}},
			"bar open-bulk 1.80 (1.60-1.89) × asynq with 16 callers want >= 2.0: short",
		},
		{ // within 5 % of the limit, and the interval contains the limit
			Bar{Name: "open-bulk", Parts: []Part{{Unit: "× asynq", Limit: 2, Samples: []float64{1.8, 2.1, 1.92}}}},
			"bar open-bulk 1.92 (1.80-2.10) × asynq want >= 2.0: met",
		},
		{ // within 5 % of the limit, but the interval does not contain the limit
			Bar{Name: "open-bulk", Parts: []Part{{Unit: "× asynq", Limit: 2, Samples: []float64{1.93, 1.97, 1.98}}}},
			"bar open-bulk 1.97 (1.93-1.98) × asynq want >= 2.0: short",
		},
		{ // the interval contains the limit, but the median is too far from it
			Bar{Name: "chain", Parts: []Part{{Unit: "ms per link", AtMost: true, Limit: 10, Samples: []float64{9, 11, 12}}}},
			"bar chain 11.0 (9.00-12.0) ms per link want <= 10: short",
		},
		{
			Bar{Name: "chain", Parts: []Part{{Unit: "ms per link", AtMost: true, Limit: 10, Samples: []float64{9, 10.4, 12}}}},
			"bar chain 10.4 (9.00-12.0) ms per link want <= 10: met",
		},
		{
			Bar{Name: "process", Parts: []Part{{Unit: "× BullMQ", Limit: 2, Samples: []float64{2.5}}, {Unit: "× asynq", Limit: 4, Samples: []float64{3}}}},
			"bar process 2.50 (2.50-2.50) × BullMQ, 3.00 (3.00-3.00) × asynq want >= 2.0 and >= 4.0: short",
		},
		{
			Bar{Name: "process", Parts: []Part{{Unit: "× BullMQ", Limit: 2}, {Unit: "× asynq", Limit: 4, Samples: []float64{5}}}},
			"bar process - × BullMQ, 5.00 (5.00-5.00) × asynq want >= 2.0 and >= 4.0: not measured",
		},
	} {
		if got := test.bar.Line(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}
