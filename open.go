package tdf

// Schedule returns a new task's score in the open list, and the time at which the task is due.
func (d *Properties) Schedule() (score, due Moment) {
	return Moment{Min: d.StartAfter}, noEarlierThan(d.EndBefore)
}
