package dependencies

const (
	CallsPerTurn    = callsPerTurn
	GroupIDsPerPage = groupIDsPerPage
	LinksPerCall    = linksPerCall
)
