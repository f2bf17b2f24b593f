package dashboard

// pages lists the pages, in the order of the navigation.
var pages = []page{
	{"/", "overview", "Overview", toSee, loadOverview, everything},
	{"/workers", "workers", "Workers", toInspect, loadWorkers, everything},
}

// actions lists what pages can change.
var actions = []action{
	{path: "/workers/{name}/drain", need: toOperate, do: drainWorker},
	{path: "/workers/{name}/resume", need: toOperate, do: resumeWorker},
}
