package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Package admin suggests each fix in fixCommands.
func TestFixesAreThoseOfAdmin(t *testing.T) {
	files, err := filepath.Glob("../../admin/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	for _, c := range fixCommands {
		if !strings.Contains(code.String(), c.fix) {
			t.Errorf("package admin has no fix %q", c.fix)
		}
	}
	for fix, want := range map[string]string{
		"wait, or change the task's start_after":                      " (tdf set 7 --start-after 0)",
		"retry the task":                                              " (tdf retry 7)",
		"retry the task with a later end_before":                      " (tdf retry 7 --end-before TIME)",
		"when the task has expired, retry it with a later end_before": " (tdf retry 7 --end-before TIME)",
		"wait": "",
	} {
		if got := withCommands(fix, 7); got != fix+want {
			t.Errorf("got %s, want %s", got, fix+want)
		}
	}
}
