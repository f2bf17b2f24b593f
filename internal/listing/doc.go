// Package listing finds tasks by a query, page by page. Packages manager and admin share it.
//
// The lists in Redis give the state, the group and the time of a task. For all other conditions, a [Walk] reads one task after
// the other, within [Bounds].
package listing
