package tdf

import (
	"cmp"
	"strconv"
)

// Require returns a Move that changes nothing, and that requires the task to be unchanged since it was read.
func (t *Task) Require() Move {
	m := Move{ID: t.ID, Verb: VerbRequire, From: t.State, Round: t.Round, To: t.State, Next: t.Round}
	m.Claim = cmp.Or(t.Current().Claim, NoClaim)
	return m.IfUnchanged(t)
}

// IfUnchanged returns the Move with a fence: the task must still have the revision of t. Together with the state and the
// round, the revision identifies one version of a task. Leases and reports of a running program make no new version.
func (m Move) IfUnchanged(t *Task) Move {
	m.Revision = strconv.Itoa(t.Revision)
	return m
}
