package deploy

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests below look at the packages in the folder that GOTHROTTLE_PACKAGES names. make
// test-packages sets it.

// modulePath is where all packages put the module. Debian's units permit to load files from there.
const modulePath = "usr/lib/redis/modules/gothrottle.so"

// installed has every file of a package with its mode.
var installed = map[string]os.FileMode{
	modulePath:                                       0o755,
	"usr/share/gothrottle/gothrottle.conf":           0o644,
	"usr/share/gothrottle/systemd-drop-in.conf":      0o644,
	"usr/share/gothrottle/monitoring/alerts.yml":     0o644,
	"usr/share/gothrottle/monitoring/dashboard.json": 0o644,
	"usr/share/gothrottle/monitoring/exporter.lua":   0o644,
	"usr/share/gothrottle/monitoring/prometheus.yml": 0o644,
	"usr/share/doc/gothrottle/README":                0o644,
	"usr/share/doc/gothrottle/changelog.gz":          0o644,
	"usr/share/doc/gothrottle/copyright":             0o644,
}

// unpack gives the command that unpacks each kind of package in the current folder.
var unpack = map[string]string{
	"gothrottle_*_%s.deb":          `dpkg-deb --fsys-tarfile "$0" | tar -xp`,
	"gothrottle-*.%s.rpm":          `rpm2archive - <"$0" | tar -xzp`,
	"gothrottle-*-linux-%s.tar.gz": `tar -xzpf "$0"`,
}

// rpmArch has RPM's names of the architectures.
var rpmArch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

func packages(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("GOTHROTTLE_PACKAGES")
	if folder == "" {
		t.Skip("GOTHROTTLE_PACKAGES is not set")
	}
	return folder
}

// one returns the only file that the pattern matches.
func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found[0]
}

func told(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// opened unpacks a package and returns the folder.
func opened(t *testing.T, kind, arch string) string {
	t.Helper()
	word := arch
	if strings.HasSuffix(kind, ".rpm") {
		word = rpmArch[arch]
	}
	file := one(t, filepath.Join(packages(t), fmt.Sprintf(kind, word)))
	command := exec.Command("bash", "-o", "pipefail", "-c", unpack[kind], file)
	command.Dir = t.TempDir()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", file, err, out)
	}
	return command.Dir
}

// Each package installs the same files with the same modes, and the module is the one of its
// architecture.
func TestPackage_files(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	packages(t)
	for kind := range unpack {
		for arch, machine := range machines {
			folder := opened(t, kind, arch)
			found := map[string]os.FileMode{}
			err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				name, err := filepath.Rel(folder, path)
				found[name] = info.Mode()
				return err
			})
			if err != nil || fmt.Sprint(found) != fmt.Sprint(installed) {
				t.Errorf("%s, %s: %v, want %v, %v", kind, arch, found, installed, err)
			}
			file, err := elf.Open(filepath.Join(folder, modulePath))
			if err != nil {
				t.Fatal(err)
			}
			if file.Machine != machine {
				t.Errorf("%s, %s: a module for %v", kind, arch, file.Machine)
			}
			file.Close()
		}
	}
}

// The packages demand exactly the C library that the module needs.
func TestPackage_libraryVersion(t *testing.T) {
	folder := packages(t)
	for arch, name := range rpmArch {
		module, err := elf.Open(filepath.Join(opened(t, "gothrottle_*_%s.deb", arch), modulePath))
		if err != nil {
			t.Fatal(err)
		}
		defer module.Close()
		needs, err := module.DynamicVersionNeeds()
		if err != nil {
			t.Fatal(err)
		}
		newest := ""
		for _, library := range needs {
			if !slices.Contains([]string{"libc.so.6", "libpthread.so.0", "ld-linux-aarch64.so.1"}, library.Name) {
				t.Errorf("%s: the module needs %s", arch, library.Name)
			}
			for _, need := range library.Needs {
				if version := strings.TrimPrefix(need.Dep, "GLIBC_"); newest == "" || older(t, newest, version) {
					newest = version
				}
			}
		}
		if newest != "2.34" {
			t.Errorf("%s: the module needs version %s of the C library", arch, newest)
		}
		deb := told(t, "dpkg-deb", "-f", one(t, folder+"/gothrottle_*_"+arch+".deb"), "Depends", "Suggests", "Version")
		if !strings.Contains(deb, "Depends: libc6 (>= "+newest+")\n") || !strings.Contains(deb, "Suggests: redis-server (>= 5:7.0) | valkey-server\n") {
			t.Errorf("%s: %s", arch, deb)
		}
		rpm := told(t, "rpm", "-qp", "--requires", one(t, folder+"/gothrottle-*."+name+".rpm"))
		if !strings.Contains(rpm, "libc.so.6(GLIBC_"+newest+")(64bit)\n") {
			t.Errorf("%s: %s", arch, rpm)
		}
	}
}

// older tells whether version a, such as 2.34, is older than b.
func older(t *testing.T, a, b string) bool {
	t.Helper()
	number := func(s string) (n [3]int) {
		for i, part := range strings.SplitN(s, ".", 3) {
			if _, err := fmt.Sscan(part, &n[i]); err != nil {
				t.Fatalf("version %q: %v", s, err)
			}
		}
		return n
	}
	x, y := number(a), number(b)
	return slices.Compare(x[:], y[:]) < 0
}

// The packages have the module's version.
func TestPackage_version(t *testing.T) {
	folder := packages(t)
	text, err := os.ReadFile("../module/main.go")
	if err != nil {
		t.Fatal(err)
	}
	want := string(regexp.MustCompile(`const version = "(.*)"`).FindSubmatch(text)[1])
	for arch, name := range rpmArch {
		if got := strings.TrimSpace(told(t, "dpkg-deb", "-f", one(t, folder+"/gothrottle_*_"+arch+".deb"), "Version")); got != want {
			t.Errorf(".deb for %s: version %s, want %s", arch, got, want)
		}
		if got := told(t, "rpm", "-qp", "--qf", "%{VERSION}", one(t, folder+"/gothrottle-*."+name+".rpm")); got != want {
			t.Errorf(".rpm for %s: version %s, want %s", arch, got, want)
		}
		one(t, folder+"/gothrottle-"+want+"-linux-"+arch+".tar.gz")
	}
}

// rpm finds its package undamaged, installs it in an empty folder, and removes it.
func TestPackage_rpmInstalls(t *testing.T) {
	folder := packages(t)
	file := one(t, folder+"/gothrottle-*.x86_64.rpm")
	if out := told(t, "rpm", "-K", file); !strings.Contains(out, "digests OK") {
		t.Error(out)
	}
	root := t.TempDir()
	rpm := func(args ...string) {
		told(t, "rpm", append([]string{"--root", root, "--dbpath", "/db", "--nodeps", "--noscripts"}, args...)...)
	}
	rpm("--ignorearch", "-i", file)
	if _, err := os.Stat(filepath.Join(root, modulePath)); err != nil {
		t.Error(err)
	}
	rpm("-e", "gothrottle")
	if _, err := os.Stat(filepath.Join(root, modulePath)); err == nil {
		t.Error("the module is left behind")
	}
}

// SHA256SUMS has the checksum of every other file.
func TestPackage_checksums(t *testing.T) {
	folder := packages(t)
	sums, err := os.Open(filepath.Join(folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	listed := []string{"SHA256SUMS"}
	for lines := bufio.NewScanner(sums); lines.Scan(); {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s has another checksum", name)
		}
		listed = append(listed, name)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) != len(files) || len(files) != 9 {
		t.Errorf("%q are listed, %d files are there", listed, len(files))
	}
}

// The bill of materials is about the packed module: its checksum, the Go version that built it, and
// the C library that it needs.
func TestPackage_billOfMaterials(t *testing.T) {
	folder := packages(t)
	for arch := range rpmArch {
		text, err := os.ReadFile(one(t, folder+"/gothrottle-*-linux-"+arch+".cdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		type component struct {
			Name, Version string
			Hashes        []struct{ Content string }
			Properties    []struct{ Value string }
		}
		var bom struct {
			BOMFormat  string
			Metadata   struct{ Component component }
			Components []component
		}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(opened(t, "gothrottle_*_%s.deb", arch), modulePath)
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(module)
		product := bom.Metadata.Component
		if bom.BOMFormat != "CycloneDX" || product.Name != "gothrottle" || len(product.Hashes) != 1 || product.Hashes[0].Content != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %s, %+v", arch, bom.BOMFormat, product)
		}
		parts := map[string]string{}
		for _, part := range bom.Components {
			parts[part.Name] = fmt.Sprint(part.Version, part.Properties)
		}
		built := strings.TrimPrefix(strings.Fields(strings.TrimPrefix(told(t, "go", "version", path), path+":"))[0], "go")
		if !strings.HasPrefix(parts["stdlib"], built) || !strings.Contains(parts["libc.so.6"], "GLIBC_2.34") {
			t.Errorf("%s: %v, want Go %s", arch, parts, built)
		}
	}
}

// The licence file has the text of our licence and of Go's.
func TestPackage_licences(t *testing.T) {
	packages(t)
	text, err := os.ReadFile(filepath.Join(opened(t, "gothrottle_*_%s.deb", "amd64"), "usr/share/doc/gothrottle/copyright"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"License: Expat", "Permission is hereby granted", "License: BSD-3-clause", "Redistributions of source code"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}
