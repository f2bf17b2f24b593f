// Package listing finds tasks by a query, page by page. Packages manager and admin share it.
//
// The lists in Redis tell the state, the group and the time of a task. A [Walk] reads the tasks one after the other for all
// other conditions, within [Bounds].
package listing
