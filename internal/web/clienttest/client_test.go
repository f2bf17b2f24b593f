package clienttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // the generated client needs it
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tdf-framework/tdf/internal/access"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/redistest"
	"github.com/tdf-framework/tdf/internal/testspace"
	"github.com/tdf-framework/tdf/internal/web"
	"github.com/tdf-framework/tdf/internal/webtest"
	"github.com/tdf-framework/tdf/manager"
)

// serve serves the API of a new namespace, and returns its address.
func serve(t *testing.T) (*manager.Manager, string) {
	t.Helper()
	cfg := testspace.Config(t, redistest.Shared(t))
	m := testspace.Manager(t, cfg)
	api := httptest.NewServer(web.New(m, web.Options{Timeout: time.Hour}))
	t.Cleanup(api.Close)
	webtest.RunServer(t, cfg)
	return m, api.URL
}

func document(t *testing.T, url string) []byte {
	t.Helper()
	answer := expect.Result(http.Get(url + "/openapi.json")).Value(t)
	defer answer.Body.Close()
	return expect.Result(io.ReadAll(answer.Body)).Value(t)
}

// The document follows the schema of OpenAPI 3.1, which the OpenAPI Initiative publishes.
func TestDocumentIsValid(t *testing.T) {
	_, url := serve(t)
	const file = "testdata/openapi-3.1.json"
	compiler := jsonschema.NewCompiler()
	text := expect.Result(os.Open(file)).Value(t)
	defer text.Close()
	expect.NoError(t, compiler.AddResource(file, expect.Result(jsonschema.UnmarshalJSON(text)).Value(t)))
	schema := expect.Result(compiler.Compile(file)).Value(t)
	valid := document(t, url)
	expect.NoError(t, schema.Validate(expect.Result(jsonschema.UnmarshalJSON(bytes.NewReader(valid))).Value(t)))
	for _, wrong := range [][2]string{{`"openapi":"3.1.0"`, `"openapi":"3"`}, {`"paths":`, `"pahts":`}, {`"in":"query"`, `"in":"body"`}, {`"scheme":"bearer",`, ``}} {
		invalid := bytes.Replace(valid, []byte(wrong[0]), []byte(wrong[1]), 1)
		err := schema.Validate(expect.Result(jsonschema.UnmarshalJSON(bytes.NewReader(invalid))).Value(t))
		expect.True(t, err != nil, wrong, "is not noticed")
	}
}

// A client that oapi-codegen generates from the document takes a task through its life: testdata/life/main.go. With
// empty caches, this needs 20 s of CPU time to compile oapi-codegen and the client.
func TestGeneratedClient(t *testing.T) {
	m, url := serve(t)
	token := func(name string, role access.Role) string {
		return webtest.AddToken(t, m, access.Token{Name: name, Role: role})
	}
	dir := t.TempDir()
	spec, client, overlay := filepath.Join(dir, "openapi.json"), filepath.Join(dir, "client.go"), filepath.Join(dir, "overlay.json")
	expect.NoError(t, os.WriteFile(spec, downgrade(document(t, url)), 0o600))
	run(t, nil, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", client, spec)
	here := expect.Result(os.Getwd()).Value(t)
	files := map[string]map[string]string{"Replace": {
		filepath.Join(here, "client", "client.go"): client,
		filepath.Join(here, "life", "main.go"):     filepath.Join(here, "testdata", "life", "main.go"),
	}}
	expect.NoError(t, os.WriteFile(overlay, expect.Result(json.Marshal(files)).Value(t), 0o600))
	env := []string{"TDF_API=" + url, "TDF_OPERATOR=" + token("operator", access.Operator), "TDF_WORKER=" + token("worker", access.Worker)}
	got := run(t, env, "go", "run", "-overlay", overlay, "./life")
	expect.Equal(t, got, "opened, claimed, completed, read, archived, removed\n")
}

// downgrade makes the document one of OpenAPI 3.0, because oapi-codegen reads no types with null.
func downgrade(document []byte) []byte {
	return []byte(strings.NewReplacer(`"type":["array","null"]`, `"type":"array","nullable":true`, `"openapi":"3.1.0"`, `"openapi":"3.0.3"`).Replace(string(document)))
}

func run(t *testing.T, env []string, command string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), command, args...)
	c.Env = append(os.Environ(), env...)
	var problems bytes.Buffer
	c.Stderr = &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c, err, problems.String())
	}
	return string(out)
}
