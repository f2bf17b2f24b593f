package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// A try is one task, and what is expected of it.
type try struct {
	name   string // the program's: its directory on the worker
	source string
	want   string // part of the error; "": it succeeds
}

// good is one try for each kind of source and archive.
func (s *shop) good(ctx context.Context, m *manager.Manager, run string) ([]try, error) {
	var tries []try
	add := func(kind, ending, source, want string) {
		name := fmt.Sprintf("%s-%s-%s", run, kind, strings.ReplaceAll(ending, ".", "-"))
		tries = append(tries, try{name, source, want})
	}
	noRsync := ""
	if s.rsync == nil {
		noRsync = "rsync is not installed"
	}
	files := []string{"run.sh"}
	for _, e := range endings {
		files = append(files, "program."+e)
	}
	for _, file := range files {
		ending := strings.TrimPrefix(file, "program.")
		add("path", ending, "rsync:"+filepath.Join(s.dir, file), "")
		add("daemon", ending, "rsync:"+s.module+"/"+file, noRsync)
		add("http", ending, s.url+"/"+file, "")
		if file == "run.sh" {
			continue // what is kept in Redis is an archive
		}
		packed, err := os.ReadFile(filepath.Join(s.dir, file))
		if err != nil {
			return nil, err
		}
		source, err := program.Put(ctx, m, packed)
		if err != nil {
			return nil, err
		}
		add("redis", ending, source, "")
	}
	return tries, nil
}

// bad are tries that fail: some are refused when they are to be opened.
func (s *shop) bad(run string) []try {
	zeros := strings.Repeat("0", 64)
	tries := []try{
		{"no-scheme", "program.zip", "no scheme"},
		{"ftp", "ftp://example.org/program.zip", "unknown scheme"},
		{"rar", s.url + "/program.rar", "unknown ending"},
		{"no-host", "http:///program.zip", "no host"},
		{"option", "rsync:-e.zip", "taken for an option"},
		{"bad-sum", s.url + "/program.zip#sha256=12", "not a SHA-256 sum"},
		{"http-missing", s.url + "/missing.zip", "404"},
		{"path-missing", "rsync:" + filepath.Join(s.dir, "missing.zip"), "no such file"},
		{"redis-missing", "redis:" + zeros, "nothing is stored"},
		{"other-sum", s.url + "/program.zip#sha256=" + zeros, zeros},
		{"broken", s.url + "/broken.tar.gz", "broken.tar.gz"},
		{"deep", s.url + "/deep.zip", "one level too deep"},
	}
	for i := range tries {
		tries[i].name = run + "-" + tries[i].name
	}
	return tries
}
