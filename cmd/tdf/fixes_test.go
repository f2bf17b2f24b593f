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
	if got := withCommands("wait, or change the task's start_after", 7); got != "wait, or change the task's start_after (tdf set 7 --start-after 0)" {
		t.Errorf("got %s", got)
	}
}
