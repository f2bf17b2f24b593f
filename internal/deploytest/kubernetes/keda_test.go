package kubernetes

import (
	batch "k8s.io/api/batch/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A scaledJob has the fields of KEDA's ScaledJob (keda.sh/v1alpha1, KEDA 2.21) that are in use here. KEDA's own Go type needs
// some 600 packages, which take minutes to compile.
type scaledJob struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec struct {
		JobTargetRef               *batch.JobSpec `json:"jobTargetRef"`
		PollingInterval            int32          `json:"pollingInterval"`
		SuccessfulJobsHistoryLimit int32          `json:"successfulJobsHistoryLimit"`
		FailedJobsHistoryLimit     int32          `json:"failedJobsHistoryLimit"`
		MinReplicaCount            int32          `json:"minReplicaCount"`
		MaxReplicaCount            int32          `json:"maxReplicaCount"`
		ScalingStrategy            struct {
			Strategy string `json:"strategy"` // default, custom, accurate or eager
		} `json:"scalingStrategy"`
		Triggers []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}
