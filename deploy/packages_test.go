package deploy

import (
	"crypto/sha256"
	"debug/elf"
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

// The tests below look at the packages in the folder that GOTHROTTLE_PACKAGES names. make test-packages sets it.

// modulePath is where all packages put the module. Debian's units permit to load files from there.
const modulePath = "usr/lib/redis/modules/gothrottle.so"

// installed has every file of a package with its mode.
const installed = `-rw-r--r-- usr/share/doc/gothrottle/README
-rw-r--r-- usr/share/doc/gothrottle/changelog.gz
-rw-r--r-- usr/share/doc/gothrottle/copyright
-rw-r--r-- usr/share/gothrottle/gothrottle.conf
-rw-r--r-- usr/share/gothrottle/monitoring/alerts.yml
-rw-r--r-- usr/share/gothrottle/monitoring/dashboard.json
-rw-r--r-- usr/share/gothrottle/monitoring/exporter.lua
-rw-r--r-- usr/share/gothrottle/monitoring/prometheus.yml
-rw-r--r-- usr/share/gothrottle/systemd-drop-in.conf
-rwxr-xr-x usr/lib/redis/modules/gothrottle.so
`

// arch is an architecture by Debian's, RPM's and ELF's names.
type arch struct {
	deb, rpm string
	machine  elf.Machine
}

var archs = []arch{{"amd64", "x86_64", elf.EM_X86_64}, {"arm64", "aarch64", elf.EM_AARCH64}}

// bash runs a script in an empty folder. $1 is the folder of the packages, $2 is the rest.
func bash(t *testing.T, script, rest string) (folder, out string) {
	t.Helper()
	packages := os.Getenv("GOTHROTTLE_PACKAGES")
	if packages == "" {
		t.Skip("GOTHROTTLE_PACKAGES is not set")
	}
	command := exec.Command("bash", "-euo", "pipefail", "-c", script, "bash", packages, rest)
	command.Dir = t.TempDir()
	text, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
	return command.Dir, string(text)
}

// debModule unpacks the module of the .deb.
func debModule(t *testing.T, a arch) string {
	t.Helper()
	folder, _ := bash(t, `dpkg-deb -x "$1"/gothrottle_*_"$2".deb .`, a.deb)
	return filepath.Join(folder, modulePath)
}

// Each package installs the same files with the same modes, and the module of its architecture.
func TestPackage_files(t *testing.T) {
	const list = `; find . -type f -printf '%M %P\n' | LC_ALL=C sort`
	for _, a := range archs {
		for script, name := range map[string]string{
			`dpkg-deb --fsys-tarfile "$1"/gothrottle_*_"$2".deb | tar -xp`: a.deb,
			`rpm2archive - <"$1"/gothrottle-*."$2".rpm | tar -xzp`:         a.rpm,
			`tar -xzpf "$1"/gothrottle-*-linux-"$2".tar.gz`:                a.deb,
		} {
			folder, got := bash(t, script+list, name)
			if got != installed {
				t.Errorf("%s, %s: %s, want %s", script, name, got, installed)
			}
			file, err := elf.Open(filepath.Join(folder, modulePath))
			if err != nil || file.Machine != a.machine {
				t.Errorf("%s, %s: %v, %v", script, name, file, err)
			}
		}
	}
}

// The packages have the module's version, and demand exactly the C library that the module needs.
func TestPackage_versions(t *testing.T) {
	text, err := os.ReadFile("../module/main.go")
	if err != nil {
		t.Fatal(err)
	}
	version := string(regexp.MustCompile(`const version = "(.*)"`).FindSubmatch(text)[1])
	for _, a := range archs {
		module, err := elf.Open(debModule(t, a))
		if err != nil {
			t.Fatal(err)
		}
		libraries, err := module.DynamicVersionNeeds()
		if err != nil {
			t.Fatal(err)
		}
		newest := 0
		for _, library := range libraries {
			if !slices.Contains([]string{"libc.so.6", "libpthread.so.0", "ld-linux-aarch64.so.1"}, library.Name) {
				t.Errorf("%s: the module needs %s", a.deb, library.Name)
			}
			for _, need := range library.Needs {
				minor := 0
				if _, err := fmt.Sscanf(need.Dep, "GLIBC_2.%d", &minor); err != nil {
					t.Errorf("%s: the module needs %s", a.deb, need.Dep)
				}
				newest = max(newest, minor)
			}
		}
		_, deb := bash(t, `dpkg-deb -f "$1"/gothrottle_*_"$2".deb Version Depends`, a.deb)
		if want := fmt.Sprintf("Version: %s\nDepends: libc6 (>= 2.%d)\n", version, newest); deb != want {
			t.Errorf("%s: %s, want %s", a.deb, deb, want)
		}
		_, rpm := bash(t, `rpm -qp --qf '%{VERSION}\n' --requires "$1"/gothrottle-*."$2".rpm`, a.rpm)
		if !strings.HasPrefix(rpm, version+"\n") || !strings.Contains(rpm, fmt.Sprintf("libc.so.6(GLIBC_2.%d)(64bit)\n", newest)) {
			t.Errorf("%s: %s", a.rpm, rpm)
		}
	}
}

// rpm finds its package undamaged, installs it in an empty folder, and removes it. SHA256SUMS has the checksum of every
// other file. The licence file has our licence and Go's.
func TestPackage_rpmAndTexts(t *testing.T) {
	bash(t, `file=$(echo "$1"/gothrottle-*.x86_64.rpm) rpm=(rpm --root "$PWD" --dbpath /db --nodeps --noscripts)
		rpm -K "$file" | grep -q 'digests OK'
		"${rpm[@]}" --ignorearch -i "$file"
		test -x "$2"
		"${rpm[@]}" -e gothrottle
		test ! -e "$2"`, modulePath)
	bash(t, `cd "$1"; sha256sum --check --quiet SHA256SUMS; test "$(wc -l <SHA256SUMS)" = 8; test "$(ls | wc -l)" = 9`, "")
	bash(t, `dpkg-deb -x "$1"/gothrottle_*_amd64.deb .
		for text in Expat 'Permission is hereby granted' BSD-3-clause 'Redistributions of source code'; do grep -q "$text" usr/share/doc/gothrottle/copyright; done`, "")
}

// The bill of materials is about the packed module: its checksum, the Go version that built it, and the C library.
func TestPackage_billOfMaterials(t *testing.T) {
	type component struct {
		Name, Version string
		Hashes        []struct{ Content string }
		Properties    []struct{ Value string }
	}
	for _, a := range archs {
		var bom struct {
			BOMFormat  string
			Metadata   struct{ Component component }
			Components []component
		}
		_, text := bash(t, `cat "$1"/gothrottle-*-linux-"$2".cdx.json`, a.deb)
		if err := json.Unmarshal([]byte(text), &bom); err != nil {
			t.Fatal(err)
		}
		path := debModule(t, a)
		module, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		product, sum := bom.Metadata.Component, fmt.Sprintf("%x", sha256.Sum256(module))
		if bom.BOMFormat != "CycloneDX" || product.Name != "gothrottle" || len(product.Hashes) != 1 || product.Hashes[0].Content != sum {
			t.Errorf("%s: %s, %+v, want the checksum %s", a.deb, bom.BOMFormat, product, sum)
		}
		_, built := bash(t, `go version "$2" | sed 's/.*: go//'`, path)
		parts := fmt.Sprint(bom.Components)
		if !strings.Contains(parts, "{stdlib "+strings.TrimSpace(built)+" ") || !strings.Contains(parts, "GLIBC_2.34") {
			t.Errorf("%s: %s, want Go %s", a.deb, parts, built)
		}
	}
}
