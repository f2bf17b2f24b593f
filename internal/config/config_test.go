package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

func TestLoadReadsTheEnvironment(t *testing.T) {
	clearEnvironment(t)
	path := write(t, "[tdf]\nnamespace=FromFile\n[redis]\npassword=file\n")
	t.Setenv("TDF_CFG_REDIS_PASSWORD", " variable ")
	tool, err1 := LoadTool(path, os.Environ())
	worker, err2 := LoadWorker(path)
	manager, err3 := LoadManager(path)
	expect.NoError(t, err1)
	expect.NoError(t, err2)
	expect.NoError(t, err3)
	for _, r := range []Redis{tool.Server.Redis, worker.Redis, manager.Redis} {
		expect.Equal(t, r.Password, " variable ", "password … not the variable's")
	}
	expect.Equal(t, tool.Server.Namespace, "FromFile", "namespace")
	t.Setenv("TDF_CFG_TDF_NAMESPACES", "M FromFile")
	_, err := LoadManager(path)
	wantError(t, err, "TDF_CFG_TDF_NAMESPACES: a manager works in one namespace; expected namespace")
}

func TestDefaultsReadTheEnvironment(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("TDF_CFG_WORKER_GRACE", "inf")
	t.Setenv("TDF_CFG_TDF_NAMESPACE", "Other")
	worker, err := DefaultWorker("N")
	expect.NoError(t, err)
	expect.Equal(t, worker.Grace, Forever)
	expect.Equal(t, worker.Namespace, "Other")
	_, err = DefaultManager("two words")
	wantError(t, err, `(no file): [tdf] namespace: "two words" is not a name of 1 to 200 bytes without spaces or parts like :task`)
}

func TestInvalidVariables(t *testing.T) {
	for variable, want := range map[string]string{
		"TDF_CFG_REDIS_PASSWRD=hunter2":      "TDF_CFG_REDIS_PASSWRD: unknown key; expected TDF_CFG_$SECTION_$KEY in upper case, such as TDF_CFG_REDIS_HOST",
		"TDF_CFG_redis_password=hunter2":     "TDF_CFG_redis_password: unknown key; expected TDF_CFG_$SECTION_$KEY in upper case, such as TDF_CFG_REDIS_HOST",
		"TDF_CFG_=":                          "TDF_CFG_: unknown key; expected TDF_CFG_$SECTION_$KEY in upper case, such as TDF_CFG_REDIS_HOST",
		"TDF_CFG_REDIS_PASSWORD=None # none": "TDF_CFG_REDIS_PASSWORD: the value is not a password, or None for none (a comment needs its own line)",
		"TDF_CFG_REDIS_PORT=":                `TDF_CFG_REDIS_PORT: "" is not a whole number from 1 to 65535`,
		"TDF_CFG_TDF_NAMESPACE=":             `TDF_CFG_TDF_NAMESPACE: "" is not a name of 1 to 200 bytes without spaces or parts like :task`,
	} {
		_, err := load(source, []byte(minimal), []string{variable})
		wantError(t, err, want)
	}
	mustLoad(t, minimal, "TDF_OTHER=1", "tdf_cfg_x=1", "=C:=x", "")
}

// An invalid value in the file is an error even if an environment variable overrides it.
func TestOverriddenKeysAreChecked(t *testing.T) {
	_, err := load(source, []byte(minimal+"[redis]\nport=x\n"), []string{"TDF_CFG_REDIS_PORT=1"})
	wantError(t, err, `some.cfg: [redis] port: "x" is not a whole number from 1 to 65535`)
}

func TestKeysThatDependOnEachOther(t *testing.T) {
	for _, c := range []struct{ file, variable, want string }{
		{"[redis]\ntls_cert=/c.pem\ntls_key=/k.pem", "", "some.cfg: [redis] tls_cert: is set but tls is False; expected tls=True, or no tls_cert"},
		{"[redis]\ntls=True\ntls_cert=/c.pem", "", "some.cfg: [redis] tls_key: is set without tls_cert, or missing; expected both, or none"},
		{"[redis]\ntls_ca=/ca.pem", "", "some.cfg: [redis] tls_ca: is set but tls is False; expected tls=True, or no tls_ca"},
		{"[redis]\nreplicas=1", "TDF_CFG_REDIS_HOST=embedded", "some.cfg: [redis] replicas: the embedded Redis has no replicas; expected 0"},
		{"[redis]\nsentinels=m@s:26379", "TDF_CFG_REDIS_HOST=embedded", "TDF_CFG_REDIS_HOST: is set together with sentinels; expected one of them"},
		{"[redis]\ncluster=c:1\nsentinels=m@s:26379", "", "some.cfg: [redis] cluster: is set together with sentinels; expected one of them"},
		{"[redis]\ncluster=c:1", "TDF_CFG_REDIS_HOST=h", "TDF_CFG_REDIS_HOST: is set together with cluster; expected one of them"},
		{"[redis]\ncluster=c:1\ndb=1", "", "some.cfg: [redis] db: is set together with cluster, which has only one database; expected 0"},
		{"[redis]\ncluster=c:1", "TDF_CFG_TDF_NAMESPACE=}", "TDF_CFG_TDF_NAMESPACE: } begins with }, so it cannot become a hash tag of the cluster; expected another name"},
		{"[redis]\ncluster=c:1", "TDF_CFG_TDF_NAMESPACES=N }", "TDF_CFG_TDF_NAMESPACES: } begins with }, so it cannot become a hash tag of the cluster; expected another name"},
		{"[redis]\ncluster=c:1", "TDF_CFG_TDF_NAMESPACES=N a {a}", "TDF_CFG_TDF_NAMESPACES: a and {a} are the same namespace in a cluster; expected one of them"},
		{"", "TDF_CFG_TDF_NAMESPACES=a b", "TDF_CFG_TDF_NAMESPACES: lacks namespace, N; expected only one of the two keys"},
		{"[redis]\ntls=True", "TDF_CFG_REDIS_HOST=embedded", "some.cfg: [redis] tls: the embedded Redis, or one on a socket, has no TLS; expected False"},
		{"[redis]\ntls=True", "TDF_CFG_REDIS_HOST=/r.sock", "some.cfg: [redis] tls: the embedded Redis, or one on a socket, has no TLS; expected False"},
		{"[redis]\nsentinels=m@s:26379", "TDF_CFG_REDIS_HOST=/r.sock", "TDF_CFG_REDIS_HOST: is set together with sentinels; expected one of them"},
		{"", "TDF_CFG_REDIS_TLS_SERVER_NAME=r", "TDF_CFG_REDIS_TLS_SERVER_NAME: is set but tls is False; expected tls=True, or no tls_server_name"},
		{"[http]\ntls_cert=c", "", "some.cfg: [http] tls_cert: is set but tls_key is not; expected both, or none"},
		{"", "TDF_CFG_HTTP_TLS_KEY=k", "TDF_CFG_HTTP_TLS_KEY: is set but tls_cert is not; expected both, or none"},
		{"[http]\nclient_ca=ca", "", "some.cfg: [http] client_ca: is set but tls_cert is not; expected tls_cert and tls_key, or no client_ca"},
		{"[task_defaults]\nstart_after=5\nend_before=5", "", "some.cfg: [task_defaults] end_before: not after start_after, so that no task could run; expected a later time, or inf"},
	} {
		_, err := load(source, []byte(minimal+c.file), []string{c.variable})
		wantError(t, err, c.want)
	}
}

// A worker uses either Redis or the API, and its token stays secret.
func TestAPIOfAWorker(t *testing.T) {
	const api, token = "[worker]\napi=https://tdf.example\n", "api_token_file=/t\n"
	for file, want := range map[string]string{
		api + token + "api_ca=/ca.pem": "", "[worker]\napi=http://127.0.0.1:1\n" + token: "", "[worker]\napi=http://localhost:1\n" + token: "",
		"[worker]\napi=\napi_token_file=\napi_ca=\n": "", // as in configs/worker.cfg
		api:                              "[worker] api: is set but api_token_file is not",
		"[worker]\n" + token:             "[worker] api_token_file: is set but api is not",
		"[worker]\napi_ca=/ca.pem":       "[worker] api_ca: is set but api is not",
		"namespaces=N,M\n" + api + token: "[tdf] namespaces: is set beside [worker] api",
		"[redis]\nhost=localhost\n" + api + token:          "[redis] host: is set beside [worker] api",
		"[redis]\npassword=secret\n" + api + token:         "[redis] password: is set beside [worker] api",
		"[worker]\napi=http://tdf.example\n" + token:       "has no TLS, and is not a loopback address",
		"[worker]\napi=http://10.0.0.1:80\n" + token:       "has no TLS, and is not a loopback address",
		"[worker]\napi=http://[::1]:1\napi_ca=a\n" + token: "has no TLS; expected https://",
		api + token + "lease=0.5":                          "[worker] lease: with api, expected 1 to 300 s",
		api + token + "lease=301":                          "[worker] lease: with api, expected 1 to 300 s",
		"namespaces=N,M\n[worker]\nmetrics_listen=:1\n":    "[worker] metrics_listen: is set beside [tdf] namespaces",
		api + token + "metrics_listen=127.0.0.1:0":         "[worker] metrics_listen: metrics come from Redis",
	} {
		s := expect.Result(load(source, []byte(minimal+file), nil)).Value(t)
		_, err := s.forWorker()
		if want == "" {
			expect.NoError(t, err, file)
			continue
		}
		expect.Fails(t, err, want)
		expect.True(t, !strings.Contains(err.Error(), "secret"), err)
	}
}

// Each path of an interface must lead to this interface, and to no route of the API.
func TestPrefixesOfInterfaces(t *testing.T) {
	for _, text := range []string{
		"tm", "/tm/", "//", "//tm", "/tm//x", "/./tm", "/../tm", "/tm/..", "/t m", "/tm?x", "/tm#x", "/%2e", "/{id}", "/tm\\x", "http://h/", "/é", "/" + strings.Repeat("x", 100),
		"/api", "/api/v1", "/metrics", "/docs/x", "/openapi.json", "/tasks", "/actuator/x", "/task/1",
	} {
		_, err := load(source, []byte(minimal), []string{"TDF_CFG_HTTP_TASKSTORE=" + text})
		wantError(t, err, "TDF_CFG_HTTP_TASKSTORE: "+quote(text)+" is not "+find("http", "taskstore").kind.want)
	}
	for _, c := range []struct{ taskmaster, taskstore, want string }{
		{"/", "/", `"/" meets taskmaster=/`}, {"/x", "/x", `"/x" meets taskmaster=/x`}, {"/x", "/x/y", `"/x/y" meets taskmaster=/x`}, {"/x/y", "/x", `"/x" meets taskmaster=/x/y`},
	} {
		_, err := load(source, []byte(minimal+"[http]\ntaskmaster="+c.taskmaster+"\ntaskstore="+c.taskstore), nil)
		wantError(t, err, "some.cfg: [http] taskstore: "+c.want+"; expected paths of its own")
	}
	for _, prefixes := range []string{"taskmaster=/\ntaskstore=/ts\nskuld=/skuld", "taskmaster=/x\ntaskstore=/xy\nskuld=/", "taskmaster=\ntaskstore=\nskuld="} {
		mustLoad(t, minimal+"[http]\n"+prefixes)
	}
	_, err := load(source, []byte(minimal+"[http]\ntaskmaster_stale=120"), nil)
	const problem = "some.cfg: [http] taskmaster_dead: is not above taskmaster_stale; expected a longer time, from 1 to 300 s"
	wantError(t, err, problem)
	for _, keys := range []string{"taskmaster_dead=301", "taskmaster_stale=0.1\ntaskmaster_dead=0.5"} {
		_, err := load(source, []byte(minimal+"[http]\n"+keys), nil)
		wantError(t, err, problem)
	}
}

// On an address that other machines can reach, the API needs TLS, or a key that says that it needs none.
func TestAddressesWithoutTLS(t *testing.T) {
	const pair = "\ntls_cert=c\ntls_key=k"
	for listen, reachable := range map[string]bool{
		"127.0.0.1:80": false, "localhost:0": false, "[::1]:80": false, "127.9.9.9:80": false, "[::ffff:127.0.0.1]:1": false,
		":80": true, "0.0.0.0:80": true, "[::]:80": true, "10.0.0.1:80": true, "example.org:80": true, "localhost.example.org:80": true, "LOCALHOST.:80": true, "127.1:80": true,
	} {
		_, err := load(source, []byte(minimal+"[http]\nlisten="+listen), nil)
		if !reachable {
			expect.NoError(t, err)
			continue
		}
		wantError(t, err, "some.cfg: [http] listen: "+quote(listen)+" is not a loopback address; expected tls_cert and tls_key, or insecure=True behind a proxy that has TLS")
		for _, allowed := range []string{pair, "\ninsecure=True"} {
			mustLoad(t, minimal+"[http]\nlisten="+listen+allowed)
		}
	}
}

func TestEmbeddedIsOnlyForTheServer(t *testing.T) {
	clearEnvironment(t)
	path := write(t, minimal+"[redis]\nhost=embedded\nport=7000\n")
	server := expect.Result(LoadTool(path, nil)).Value(t).Server
	expect.True(t, server.Redis.Embedded(), "redis", server.Redis, "error")
	expect.Equal(t, server.Redis.Addr(), "127.0.0.1:7000")
	const problem = `"embedded" is only for the server; expected the address of Redis, such as 127.0.0.1`
	for _, name := range []string{"worker", "manager"} {
		wantError(t, loaders[name](path), path+": [redis] host: "+problem)
	}
	t.Setenv("TDF_CFG_REDIS_HOST", "127.0.0.1")
	worker := expect.Result(LoadWorker(path)).Value(t)
	expect.True(t, !worker.Redis.Embedded(), "with an environment variable for the host: redis", worker.Redis, "error")
}

func TestAddr(t *testing.T) {
	for host, want := range map[string]string{"localhost": "localhost:6379", "::1": "[::1]:6379", "10.0.0.1": "10.0.0.1:6379"} {
		expect.Equal(t, (Redis{Host: host, Port: 6379}).Addr(), want, "address of", host)
	}
	at := Redis{Host: "localhost", Port: 6379, Master: "m", Sentinels: []string{"127.0.0.1:1", "s:2"}}
	expect.Equal(t, at.String(), "master m of sentinels 127.0.0.1:1, s:2 db 0")
	expect.True(t, !at.Local(), "Local with a sentinel on another machine")
	at.Sentinels[1] = "localhost:2"
	expect.True(t, at.Local(), "Local")
	at = Redis{Cluster: []string{"127.0.0.1:1", "c:2"}}
	expect.Equal(t, at.Addr(), "cluster 127.0.0.1:1, c:2")
	expect.True(t, !at.Local(), "Local with a node on another machine")
}

// A printed or logged configuration never shows the password.
func TestPasswordIsNotPrinted(t *testing.T) {
	const secret = "hunter2"
	server := mustLoad(t, minimal+"[redis]\nusername=ann\ntls=on\npassword="+secret+"\nsentinel_password="+secret).server
	asJSON := expect.Result(json.Marshal(server)).Value(t)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "server", server, "redis", server.Redis)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "server", server, "redis", server.Redis)
	for _, text := range []string{
		fmt.Sprint(server), fmt.Sprintf("%+v", server), fmt.Sprintf("%#v", server), string(asJSON), log.String(),
	} {
		expect.True(t, !strings.Contains(text, secret), "the password is in", text)
	}
	expect.Equal(t, server.Redis.String(), "ann@localhost:6379 db 0 (TLS)", "String")
}

func TestLocate(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("TDF_CFG_WORKER_DIRECTORY", "")
	for want, e := range map[string]*Error{
		"TDF_CFG_WORKER_DIRECTORY: invalid": {Section: "worker", Key: "directory", Problem: "invalid"},
		"some.cfg: [worker] user: invalid":  {Section: "worker", Key: "user", Problem: "invalid"},
		"some.cfg: invalid":                 {Problem: "invalid"},
	} {
		e.Locate(source)
		wantError(t, e, want)
	}
}
