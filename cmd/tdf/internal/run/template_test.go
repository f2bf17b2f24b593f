package run

import (
	"os"
	"regexp"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/sweep"
)

// The placeholders of docs/tdf.md have the values that the page shows for dir/a.wav.
func TestDocumentedPlaceholders(t *testing.T) {
	page := expect.Result(os.ReadFile("../../../../docs/tdf.md")).Value(t)
	rows := regexp.MustCompile("(?m)^\\| `(\\{[^`]*\\})` \\| [^`|]+(?:: |text )`([^`]+)`.*\\|$").FindAllSubmatch(page, -1)
	row := &sweep.Row{Params: []sweep.Param{{Name: "1", Text: "dir/a.wav"}}}
	for _, shown := range rows {
		words := expect.Result(parse([]string{string(shown[1])}, false).fill(row, 1)).Value(t)
		expect.Equal(t, words[0], string(shown[2]), string(shown[1]))
	}
	expect.Len(t, rows, 6)
}
