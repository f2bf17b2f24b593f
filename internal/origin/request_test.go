package origin

import (
	"errors"
	"net/url"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestReasonShowsNoCredentials(t *testing.T) {
	for text, want := range map[string]string{
		"refused":                           "refused",
		`Get "http://h/x?k=hush": refused`:  `Get "http://h/x?***": refused`,
		`parse "/x?k=hush&l=hush", why?`:    `parse "/x?***", why?`,
		`bad proxy "http://u:hush@proxy:x"`: `bad proxy "http://***@proxy:x"`,
	} {
		err := errors.New(text)
		for _, err := range []error{err, &url.Error{Op: "Get", URL: "http://h/?hush", Err: err}} {
			expect.Equal(t, Reason(err).Error(), want, text)
		}
		expect.FailsWith(t, Reason(err), err, text, "the cause is lost")
	}
}
