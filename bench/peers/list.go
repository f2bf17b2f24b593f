package main

// allBars returns all bars, in the order of the table.
func allBars() []*bar {
	return []*bar{
		processBar(), evalshaBar(), openBulkBar(), openSingleBar(), openSharedBar(), lifeCycleBar(), redisCPUBar(),
		pickupBar(), memoryBar(),
		chainBar(), backlogBar(), idleRoundBar(), idleBar(), runBar(), commandBar(), copiesBar(),
	}
}
