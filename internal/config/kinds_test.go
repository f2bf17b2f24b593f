package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

// Keys of every kind refuse invalid values, in a file and in the environment. The test compares whole error texts.
func TestInvalidValues(t *testing.T) {
	const (
		aboveZero = "a number of seconds above 0, at most 1000000000"
		fromZero  = "a number of seconds from 0 up, at most 1000000000"
		span      = "a number of seconds above 0, or inf"
		path      = "a path of up to 4095 bytes, and up to 255 in each part"
		file      = path + ", with no $ except in $program, $worker, $taskId and $round"
		name      = "a name of 1 to 200 bytes without spaces or parts like :task"
		hostName  = "a host's name or address (its port has a key of its own), or the path of a socket"
	)
	for _, c := range []struct {
		section, key string
		want         string
		values       []string
	}{
		{"redis", "host", hostName, []string{"", "localhost:6379", "[::1]:6379", "redis://localhost", "two words", "user@host", "run/redis.sock"}},
		{"redis", "replicas", "a whole number from 0 to 10", []string{"-1", "11", "all"}},
		{"redis", "port", "a whole number from 1 to 65535", []string{"", "0", "65536", "-1", "6379.0", "redis", "0x10", "99999999999999999999"}},
		{"redis", "db", "a whole number from 0 to 1000000000", []string{"-1", "one", "1e3"}},
		{"redis", "sentinels", "nothing, or NAME@ and up to 20 addresses HOST:PORT, each once, separated by blanks or commas", []string{"s:1", "m@", "@s:1", "m@s", "m@s:", "m@:1", "m@s:0", "m@s:65536", "m@s:x", "m@::1:1", "m@http://s:1", "m@u@s:1", "m@a:1,b:2 a:1", "m@" + sentinelsUpTo(21)}},
		{"redis", "tls", "True or False", []string{"", "2", "maybe", "tru"}},
		{"tdf", "namespace", name, []string{"", "two words", "a\u00a0b", "a\tb", strings.Repeat("n", 201), strings.Repeat("ü", 101)}},
		{"tdf", "namespaces", "up to 32 namespaces, each once, separated by blanks or commas", []string{"a:task", "a,b a", strings.Repeat("n", 201), namespacesUpTo(33)}},
		{"server", "round_duration", fromZero, []string{"", "-1", "-0.001", "NaN", "inf", "-inf", "1s", "1,5", "1000000001"}},
		{"http", "listen", "HOST:PORT, :PORT for all addresses of the machine, or nothing", []string{"localhost", "1", "a:", "a:65536", "a:http", "::1:80", "http://a:80", "a b:1", "u@h:1"}},
		{
			"http", "hosts", "names of hosts without ports, separated by blanks or commas, one of which may be an address such as https://tdf.example.org",
			[]string{"a:80", "*", "*.a", "ftp://a", "javascript:alert(1)", "https://a/", "https://a/ui", "https://a?b", "https://", "https://:1", "https://u@a", "https://a'b", "https://a\u202eb", "https://a https://b"},
		},
		{"http", "trusted_proxies", "IP addresses and networks such as 10.1.0.0/16, separated by blanks or commas", []string{"proxy", "10.0.0.0/33", "10.0.0", "10.0.0.1:80"}},
		{"worker", "lease", "a number of seconds from 0.1 up, at most 1000000000", []string{"thirty", "0", "-0", "1e-9", "0.099", "-30", "nan", "inf"}},
		{"worker", "grace", fromZero + ", or inf", []string{"-1", "-inf", "infinite", "NaN"}},
		{"worker", "directory", path, []string{"", "a/" + strings.Repeat("n", 256), strings.Repeat("n/", 2500)}},
		{"worker", "task_output_filename", file, []string{"", "$", "$task/x", "$programs/$taskid", "${worker}"}},
		{"worker", "task_error_filename", file, []string{strings.Repeat("n", 5000)}},
		{"worker", "concurrency", "a whole number from 1 to 1000, auto, or a number for each namespace, such as a:4,b:4", []string{"0", "-1", "1001", "Auto", "two"}},
		{"worker", "env", "names of variables that do not begin with TDF_, separated by blanks or commas", []string{"A=1", "TDF_CFG_X", "1A", "A;B"}},
		{"worker", "user", "a user's name or number, with no % except in %n", []string{"slot%", "slot%i", "%%n%"}},
		{"worker", "on_lease_lost", "one of continue, end", []string{"ignore", ""}},
		{"worker", "max_program_bytes", "a whole number of bytes from 1 to 1000000000000000", []string{"0", "1GiB", "1000000000000001"}},
		{"task_defaults", "start_after", "a Unix time in seconds from 0 up", []string{"-1", "inf", "NaN", "now", "2026-01-01"}},
		{"task_defaults", "end_before", "a Unix time in seconds from 0 up, or inf", []string{"-1", "-inf", "NaN", "never"}},
		{"task_defaults", "timeout", span, []string{"0", "-1", "NaN", "None"}},
		{"task_defaults", "max_fails", "a whole number from 0 to 1000000000", []string{"-1", "inf", "1.5", "1000000001"}},
		{"task_defaults", "group", "a name of up to 200 bytes", []string{strings.Repeat("g", 201)}},
		{"task_defaults", "meta", "text of up to 4096 bytes", []string{strings.Repeat("m", 4097)}},
		{"task_defaults", "fail_on", "one of stderr, exit, any", []string{"", "stdout", "Exit"}},
		{"log", "level", "one of debug, info, warn, error", []string{"", "loud", "info+1"}},
		{"log", "format", "one of text, json", []string{"", "xml"}},
	} {
		for _, value := range c.values {
			t.Run(c.key+"="+short(value), func(t *testing.T) {
				k := find(c.section, c.key)
				found := quote(value) + " is not " + c.want
				_, err := load(source, []byte(fileOf(*k, value)), nil)
				wantError(t, err, source+": ["+c.section+"] "+c.key+": "+found)
				_, err = load(source, []byte("[tdf]\nnamespace=N"), []string{k.env() + "=" + value})
				wantError(t, err, k.env()+": "+found)
			})
		}
	}
}

func namespacesUpTo(n int) string {
	all := ""
	for i := range n {
		all += fmt.Sprintf("n%d,", i+1)
	}
	return all
}

func sentinelsUpTo(n int) string {
	all := ""
	for i := range n {
		all += fmt.Sprintf("s:%d,", i+1)
	}
	return all
}

// A file cannot contain these bytes, but an environment variable can.
func TestInvalidBytesInVariables(t *testing.T) {
	for _, name := range []string{
		"TDF_CFG_TDF_NAMESPACE", "TDF_CFG_REDIS_HOST", "TDF_CFG_REDIS_USERNAME", "TDF_CFG_TASK_DEFAULTS_GROUP",
		"TDF_CFG_WORKER_DIRECTORY", "TDF_CFG_WORKER_TASK_ERROR_FILENAME", "TDF_CFG_REDIS_PORT", "TDF_CFG_WORKER_LEASE",
	} {
		for _, value := range []string{"1\n", "a\x00b", "\xff\xfe", "\x1b[2J"} {
			_, err := load(source, []byte("[tdf]\nnamespace=N"), []string{name + "=" + value})
			if err == nil {
				t.Errorf("%s=%q was accepted", name, value)
				continue
			}
			want := name + ": " + quote(value) + " is not "
			expect.True(t, strings.HasPrefix(err.Error(), want), "error", err, "does not begin with", want)
		}
	}
}

func TestBooleans(t *testing.T) {
	for text, want := range map[string]bool{
		"True": true, "yes": true, "ON": true, "1": true, "tRuE": true,
		"False": false, "no": false, "Off": false, "0": false,
	} {
		expect.Equal(t, mustLoad(t, "[tdf]\nnamespace=N\n[redis]\ntls="+text).redis.TLS, want, "tls=", text)
	}
}
