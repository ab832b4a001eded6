package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchmark-ai/bai/client-lib/bai/archive"
)

func TestAnArchiveHoldsWhatWasSentAndWhatIsMadeOfIt(t *testing.T) {
	files := tree(t, folder(t))
	for _, f := range runFiles() {
		if files[f.name] != f.content {
			t.Errorf("%s is not as it was sent: %.200q", f.name, files[f.name])
		}
		delete(files, f.name)
	}
	manifest := files[archive.ManifestName]
	delete(files, archive.ManifestName)
	want := map[string]string{
		"metrics/samples.csv": "time,metric,value,unit,step,labels,attempt,role,index,container,stream,sequence,sub,run,direction\n" +
			"1970-01-01T00:00:01.000000001Z,\"loss, \"\"x\"\"\",0.5,1,3,\"a=1,b=2\",1,benchmark,0,main,metrics,1,0," + runID + ",\n" +
			"1970-01-01T00:00:01.000000002Z,loss,NaN,,,,1,benchmark,0,main,metrics,2,1," + runID + ",\n" +
			"1970-01-01T00:00:01.000000003Z,loss,-Inf,,,,1,benchmark,0,main,metrics,3,0," + runID + ",\n",
		"logs/1/benchmark-0/p-1/main.stdout.txt":             "one\ntwo",
		"logs/1/benchmark-0/p-1/main.stderr.txt":             "oh <no> \u2028\n",
		"logs/1/benchmark-0/x-f0fab018f976b90d/main.log.txt": "three\n",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("what is made of it (-want +got):\n%s", diff)
	}
	for _, text := range []string{`"format": 1`, `"run": "` + runID, `"platform": "v1"`, `"complete": true`, `"dropped": 2`, `"name": "logs/1/benchmark-0/p-1/main.stdout.txt"`} {
		if !strings.Contains(manifest, text) {
			t.Errorf("no %s in the manifest:\n%s", text, manifest)
		}
	}
}

func TestTheSameFilesMakeTheSameBytesHoweverTheyCome(t *testing.T) {
	var first []byte
	var loose map[string]string
	for _, size := range []int{1, 7, 1 << 10, 10 << 20} {
		if size == 1 && testing.Short() {
			continue
		}
		file := filepath.Join(t.TempDir(), "x.tar.zst")
		sink, err := archive.Tar(file, false)
		writeArchive(t, sink, err, size)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
			_, loose = members(t, file)
		}
		if !bytes.Equal(first, b) {
			t.Errorf("in pieces of %d bytes it is another archive", size)
		}
	}
	if diff := cmp.Diff(tree(t, folder(t)), loose); diff != "" {
		t.Errorf("the folder and the file (-folder +file):\n%.2000s", diff)
	}
}

func TestAnArchiveIsReadBack(t *testing.T) {
	want := make(map[string]string)
	for _, f := range runFiles() {
		if !archive.Derived(f.name) {
			want[f.name] = f.content
		}
	}
	for name, path := range map[string]string{"folder": folder(t), "file": tarArchive(t)} {
		t.Run(name, func(t *testing.T) {
			checked, err := archive.Check(open(t, path))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, collectSent(t, checked)); diff != "" {
				t.Errorf("(-want +got):\n%.2000s", diff)
			}
		})
	}
}

// collectSent is all that is sent of an archive, and checks that documents are sent
// first and whole.
func collectSent(t *testing.T, checked *archive.Checked) map[string]string {
	t.Helper()
	got := make(map[string]string)
	ended := make(map[string]bool)
	send := func(name string, data []byte, last bool) error {
		if ended[name] {
			t.Errorf("%s goes on after its end", name)
		}
		got[name], ended[name] = got[name]+string(data), last
		return nil
	}
	if err := checked.Documents(send); err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for _, f := range checked.Files() {
		if !archive.Document(f.Name) {
			wanted = append(wanted, f.Name)
		} else if !ended[f.Name] {
			t.Errorf("%s is not sent with the documents", f.Name)
		}
	}
	if err := checked.Content(wanted, send); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestOnlyTheWantedFilesAreOpened(t *testing.T) {
	files := runFiles()
	contents := make(map[string]string)
	m := runManifest()
	for _, f := range files {
		sum := sha256.Sum256([]byte(f.content))
		m.Files = append(m.Files, archive.File{Name: f.name, Size: int64(len(f.content)), SHA256: hex.EncodeToString(sum[:])})
		contents[f.name] = f.content
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	contents[archive.ManifestName] = string(b)
	var opened []string
	checked, err := archive.Check(archive.Loose(func(name string) (io.ReadCloser, error) {
		opened = append(opened, name)
		return io.NopCloser(strings.NewReader(contents[name])), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	opened = nil
	var sent []string
	if err := checked.Content([]string{"logs/lines.jsonl"}, func(name string, _ []byte, _ bool) error {
		sent = append(sent, name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{archive.ManifestName, "logs/lines.jsonl"}, opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"logs/lines.jsonl"}, slices.Compact(sent)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestNothingIsAnArchiveBeforeItIsWhole(t *testing.T) {
	for name, sinkAt := range map[string]func(path string, force bool) (archive.Sink, error){"folder": archive.Folder, "x.tar.zst": archive.Tar} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			sink, err := sinkAt(path, false)
			if err != nil {
				t.Fatal(err)
			}
			w := archive.NewWriter(sink, runManifest())
			if err := write(w, runFiles(), 1000); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("before its end there is something: %v", err)
			}
			w.Abort()
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("after it was given up there is %v, %v", left, err)
			}
		})
	}
}

func TestWhatIsThereIsOnlyOverwrittenIfAskedAndIfItIsAnExport(t *testing.T) {
	for name, tt := range map[string]struct {
		sink    func(path string, force bool) (archive.Sink, error)
		there   func(path string) error
		force   bool
		refused bool
	}{
		"a file":                              {archive.Tar, file, false, true},
		"a file, with force":                  {archive.Tar, file, true, false},
		"a folder where a file is wanted":     {archive.Tar, folderAt, true, true},
		"an empty folder":                     {archive.Folder, folderAt, false, false},
		"a folder with something":             {archive.Folder, folderWith("x"), false, true},
		"a folder with something, with force": {archive.Folder, folderWith("x"), true, true},
		"an export":                           {archive.Folder, folderWith(archive.ManifestName), false, true},
		"an export, with force":               {archive.Folder, folderWith(archive.ManifestName), true, false},
		"a file where a folder is wanted":     {archive.Folder, file, true, true},
	} {
		for when, late := range map[string]bool{"before": false, "meanwhile": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "x")
				wantTargetExists(t, path, writeOverExisting(path, tt.sink, tt.force, tt.there, late), tt.refused)
			})
		}
	}
}

// wantTargetExists checks the outcome of writing an archive to a path that exists.
func wantTargetExists(t *testing.T, path string, err error, refused bool) {
	t.Helper()
	exists := new(archive.ExistsError)
	if was := errors.As(err, &exists); was != refused || !was && err != nil {
		t.Fatalf("%v, want refused: %t", err, refused)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := archive.Check(open(t, path)); (err == nil) == refused {
		t.Errorf("then it is: %v", err)
	}
}

// writeOverExisting writes an archive where something is before it, or comes before its
// end.
func writeOverExisting(path string, sinkAt func(path string, force bool) (archive.Sink, error), force bool, there func(path string) error, late bool) error {
	if !late {
		if err := there(path); err != nil {
			return err
		}
	}
	sink, err := sinkAt(path, force)
	if err != nil {
		return err
	}
	w := archive.NewWriter(sink, runManifest())
	err = write(w, runFiles(), 1000)
	if err == nil && late {
		err = there(path)
	}
	if err == nil {
		_, err = w.Finish()
	}
	if err != nil {
		w.Abort()
	}
	return err
}

func file(path string) error     { return os.WriteFile(path, []byte("mine"), 0o600) }
func folderAt(path string) error { return os.Mkdir(path, 0o700) }

func folderWith(name string) func(path string) error {
	return func(path string) error {
		return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, name), nil, 0o600))
	}
}

func TestADiskThatIsFullIsToldAndLeavesNoExport(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	sink := &fullSink{}
	w := archive.NewWriter(sink, runManifest())
	err := write(w, runFiles(), 1000)
	if err == nil || !strings.Contains(err.Error(), "write run.json: ") || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("%v", err)
	}
}

// fullSink is a sink on a disk that is full.
type fullSink struct{}

// Create implements archive.Sink.
func (*fullSink) Create(string) (io.WriteCloser, error) {
	return os.OpenFile("/dev/full", os.O_WRONLY, 0)
}

// Commit implements archive.Sink.
func (*fullSink) Commit() error { return nil }

// Abort implements archive.Sink.
func (*fullSink) Abort() {}

func TestAWriterRefusesWhatIsNoFileOfARun(t *testing.T) {
	for name, tt := range map[string]struct {
		files []namedFile
		want  string
	}{
		"a name that leads elsewhere":      {withContent("artifacts/../../x", replacing("", "x")), "leads elsewhere"},
		"a name from the root":             {withContent("/etc/passwd", replacing("", "x")), `begins with "/"`},
		"a name with a NUL":                {withContent("artifacts/1/a/\x00", replacing("", "x")), "holds a NUL"},
		"a file twice":                     {append(runFiles(), runFiles()[0]), "two files of this name"},
		"the manifest":                     {withContent(archive.ManifestName, replacing("", "x")), "not a file that a platform sends"},
		"what is made of others":           {withContent("metrics/samples.csv", replacing("", "x")), "not a file that a platform sends"},
		"a sample that is broken":          {withContent("metrics/samples.jsonl", replacing(`"seq":2`, `"seq":two`)), "metrics/samples.jsonl:2: invalid character"},
		"a sample with a field of its own": {withContent("metrics/samples.jsonl", replacing(`"sub":1`, `"sup":1`)), `metrics/samples.jsonl:2: unknown field "sup"`},
		"a line without its end":           {withContent("logs/lines.jsonl", func(s string) string { return s[:len(s)-1] }), "logs/lines.jsonl:4: the last line does not end"},
		"a line without end":               {withContent("logs/lines.jsonl", func(string) string { return strings.Repeat("x", 9<<20) }), "logs/lines.jsonl:1: has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			sink, err := archive.Folder(filepath.Join(dir, "x"), false)
			if err != nil {
				t.Fatal(err)
			}
			w := archive.NewWriter(sink, runManifest())
			if err := write(w, tt.files, 5000); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			w.Abort()
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestEveryNameThatLinuxAllowsIsExportedAndReadBack(t *testing.T) {
	names := []string{"artifacts/1/a-0/2026-11-23T07:47:50.json", `artifacts/1/a-0/C:\x`, "artifacts/1/a-0/a\nb", "artifacts/1/a-0/\x1b[2J", "artifacts/1/a-0/\u202ez", "artifacts/1/a-0/" + strings.Repeat("x", 255)}
	files := runFiles()
	for _, name := range names {
		files = append(files, namedFile{name, name})
	}
	for kind, sinkAt := range map[string]func(path string, force bool) (archive.Sink, error){"folder": archive.Folder, "x.tar.zst": archive.Tar} {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), kind)
			sink, err := sinkAt(path, false)
			if err != nil {
				t.Fatal(err)
			}
			w := archive.NewWriter(sink, runManifest())
			if err := write(w, files, 1000); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Finish(); err != nil {
				t.Fatal(err)
			}
			wantRoundTrip(t, path, names)
		})
	}
}

func TestAFolderThatWasWrittenOnAnotherSystemIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run")
	sink, err := archive.Folder(path, false)
	if err != nil {
		t.Fatal(err)
	}
	const name = "artifacts/1/a-0/07:47.json"
	w := archive.NewWriter(sink, runManifest())
	if err := write(w, append(runFiles(), namedFile{name, name}), 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(path, name), filepath.Join(path, "artifacts/1/a-0/07%3A47.json")); err != nil {
		t.Fatal(err)
	}
	wantRoundTrip(t, path, []string{name})
}

// wantRoundTrip checks that an archive has files whose content is their name.
func wantRoundTrip(t *testing.T, path string, names []string) {
	t.Helper()
	checked, err := archive.Check(open(t, path))
	if err != nil {
		t.Fatal(err)
	}
	got := collectSent(t, checked)
	for _, name := range names {
		if got[name] != name {
			t.Errorf("%q holds %.100q", name, got[name])
		}
	}
}

func TestWhatIsWrongWithAnArchiveIsToldByFileAndLine(t *testing.T) {
	keep := func(s string) string { return s }
	manifest := func(text string) archive.Source {
		return sourceOf(t, append(runFiles(), namedFile{archive.ManifestName, text})...)
	}
	for name, tt := range map[string]struct {
		source archive.Source
		want   string
	}{
		"no manifest":                      {archive.Loose(func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }), "it is no export of a run, or only a part of one"},
		"a manifest that is no JSON":       {manifest("{\n\"format\": 1,\n}"), "bai-export.json:3: invalid character"},
		"a manifest of tomorrow":           {manifest(`{"format": 2, "mood": "good"}`), "use a newer baictl"},
		"a manifest with a field too many": {manifest("{\n\"format\": 1, \"mood\": 1}"), `bai-export.json:2: unknown field "mood"`},
		"a file twice in the manifest":     {manifest(`{"format":1,"files":[{"name":"a","size":0,"sha256":"` + strings.Repeat("0", 64) + `"},{"name":"a","size":0,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "is named twice"},
		"a file that leads elsewhere":      {manifest(`{"format":1,"files":[{"name":"../../etc/passwd","size":0,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "leads elsewhere"},
		"documents without end":            {manifest(`{"format":1,"files":[{"name":"run.json","size":999999999999,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "more than"},
		"a file that is not there":         {manifest(`{"format":1,"files":[{"name":"gone","size":0,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "gone: is not there"},
		"a file that has less":             {manifest(`{"format":1,"files":[{"name":"events.jsonl","size":99,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "events.jsonl: has 30 bytes, and bai-export.json says 99"},
		"a file that has more":             {manifest(`{"format":1,"files":[{"name":"artifacts/1/benchmark-0/füße","size":9,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "has more than the 9 bytes"},
		"a file that is another":           {manifest(`{"format":1,"files":[{"name":"events.jsonl","size":30,"sha256":"` + strings.Repeat("0", 64) + `"}]}`), "is not what its digest"},
		"no run":                           {sourceOf(t, runFiles()[1:]...), "run.json: is not there"},
		"a run that is broken":             {sourceOf(t, withContent("run.json", replacing(`"id"`, `id`))...), "run.json:2: invalid character"},
		"an event that is broken":          {sourceOf(t, withContent("events.jsonl", replacing(`2}`, `2`))...), "events.jsonl:2: the JSON ends early"},
		"a sample that is broken":          {sourceOf(t, withContent("metrics/samples.jsonl", replacing(`"seq":3`, `"seq":"3"`))...), "metrics/samples.jsonl:3: "},
		"a line with more than one":        {sourceOf(t, withContent("logs/lines.jsonl", replacing("\n", ""))...), "logs/lines.jsonl:1: more than one"},
		"what is right":                    {sourceOf(t, withContent("x", keep)...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := archive.Check(tt.source)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestHostileTarsAreRefused(t *testing.T) {
	good := tar.Header{Typeflag: tar.TypeReg, Name: "run.json"}
	whole, err := os.ReadFile(tarArchive(t))
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"a link":               {tarOf(t, []tar.Header{{Typeflag: tar.TypeSymlink, Name: "run.json", Linkname: "/etc/passwd"}}, []string{""}), "is a link"},
		"a hard link":          {tarOf(t, []tar.Header{{Typeflag: tar.TypeLink, Name: "run.json", Linkname: "/etc/passwd"}}, []string{""}), "is a link"},
		"a device":             {tarOf(t, []tar.Header{{Typeflag: tar.TypeChar, Name: "run.json"}}, []string{""}), "no file"},
		"a path from the root": {tarOf(t, []tar.Header{{Typeflag: tar.TypeReg, Name: "/etc/passwd"}}, []string{"x"}), `begins with "/"`},
		"a path upwards":       {tarOf(t, []tar.Header{{Typeflag: tar.TypeReg, Name: "a/../../x"}}, []string{"x"}), "leads elsewhere"},
		"a file twice":         {tarOf(t, []tar.Header{good, good}, []string{"{}", "{}"}), "is there twice"},
		"nothing":              {nil, "there is nothing in it"},
		"no zstd":              {[]byte("PK\x03\x04 and so on, for some time, as archives do"), "damaged, or cut"},
		"no manifest":          {tarOf(t, []tar.Header{good}, []string{"{}"}), "only a part of one"},
		"a file too many":      {tarOf(t, []tar.Header{good, {Typeflag: tar.TypeReg, Name: archive.ManifestName}}, []string{"{}", `{"format":1,"files":[]}`}), "run.json: is not named"},
		"what was cut":         {whole[:len(whole)*2/3], "damaged, or cut"},
		"what was damaged":     {damaged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := archive.Check(archive.Packed(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tt.text)), nil }))
			fault := new(archive.FaultError)
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestATarThatUnpacksToVeryMuchMoreIsRefused(t *testing.T) {
	heads, contents := []tar.Header{{Typeflag: tar.TypeReg, Name: "artifacts/1/a-0/bomb"}}, []string{strings.Repeat("\x00", 64<<20)}
	text := tarOf(t, heads, contents)
	source := archive.PackedBounded(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }, 8<<20)
	if _, err := archive.Check(source); err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
		t.Errorf("%v", err)
	}
}

func TestLinksInAFolderAreNotFollowed(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a file that is a link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "events.jsonl")), os.Symlink("run.json", filepath.Join(dir, "events.jsonl")))
		},
		"a manifest that is a link": func(dir string) error {
			m := filepath.Join(dir, archive.ManifestName)
			return errors.Join(os.Rename(m, m+".x"), os.Symlink(archive.ManifestName+".x", m))
		},
		"a folder that is a link elsewhere": func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "metrics"), dir+".metrics"), os.Symlink(dir+".metrics", filepath.Join(dir, "metrics")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := archive.Check(open(t, dir)); err == nil {
				t.Error("it is followed")
			}
		})
	}
}

func TestAFolderMayHoldWhatIsNoneOfIt(t *testing.T) {
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, "NOTES"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Check(open(t, dir)); err != nil {
		t.Error(err)
	}
}

func TestWhatChangesAfterItWasCheckedIsNotSentAsWhole(t *testing.T) {
	const name = "artifacts/1/benchmark-0/füße"
	dir := folder(t)
	checked, err := archive.Check(open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte{2}, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var ends []bool
	err = checked.Content([]string{name}, func(_ string, _ []byte, last bool) error { ends = append(ends, last); return nil })
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") || slices.Contains(ends, true) {
		t.Errorf("%v, ends %v", err, ends)
	}
}

func TestTheNamesOfAnArchiveAreThoseOfItsManifest(t *testing.T) {
	names, err := archive.Names(open(t, folder(t)))
	if err != nil || !slices.Contains(names, "logs/lines.jsonl") || !slices.Contains(names, "metrics/samples.csv") {
		t.Errorf("%q, %v", names, err)
	}
	none := archive.Loose(func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist })
	if names, err := archive.Names(none); err != nil || len(names) > 0 {
		t.Errorf("of nothing: %q, %v", names, err)
	}
}

func FuzzCheck(f *testing.F) {
	good := tar.Header{Typeflag: tar.TypeReg, Name: "run.json"}
	f.Add(tarOf(f, []tar.Header{good, {Typeflag: tar.TypeReg, Name: archive.ManifestName}}, []string{"{}", `{"format":1,"files":[]}`}))
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		source := archive.PackedBounded(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }, 1<<20)
		checked, err := archive.Check(source)
		if err != nil {
			return
		}
		_ = checked.Documents(func(string, []byte, bool) error { return nil })
	})
}

func FuzzManifestAndRows(f *testing.F) {
	f.Add(`{"format":1,"files":[]}`, `{"seq":1}`+"\n", `{"text":"x"}`+"\n")
	f.Add(`{"format":2}`, "", "\n\n")
	f.Fuzz(func(t *testing.T, manifest, samples, lines string) {
		_, _ = archive.Check(sourceOf(t, namedFile{archive.ManifestName, manifest}))
		_, _ = archive.Check(sourceOf(t, namedFile{"run.json", "{}"}, namedFile{"metrics/samples.jsonl", samples}, namedFile{"logs/lines.jsonl", lines}))
		dir := filepath.Join(t.TempDir(), "x")
		sink, err := archive.Folder(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		w := archive.NewWriter(sink, runManifest())
		if write(w, []namedFile{{"run.json", "{}"}, {"metrics/samples.jsonl", samples}, {"logs/lines.jsonl", lines}}, 10) != nil {
			w.Abort()
			return
		}
		if _, err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Check(open(t, dir)); err != nil {
			t.Errorf("what was written is not read: %v", err)
		}
	})
}
