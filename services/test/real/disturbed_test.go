package real_test

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// seat is a resource of which node1 has one.
const seat = "example.org/seat"

// makeSeat gives node1 a seat, and makes a class of priority for those who may take it from others.
func (w fixture) makeSeat(t *testing.T) {
	t.Helper()
	w.cluster.Run(t, "patch", "node", "node1", "--subresource=status", "--type=json",
		"-p", `[{"op":"add","path":"/status/capacity/example.org~1seat","value":"1"}]`)
	class := "takes-seats-" + w.scope
	w.cluster.Apply(t, fmt.Sprintf(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":%q},"value":1000}`, class))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := w.cluster.Try(ctx, "delete", "priorityclass", class); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// takeSeat creates a pod of higher priority that needs the seat of the run's pod.
func takeSeat(ctx context.Context, w fixture, _ string) error {
	return w.create(ctx, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"takes-the-seat","namespace":%q},"spec":{
"priorityClassName":"takes-seats-%s","terminationGracePeriodSeconds":1,
"containers":[{"name":"sits","image":"debian:12-slim","command":["sleep","600"],"resources":{"limits":{%q:"1"}}}]}}`, w.scope, w.scope, seat))
}

// volumeOfClaim mounts a claim whose volume is a folder that no node has.
const volumeOfClaim = `[[volumes]]
path = "/mnt/claim"
claim = "of-a-folder"`

// makeClaim makes the claim of volumeOfClaim.
func (w fixture) makeClaim(t *testing.T) {
	t.Helper()
	volume := "folder-" + w.scope
	w.cluster.Apply(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":%[1]q},"spec":{"capacity":{"storage":"1Mi"},"accessModes":["ReadWriteMany"],
 "storageClassName":"","persistentVolumeReclaimPolicy":"Retain","hostPath":{"path":"/no/such/folder","type":"Directory"},
 "claimRef":{"namespace":%[2]q,"name":"of-a-folder"}}},
{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"of-a-folder","namespace":%[2]q},"spec":{"accessModes":["ReadWriteMany"],
 "storageClassName":"","volumeName":%[1]q,"resources":{"requests":{"storage":"1Mi"}}}}]}`, volume, w.scope))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		if out, err := w.cluster.Try(ctx, "delete", "persistentvolume", volume, "--wait=false"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// create creates an object from its text.
func (w fixture) create(ctx context.Context, text string) error {
	f, err := os.CreateTemp(sharedBuild.dir, "object")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if out, err := w.cluster.Try(ctx, "create", "-f", f.Name()); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
