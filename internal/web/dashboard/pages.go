package dashboard

import (
	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/web/dashboard/plot"
	"github.com/tdf-framework/tdf/manager"
)

// pages lists the pages, in the order of the navigation.
var pages = []page{
	{"/", "overview", "Overview", toSee, loadOverview, everything},
	{"/tasks", "tasks", "Tasks", toSee, loadTasks, aboutTasks},
	{"/tasks/confirm", "confirm", "", toChange, loadConfirmation, nil},
	{"/tasks/{id}", "task", "", toSee, loadTask, aboutTask},
	{"/tasks/{id}/explain", "explain", "", toInspect, loadExplanation, aboutTask},
	{"/campaigns", "campaigns", "Campaigns", toSee, loadCampaigns, everything},
	{"/campaigns/{name}", "campaign", "", toSee, loadCampaign, ofCampaign},
	{"/new-campaign", "newcampaign", "", toOpen, loadNewCampaign, nil},
	{"/workers", "workers", "Workers", toInspect, loadWorkers, everything},
	{"/queues", "queues", "Queues", toInspect, loadQueues, everything},
	{"/limits", "limits", "Limits", toInspect, loadLimits, everything},
	{"/programs", "programs", "Programs", toInspect, loadPrograms, everything},
	{"/failures", "failures", "Failures", toInspect, loadFailures, everything},
	{"/notices", "notices", "Notices", toInspect, loadNotices, everything},
	{"/doctor", "doctor", "Doctor", toInspect, loadDoctor, everything},
}

// actions lists what pages can change.
var actions = []action{
	{path: "/tasks/do", need: toChange, do: actOnTasks},
	{path: "/tasks/{id}/{do}", need: toChange, do: actOnTask},
	{path: "/new-campaign", need: toOpen, body: maxCampaignForm, do: openCampaign},
	{path: "/workers/{name}/drain", need: toOperate, do: changeWorker((*admin.Admin).Drain)},
	{path: "/workers/{name}/resume", need: toOperate, do: changeWorker((*admin.Admin).Resume)},
	{path: "/queues/pause", need: toOperate, do: changePause(manager.Pauses.Begin)},
	{path: "/queues/resume", need: toOperate, do: changePause(manager.Pauses.End)},
	{path: "/limits/set", need: toOperate, do: setLimit},
	{path: "/limits/{key}/remove", need: toOperate, do: removeLimit},
	{path: "/programs/{sha256}/{do}", need: toOperate, do: changeProgram},
}

// downloads lists the downloads.
var downloads = []file{
	{"/campaigns/{name}/plot.svg", "plot.svg", toSee, plotFile("image/svg+xml", plotSVG)},
	{"/campaigns/{name}/plot.png", "plot.png", toSee, plotFile("image/png", (*plot.Figure).PNG)},
}
