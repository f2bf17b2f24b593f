package server

import (
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
)

// The claim script and the server agree whether a property is valid. If they disagreed, a task that only one of them
// rejects would be postponed forever.
func TestClaimAndServerAgreeOnProperties(t *testing.T) {
	s := newSite(t)
	id := 0
	for property, values := range map[string][]string{
		"round":       {"", "0", "00", "+0", " 0", "0x0", "1e0", "-0"},
		"start_after": {"", "5", "5.", ".5", "+5", " 5", "5 ", "5e0", "5E0", "9e+02", "0x5", "0x1p4", "1_0", "0x_5", "-0", "1e", "five"},
		"end_before":  {"", "9e9", "9E+9", "9.0e9", "inf", "INF", "+inf", "Infinity", "nan", "0x1p40", "9_0", "1e400", "99999999999999999999"},
		"timeout":     {"", "3e1", "30", "inf", "+Inf", "infinity", "0x10", "0"},
		"max_fails":   {"", "0", "00", "1e0", "0x1"},
	} {
		for _, value := range values {
			id++
			s.byHand(id, property, value)
			c := expect.Result(s.store.Claim(s.Context(), claimOf(1))).Value(s)
			s.round()
			state := s.do("HGET", "$task:"+itoa(id), "state")
			if claimed := len(c.Claims) == 1; claimed != (state == string(tdf.Running)) || !claimed && state != string(tdf.Failed) {
				s.Errorf("%s=%q: claimed: %v, state: %v", property, value, claimed, state)
			}
			s.do("DEL", "$task:"+itoa(id))
			for _, list := range []string{"open", "due", "running", "failed"} {
				s.do("ZREM", "$"+list, id)
			}
		}
	}
}
