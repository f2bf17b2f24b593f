// Command life takes a task through its life with a generated client. It prints what it has done, and ends with an
// error if an answer is not as the document says.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/web/clienttest/client"
)

// kind is the type of the bodies that are a task or a list of tasks. The generator has no usable type for these.
const kind = "application/json"

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	operator, worker := newClient("TDF_OPERATOR"), newClient("TDF_WORKER")
	const definition = `{"program":"square","input":"12","max_fails":1,"meta":"x"}`
	opened, err := operator.OpenTasksWithBodyWithResponse(ctx, &client.OpenTasksParams{}, kind,
		strings.NewReader(definition))
	check(err, opened.JSON201 != nil && len(*opened.JSON201.Ids) == 1, opened)
	id := (*opened.JSON201.Ids)[0]

	programs := []string{"square"}
	registered, err := worker.RegisterWorkerWithResponse(ctx, &client.RegisterWorkerParams{},
		client.Registration{Name: "w", Programs: &programs})
	check(err, registered.JSON200 != nil, registered)
	session, wait := registered.JSON200.Session, 30.0
	claimed, err := worker.ClaimTasksWithResponse(ctx, session, client.ClaimRequest{Wait: &wait})
	check(err, claimed.JSON200 != nil && len(*claimed.JSON200.Tasks) == 1, claimed)
	task := (*claimed.JSON200.Tasks)[0]
	check(nil, task.Id == id && *task.Input == "12", task)

	report := fmt.Sprintf(`{"id":%d,"round":%d,"claim":%q,"action":"complete","result":{"square":144},"open":[{"input":"13"}]}`, task.Id, task.Round, task.Claim)
	reported, err := worker.ReportRoundsWithBodyWithResponse(ctx, session, kind, strings.NewReader(report))
	check(err, reported.JSON200 != nil && len(*reported.JSON200.Reports) == 1, reported)

	awaitSuccess(ctx, operator, id)
	stream := client.GetOutputParamsStream("result")
	result, err := operator.GetOutputWithResponse(ctx, id, &client.GetOutputParams{Stream: &stream})
	check(err, strings.TrimSpace(string(result.Body)) == `{"square":144}`, result)
	states := []string{"open"}
	next, err := operator.ListTasksWithResponse(ctx, &client.ListTasksParams{States: &states})
	check(err, next.JSON200 != nil && len(*next.JSON200.Tasks) == 1 && (*next.JSON200.Tasks)[0].Id == id+1, next)

	for _, action := range []client.ActOnTaskParamsAction{"archive", "remove"} {
		acted, err := operator.ActOnTaskWithResponse(ctx, id, action, &client.ActOnTaskParams{},
			client.ActOnTaskJSONRequestBody{})
		check(err, acted.JSON200 != nil && acted.JSON200.Done == 1, acted)
	}
	gone, err := operator.GetTaskWithResponse(ctx, id)
	check(err, gone.ApplicationproblemJSONDefault != nil && gone.ApplicationproblemJSONDefault.Code == "not_found",
		gone)
	refused, err := worker.GetStatsWithResponse(ctx)
	check(err, refused.ApplicationproblemJSONDefault != nil &&
		refused.ApplicationproblemJSONDefault.Status == http.StatusForbidden, refused)
	fmt.Println("opened, claimed, completed, read, archived, removed")
}

// newClient returns a client with the token in an environment variable.
func newClient(token string) *client.ClientWithResponses {
	authorize := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv(token))
		return nil
	}
	c, err := client.NewClientWithResponses(os.Getenv("TDF_API"), client.WithRequestEditorFn(authorize))
	check(err, c != nil, "")
	return c
}

// awaitSuccess returns when the server has settled the task.
func awaitSuccess(ctx context.Context, c *client.ClientWithResponses, id int64) {
	for {
		read, err := c.GetTaskWithResponse(ctx, id)
		check(err, read.JSON200 != nil && slices.Contains([]string{"executed", "succeeded"}, read.JSON200.State), read)
		if read.JSON200.State == "succeeded" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// check ends the program if a call failed, or its answer is wrong.
func check(err error, right bool, answer any) {
	if err != nil || !right {
		log.Fatalf("%v: %+v", err, answer)
	}
}
