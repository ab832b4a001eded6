package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/descriptors/manifest"
)

const job = `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 3
  template:
    spec:
      containers: [{name: a, image: b}]
`

func TestDocumentsAreReadAsJSONHasThem(t *testing.T) {
	all, problems := manifest.Read("# nothing\n---\n" + `apiVersion: v1
kind: ConfigMap
metadata: {generateName: "c-"}
data:
  mode: "0644"
octal: 0644
float: 1.5
when: 2026-01-02T03:04:05Z
yes: yes
none: ~
list: [1, true]
`)
	if len(problems) > 0 || len(all) != 1 {
		t.Fatalf("%v %v", all, problems)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "c-"}, "data": map[string]any{"mode": "0644"},
		"octal": int64(420), "float": 1.5, "when": "2026-01-02T03:04:05Z", "yes": "yes", "none": nil, "list": []any{int64(1), true},
	}
	if diff := cmp.Diff(want, all[0].Object); diff != "" {
		t.Error(diff)
	}
	if all[0].Name() != "c" || all[0].ResourceKind() != "ConfigMap.v1" || !all[0].OfPlatform() {
		t.Errorf("%q %q", all[0].Name(), all[0].ResourceKind())
	}
}

func TestAnEmptyTextIsAProblem(t *testing.T) {
	for _, text := range []string{"", "---\n---\n", "# nothing"} {
		if all, problems := manifest.Read(text); len(all) > 0 || len(problems) != 1 {
			t.Errorf("%q: %v %v", text, all, problems)
		}
	}
	if _, problems := manifest.Read(strings.Repeat("---\n{kind: A}\n", manifest.MaxDocuments+1)); !strings.Contains(problems[0].Message, "33 documents") {
		t.Error(problems)
	}
}

func TestPodsAreThoseOfEveryReplicaType(t *testing.T) {
	for name, row := range map[string]struct {
		text   string
		counts []int
	}{
		"of a Job, its parallelism": {job, []int{3}},
		"of a PyTorchJob, each type by its name": {
			"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {pytorchReplicaSpecs: {Worker: {replicas: 4, template: {}}, Master: {template: {}}}}",
			[]int{1, 4},
		},
		"of a JobSet, the product": {
			"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec: {replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 3, template: {}}}}]}",
			[]int{6},
		},
		"of a Workflow, none":         {"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}", nil},
		"of a Job without spec, none": {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}", nil},
		"of a Job with too many":      {strings.Replace(job, "3", "9999999999", 1), []int{1 << 16}},
	} {
		t.Run(name, func(t *testing.T) {
			all, problems := manifest.Read(row.text)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			kind, _ := manifest.Find(all[0].APIVersion(), all[0].Kind())
			var counts []int
			for _, pods := range kind.Pods(all[0].Object) {
				counts = append(counts, pods.Count)
			}
			if diff := cmp.Diff(row.counts, counts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryKindEndsAndOnlyOneHasItsName(t *testing.T) {
	names := map[string]bool{}
	for _, k := range manifest.Kinds() {
		if k.Succeeded.IsZero() || k.Failed.IsZero() || names[k.ResourceKind()] {
			t.Errorf("%s", k.ResourceKind())
		}
		names[k.ResourceKind()] = true
	}
}

func TestReferencesAreThoseToOtherObjects(t *testing.T) {
	all, _ := manifest.Read(job + `      imagePullSecrets: [{name: registry}]
      priorityClassName: high
      volumes:
      - {name: a, secret: {secretName: aws}}
      - {name: b, persistentVolumeClaim: {claimName: mine}}
      - {name: c, persistentVolumeClaim: {claimName: shared}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine}
`)
	var got []string
	for _, r := range manifest.References(all) {
		got = append(got, r.Kind+" "+r.Name)
	}
	if diff := cmp.Diff([]string{"Secret registry", "PriorityClass high", "Secret aws", "PersistentVolumeClaim shared"}, got); diff != "" {
		t.Error(diff)
	}
	all, _ = manifest.Read("{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: a}, spec: {s3: {accessKeySecret: {name: keys, key: k}}, podPriorityClassName: high}}")
	if r := manifest.References(all); len(r) != 2 || r[0].Name != "keys" || r[1].Kind != "PriorityClass" {
		t.Errorf("%+v", r)
	}
}

func TestASourceOfAClaimIsAReferenceToAClaim(t *testing.T) {
	const pod = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {volumes: [{name: d, ephemeral: {volumeClaimTemplate: {spec: %}}}]}}}\n"
	const source = "{accessModes: [ReadWriteOnce], dataSource: {kind: PersistentVolumeClaim, name: theirs}}"
	for name, text := range map[string]string{
		"of an ephemeral volume":       strings.Replace(pod, "%", source, 1),
		"as a reference":               strings.Replace(pod, "%", "{dataSourceRef: {apiGroup: '', kind: PersistentVolumeClaim, name: theirs}}", 1),
		"of a Workflow":                "{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: " + source + "}]}}",
		"of a StatefulSet":             "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: " + source + "}]}}",
		"of a claim among the objects": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: mine}, spec: " + source + "}",
	} {
		all, problems := manifest.Read(text)
		refs := manifest.References(all)
		if len(problems) > 0 || len(refs) != 1 || refs[0].Kind != "PersistentVolumeClaim" || refs[0].Name != "theirs" {
			t.Errorf("%s: %v %v", name, refs, problems)
		}
	}
	for name, spec := range map[string]string{
		"from a snapshot":                 "{dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: theirs}}",
		"from a populator":                "{dataSourceRef: {apiGroup: example.com, kind: PersistentVolumeClaim, name: theirs}}",
		"of a volume with a name":         "{accessModes: [ReadWriteOnce], volumeName: pv-1}",
		"of a volume with a label":        "{accessModes: [ReadWriteOnce], selector: {matchLabels: {team: b}}}",
		"from a claim of another group":   "{dataSource: {apiGroup: example.com, kind: PersistentVolumeClaim, name: theirs}}",
		"from a claim of another team":    "{dataSourceRef: {kind: PersistentVolumeClaim, name: theirs, namespace: other}}",
		"from a claim of the platform's":  "{dataSource: {kind: PersistentVolumeClaim, name: bai-r1-1-data}}",
		"from what says its name by list": "{dataSource: {kind: [PersistentVolumeClaim], name: theirs}}",
	} {
		if _, problems := manifest.Read(strings.Replace(pod, "%", spec, 1)); len(problems) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

func TestAnObjectOfTheManifestHidesNoReferenceThatKeepsItsName(t *testing.T) {
	all, _ := manifest.Read(job + `      priorityClassName: high
      volumes:
      - {name: a, secret: {secretName: aws}}
      - {name: b, persistentVolumeClaim: {claimName: theirs}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}}
---
{apiVersion: example.com/v1, kind: Secret, metadata: {name: aws}}
---
{apiVersion: example.com/v1, kind: PersistentVolumeClaim, metadata: {name: theirs}}
`)
	var got []string
	for _, r := range manifest.References(all) {
		got = append(got, r.Kind+" "+r.Name)
	}
	if diff := cmp.Diff([]string{"PriorityClass high", "Secret aws", "PersistentVolumeClaim theirs"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNothingHidesFromTheRules(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
	for name, text := range map[string]string{
		"in an argument that is no text":   head + "spec: {args: [{hostPath: {path: /}}]}",
		"in a value that is no text":       head + "spec: {value: {hostPath: {path: /}}}",
		"as a name in a list":              head + "spec: {secrets: [bai-other-1]}",
		"as a patch":                       head + "spec: {podSpecPatch: 'hostNetwork: true'}",
		"in a status":                      head + "status: {hostPath: {path: /}}",
		"as a node's port":                 "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: NodePort}}",
		"as a name elsewhere":              "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: example.com}}",
		"behind the data of a ConfigMap":   "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, other: {data: {hostPath: x}}}",
		"in the data of something else":    head + "data: {hostPath: x}",
		"by a privileged that is no bool":  head + "spec: {privileged: 'true'}",
		"by a label of a template of pods": head + "spec: {template: {metadata: {labels: {benchmark-ai.dev/run: other}}}}",
		"as another queue":                 head + "spec: {runPolicy: {schedulingPolicy: {queue: other}}}",
		"by the namespace of a template":   head + "spec: {template: {metadata: {namespace: other}}}",
		"by a token that is no bool":       head + "spec: {automountServiceAccountToken: 'true'}",
	} {
		if _, problems := manifest.Read(text); len(problems) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
	for name, text := range map[string]string{
		"a text of a program":      head + "spec: {command: [sh, bai-x], args: [bai-y], env: [{name: A, value: bai-z}]}",
		"a command that is a text": head + "spec: {command: bai-x}",
		"what is off":              head + "spec: {hostNetwork: false, privileged: false, automountServiceAccountToken: false}",
		"a Service of the cluster": "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}",
	} {
		if _, problems := manifest.Read(text); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestAWorkflowMakesNoObjectsBesideItsPods(t *testing.T) {
	const head = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\n"
	const resource = "resource: {action: create, manifest: 'kind: Pod'}"
	for name, text := range map[string]string{
		"by a template":                      head + "spec: {templates: [{name: main, " + resource + "}]}",
		"by a template within a step":        head + "spec: {templates: [{name: main, steps: [[{name: a, inline: {" + resource + "}}]]}]}",
		"by a template within a task":        head + "spec: {templates: [{name: main, dag: {tasks: [{name: a, inline: {" + resource + "}}]}}]}",
		"by the defaults of templates":       head + "spec: {templateDefaults: {" + resource + "}}",
		"by a template of the cluster":       head + "spec: {templates: [{name: main, steps: [[{name: a, templateRef: {name: b, template: c}}]]}]}",
		"by a hook of the cluster":           head + "spec: {hooks: {exit: {templateRef: {name: b, template: c, clusterScope: true}}}}",
		"by a workflow of the cluster":       head + "spec: {workflowTemplateRef: {name: b, clusterScope: true}}",
		"by a template for other workflows":  "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: a}\nspec: {templates: [{name: main, " + resource + "}]}",
		"by a template of a later version":   "apiVersion: argoproj.io/v1\nkind: Workflow\nmetadata: {name: a}\nspec: {templates: [{name: main, " + resource + "}]}",
		"by a key in capitals":               head + "spec: {templates: [{name: main, steps: [[{name: a, inline: {RESOURCE: {action: create}}}]]}]}",
		"by a key in other letters":          head + "spec: {templates: [{name: main, steps: [[{name: a, inline: {re\u017fource: {action: create}}}]]}]}",
		"by an account in capitals":          head + "spec: {templates: [{name: main, steps: [[{name: a, inline: {ServiceAccountName: admin}}]]}]}",
		"by a Secret with a Name":            head + "spec: {templates: [{name: main, steps: [[{name: a, inline: {s3: {accessKeySecret: {Name: keys}}}}]]}]}",
		"by a trigger that an event reaches": "apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nmetadata: {name: a}\nspec: {triggers: [{template: {k8s: {source: {resource: {kind: Pod}}}}}]}",
	} {
		if _, problems := manifest.Read(text); len(problems) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
	const field = "spec: {templates: [{name: main, container: {env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]}}]}"
	if _, problems := manifest.Read(head + field); len(problems) > 0 {
		t.Errorf("the name of a resource is not a template: %v", problems)
	}
	if _, problems := manifest.Read(head + "spec: {podMetadata: {labels: {Name: x, Resource: y}}}"); len(problems) > 0 {
		t.Errorf("a label is no key: %v", problems)
	}
}

func TestAWorkflowNamesNoObjectByAParameter(t *testing.T) {
	const head = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\n"
	const parameter = `"{{workflow.parameters.x}}"`
	for name, text := range map[string]string{
		"a Secret of a variable":         "spec: {templates: [{name: main, container: {env: [{name: A, valueFrom: {secretKeyRef: {name: %, key: k}}}]}}]}",
		"a Secret of all variables":      "spec: {templates: [{name: main, container: {envFrom: [{secretRef: {name: %}}]}}]}",
		"a Secret of a volume":           "spec: {volumes: [{name: a, secret: {secretName: %}}]}",
		"a Secret of a volume of many":   "spec: {volumes: [{name: a, projected: {sources: [{secret: {name: %}}]}}]}",
		"a Secret of an artifact":        "spec: {templates: [{name: main, inputs: {artifacts: [{name: a, s3: {accessKeySecret: {name: %, key: k}}}]}}]}",
		"a Secret of images":             "spec: {imagePullSecrets: [{name: %}]}",
		"a ConfigMap of a variable":      "spec: {templates: [{name: main, container: {env: [{name: A, valueFrom: {configMapKeyRef: {name: %, key: k}}}]}}]}",
		"a ConfigMap of a volume":        "spec: {volumes: [{name: a, configMap: {name: %}}]}",
		"a ConfigMap of a parameter":     "spec: {arguments: {parameters: [{name: a, valueFrom: {configMapKeyRef: {name: %, key: k}}}]}}",
		"a ConfigMap of artifacts":       "spec: {artifactRepositoryRef: {configMap: %}}",
		"a claim":                        "spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: %}}]}",
		"a claim with the data of a new": "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {dataSource: {kind: PersistentVolumeClaim, name: %}}}]}",
		"a new claim":                    "spec: {volumeClaimTemplates: [{metadata: {name: %}}]}",
		"a priority class":               "spec: {podPriorityClassName: %}",
		"a storage class":                "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: %}}]}",
		"a part of a name":               `spec: {volumes: [{name: a, secret: {secretName: "ba{{=sprig.lower('I')}}-x"}}]}`,
		"a label":                        "spec: {podMetadata: {labels: {%: other}}}",
		"a key of a map":                 "spec: {nodeSelector: {%: other}}",
	} {
		text = strings.ReplaceAll(text, "%", parameter)
		if _, problems := manifest.Read(head + text); len(problems) != 1 || !strings.Contains(problems[0].Message, "parameter") {
			t.Errorf("%s: %v", name, problems)
		}
	}
	for name, text := range map[string]string{
		"an image":              "spec: {templates: [{name: main, container: {image: %, args: [%], env: [{name: A, value: %}]}}]}",
		"a key of a ConfigMap":  "spec: {arguments: {parameters: [{name: a, valueFrom: {configMapKeyRef: {name: mine, key: %}}}]}}",
		"a step":                "spec: {templates: [{name: main, steps: [[{name: a, template: %, when: %, withParam: %}]]}]}",
		"an object of any kind": "spec: {volumes: [{name: a, secret: {secretName: %}}]}",
	} {
		text = head + strings.ReplaceAll(text, "%", parameter)
		if name == "an object of any kind" {
			text = strings.Replace(text, "argoproj.io", "example.com", 1)
		}
		if _, problems := manifest.Read(text); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestConditionsHoldAsTheyDoForKubectl(t *testing.T) {
	const text = `{"status": {"phase": "Error", "message": "exit 1", "finishedAt": "2026-01-02T03:04:05Z", "n": 3, "items": [{"ok": true}],
		"conditions": [{"type": "Ready", "status": "False"}, {"type": "Complete", "status": "True", "reason": "AllDone", "lastTransitionTime": "2026-01-02T03:04:06Z"}]}}`
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 0, time.UTC) }
	for condition, want := range map[string]*manifest.State{
		"condition=Complete":                          {Reason: "AllDone", Since: at(6)},
		"condition=Ready":                             nil,
		"condition=Other":                             nil,
		"jsonpath={.status.phase}=Failed|Error":       {Reason: "Error", Message: "exit 1", Since: at(5)},
		"jsonpath={.status.phase}=Failed":             nil,
		"jsonpath={.status.n}=3":                      {Reason: "3", Message: "exit 1", Since: at(5)},
		"jsonpath={.status.items[0].ok}=true":         {Reason: "true", Message: "exit 1", Since: at(5)},
		"jsonpath={.status.items[1].ok}=true":         nil,
		"jsonpath={.status.phase.deeper}=Error":       nil,
		"jsonpath={.status.conditions}=[map[a:b c:d]": nil,
	} {
		c, err := manifest.ParseCondition(condition)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
		}
		state, ok := c.Holds(object)
		if ok != (want != nil) || ok && state != *want {
			t.Errorf("%s: %t %+v", condition, ok, state)
		}
	}
}

func TestConditionsThatCannotHoldAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "condition=", "condition=a b", "condition=Ready=False", "phase=Done", "jsonpath=.status=1", "jsonpath={.status}", "jsonpath={.a[*]}=1",
		"jsonpath={.a[?(@.b)]}=1", "jsonpath={.a..b}=1", "jsonpath={.}=1", "jsonpath={.a}=", "jsonpath={.a}=b|", "jsonpath={.a[1}=2", "jsonpath={.a[-1]}=2",
		"jsonpath={" + strings.Repeat(".a", 70) + "}=1",
	} {
		if c, err := manifest.ParseCondition(text); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func TestSetMakesWhatIsMissingAndReplacesNothing(t *testing.T) {
	object := map[string]any{"a": map[string]any{"b": 1}, "c": "text"}
	manifest.Set(object, "a.b", 2, false)
	manifest.Set(object, "a.d", 3, false)
	manifest.Set(object, "c.d", 4, true)
	manifest.Set(object, "e.f.g", 5, false)
	manifest.Set(object, "e.f.g", 6, true)
	want := map[string]any{"a": map[string]any{"b": 1, "d": 3}, "c": "text", "e": map[string]any{"f": map[string]any{"g": 6}}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Error(diff)
	}
}

func FuzzManifestsAreReadOrRefused(f *testing.F) {
	f.Add(job)
	f.Add("a: &b [*b]\n---\n{? [x] : y, <<: {}}\n")
	f.Add("apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: a}\nspec: {tfReplicaSpecs: {PS: 1, Worker: {template: []}}}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		all, problems := manifest.Read(text)
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Code == "" || p.Message == "" {
				t.Errorf("%+v", p)
			}
		}
		manifest.References(all)
		for _, d := range all {
			wantUsable(t, d)
			if d.Name() == "" && len(problems) == 0 {
				t.Errorf("%q has no name", text)
			}
		}
	})
}

// wantUsable fails a test unless a document is JSON, whatever its values.
func wantUsable(t *testing.T, d manifest.Document) {
	t.Helper()
	if _, err := json.Marshal(d.Object); err != nil {
		t.Error(err)
	}
	if kind, ok := manifest.Find(d.APIVersion(), d.Kind()); ok {
		kind.Pods(d.Object)
	}
}

func FuzzConditionsAreWrittenAsTheyAreRead(f *testing.F) {
	f.Add("condition=Ready")
	f.Add("jsonpath={.a[0].b}=c|d")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := manifest.ParseCondition(text)
		if err != nil {
			return
		}
		again, err := manifest.ParseCondition(c.String())
		if err != nil || !cmp.Equal(c, again) {
			t.Errorf("%q: %+v, then %q: %+v, %v", text, c, c.String(), again, err)
		}
	})
}
