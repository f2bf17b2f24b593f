package manager

import (
	"slices"
	"testing"
)

func TestBatchesAreSmallIfTasksAreLarge(t *testing.T) {
	const huge, small = bytesPerBatch + 1, 1000
	for name, c := range map[string]struct {
		sizes []int64
		want  []int // numbers of tasks in the batches
	}{
		"small":   {slices.Repeat([]int64{small}, 100), []int{64, 36}},
		"unknown": {slices.Repeat([]int64{0}, 65), []int{64, 1}},
		"huge":    {[]int64{huge, huge, small, small, huge}, []int{1, 1, 2, 1}},
		"halves":  {slices.Repeat([]int64{bytesPerBatch / 2}, 5), []int{2, 2, 1}},
		"none":    {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ids := make([]int64, len(c.sizes))
			for i := range ids {
				ids[i] = int64(i)
			}
			var got []int
			var all []int64
			for batch := range batches(ids, c.sizes) {
				got, all = append(got, len(batch)), append(all, batch...)
			}
			if !slices.Equal(got, c.want) || !slices.Equal(all, ids) {
				t.Errorf("batches of %v tasks with the ids %v, want %v", got, all, c.want)
			}
		})
	}
}
