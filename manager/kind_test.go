package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/manager/managertest"
	"github.com/tdf-framework/tdf/worker"
	"github.com/tdf-framework/tdf/worker/workertest"
)

// A Host is the input of the program lookup.
type Host struct{ Name string }

func (h Host) Validate() error {
	if h.Name == "" {
		return errors.New("the host has no name")
	}
	return nil
}

const addressesOf = tdf.Kind[Host, []string]("lookup")

// resolve is the function of the worker: worker.HandleKind(addressesOf, resolve).
func resolve(ctx context.Context, r *worker.Round, h Host) ([]string, error) {
	return net.DefaultResolver.LookupHost(ctx, h.Name)
}

// printAddresses opens a task for each host, and prints the addresses.
func printAddresses(ctx context.Context, m *manager.Manager, w io.Writer, hosts ...Host) error {
	var tasks []manager.Definition
	for _, h := range hosts {
		d, err := addressesOf.Define(h)
		if err != nil {
			return err
		}
		d.Group = "hosts"
		tasks = append(tasks, d)
	}
	if _, err := m.Open(ctx, tasks...); err != nil {
		return err
	}
	return m.Run(ctx, manager.Callbacks{
		Groups: []string{"hosts"},
		Succeeded: manager.ForKind(addressesOf, func(ctx context.Context, t *manager.Finished, addresses []string) error {
			_, err := fmt.Fprintln(w, addresses)
			return err
		}),
	})
}

func TestKind(t *testing.T) {
	t.Parallel()
	tm := managertest.New(t)
	tm.Program("lookup", func(r managertest.Run) managertest.Result {
		ended := workertest.Run(t.Context(), worker.ForKind(addressesOf, resolve), workertest.Task{Input: r.Task.Input})
		return managertest.Result{JSON: ended.JSON, Error: ended.Error}
	})
	var printed strings.Builder
	expect.NoError(t, printAddresses(t.Context(), tm.Manager, &printed, Host{"127.0.0.1"}, Host{"::1"}))
	expect.Equal(t, printed.String(), "[127.0.0.1]\n[::1]\n")
	err := printAddresses(t.Context(), tm.Manager, &printed, Host{})
	expect.Fails(t, err, "input of lookup: the host has no name")
	expect.Equal(t, tdf.CodeOf(err), tdf.CodeInvalid)
	expect.Result(tdf.Kind[func(), int]("f").Define(nil)).Fails(t, "input of f: json: unsupported type")
}

func TestKindOfInvalidTexts(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"Name": 5}`: "input of lookup: json: cannot unmarshal number",
		`{}`:          "input of lookup: the host has no name",
		"":            "input of lookup: unexpected end of JSON input",
	} {
		ended := workertest.Run(t.Context(), worker.ForKind(addressesOf, resolve), workertest.Task{Input: input})
		expect.Fails(t, ended.Err, want)
		expect.True(t, ended.Permanent, input)
	}
	tm := managertest.New(t)
	tm.Program("lookup", func(managertest.Run) managertest.Result { return managertest.Result{JSON: `"text"`} })
	expect.Result(tm.Manager.Open(t.Context(), define("lookup", source, ""))).OK(t)
	err := tm.Manager.Run(t.Context(), manager.Callbacks{
		AllGroups: true, Attempts: 1,
		Succeeded: manager.ForKind(addressesOf, func(context.Context, *manager.Finished, []string) error { return nil }),
	})
	expect.Fails(t, err, "result of lookup: json: cannot unmarshal string")
	expect.True(t, errors.Is(err, manager.ErrGivenUp), err)
}

func TestCallbacksByProgram(t *testing.T) {
	t.Parallel()
	tm, _ := newTester(t)
	tm.Program("other", func(managertest.Run) managertest.Result { return managertest.Result{} })
	var called []string
	note := func(name string) manager.Callback {
		return func(_ context.Context, f *manager.Finished) error {
			called = append(called, fmt.Sprint(name, " ", f.Program))
			return nil
		}
	}
	expect.Result(tm.Manager.Open(t.Context(), define("p", source, "x"), define("other", source, ""))).OK(t)
	for _, otherwise := range []manager.Callback{note("otherwise"), nil} {
		expect.Result(tm.Manager.Retry(t.Context(), manager.Changes{}, manager.ByIDs(1, 2)...)).Value(t)
		run(t, tm.Manager, manager.Callbacks{
			AllGroups: true, Succeeded: manager.ByProgram(map[string]manager.Callback{"p": note("p")}, otherwise),
		})
	}
	expect.Equal(t, called, []string{"p p", "otherwise other", "p p"})
}
