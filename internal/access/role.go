package access

import "strings"

// A Role says what the holder of a token may do.
type Role string

// The roles.
const (
	Viewer    Role = "viewer"
	Submitter Role = "submitter"
	Worker    Role = "worker"
	Operator  Role = "operator"
)

// A Scope is a set of tasks.
type Scope int

// The scopes.
const (
	None Scope = iota
	Own        // the tasks that the token has opened
	All
)

// Rights are what a role may do.
type Rights struct {
	See     Scope // tasks, with their inputs and outputs
	Change  Scope // cancel, retry, requeue, change, archive and remove tasks
	Open    bool  // open tasks, and store the programs that they need
	Work    bool  // claim tasks, and report results of its own claims
	Inspect bool  // see workers, queues, limits and all other data of the namespace
	Operate bool  // change workers, queues, limits and all other data of the namespace
	Queues  bool  // a token may name queues, and then opens or claims only tasks of these queues
	Text    string
}

// roles is the only place that gives rights.
var roles = []struct {
	Role
	Rights
}{
	{Viewer, Rights{See: All, Inspect: true, Text: "sees everything, and changes nothing"}},
	{Submitter, Rights{
		See: Own, Change: Own, Open: true, Queues: true,
		Text: "opens tasks, and sees and changes only the tasks that it has opened",
	}},
	{Worker, Rights{Work: true, Queues: true, Text: "claims tasks, and reports only the results of its own claims"}},
	{Operator, Rights{
		See: All, Change: All, Open: true, Work: true, Inspect: true, Operate: true,
		Text: "may do everything",
	}},
}

// Rights returns the rights of the role. An unknown role has none.
func (r Role) Rights() Rights {
	for _, row := range roles {
		if row.Role == r {
			return row.Rights
		}
	}
	return Rights{}
}

func (r Role) known() bool { return r.Rights() != Rights{} }

// Roles returns the names of all roles.
func Roles() []string {
	var all []string
	for _, row := range roles {
		all = append(all, string(row.Role))
	}
	return all
}

func roleNames() string { return strings.Join(Roles(), ", ") }
