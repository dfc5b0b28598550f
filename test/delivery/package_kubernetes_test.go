package delivery

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/zklock/zklock/test/harness"
)

// TestKubernetesExampleIsValid checks that Kubernetes knows every field of the example, that
// labels and secrets match, and that zklock accepts the command line.
func TestKubernetesExampleIsValid(t *testing.T) {
	b, err := os.ReadFile("../../packaging/kubernetes/one-active.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment apps.Deployment
	var secret core.Secret
	docs := bytes.Split(b, []byte("\n---\n"))
	if len(docs) != 2 {
		t.Fatalf("%d documents", len(docs))
	}
	for i, into := range []any{&deployment, &secret} {
		if err := yaml.UnmarshalStrict(docs[i], into); err != nil {
			t.Errorf("document %d: %v", i+1, err)
		}
	}
	if deployment.Kind != "Deployment" || deployment.APIVersion != "apps/v1" || secret.Kind != "Secret" || secret.APIVersion != "v1" {
		t.Errorf("kinds %s and %s", deployment.Kind, secret.Kind)
	}
	pod := deployment.Spec.Template
	for key, value := range deployment.Spec.Selector.MatchLabels {
		if pod.Labels[key] != value {
			t.Errorf("the selector asks for %s=%s, which the pods do not have", key, value)
		}
	}
	if n := *deployment.Spec.Replicas; n < 2 {
		t.Errorf("%d replicas leave no follower", n)
	}
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Spec.Containers))
	}
	c := pod.Spec.Containers[0]
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		ref := e.ValueFrom.SecretKeyRef
		if ref.Name != secret.Name || secret.StringData[ref.Key] == "" {
			t.Errorf("%s comes from %s of %s, which is not there", e.Name, ref.Key, ref.Name)
		}
	}
	line := slices.Concat(c.Command, c.Args)
	dash := slices.Index(line, "--")
	if line[0] != "zklock" || dash < 0 || !strings.Contains(strings.Join(line[dash:], " "), "/billing") {
		t.Fatalf("the pods run %q", line)
	}
	// Run true instead of the service, on a local server.
	args := append(slices.Clone(line[1:dash+1]), "true")
	cmd := command(t, harness.Command(t), args...)
	cmd.Env = append(cmd.Env, "ZKLOCK_HOME="+t.TempDir()+"/zklock", "ZKLOCK_IDLE=1s", "ZKLOCK_AUTH="+secret.StringData["auth"])
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("zklock %q: %v\n%s", args, err, out)
	}
}
