package manager_test

import "github.com/tdf-framework/tdf/internal/testspace"

var (
	redisConfig = testspace.Config
	newManager  = testspace.Manager
	define      = testspace.Define
	connect     = testspace.Connect
	apply       = testspace.Apply
	client      = testspace.Client
	read        = testspace.Read
	silent      = testspace.Silent
)
