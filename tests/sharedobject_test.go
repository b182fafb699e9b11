package tests

import (
	"debug/elf"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// openModule opens the module's file. A test that is in a container cannot read it.
func openModule(t *testing.T) *elf.File {
	t.Helper()
	file, err := elf.Open(env.module)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// The module exports what servers look up, and nothing that could take the place of a function of another
// library. It needs the C library only.
func TestSharedObject_symbols(t *testing.T) {
	file := openModule(t)
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	assert.Equal(t, machines[goarch()], file.Machine)
	assert.Equal(t, elf.ET_DYN, file.Type)
	symbols, err := file.DynamicSymbols()
	require.NoError(t, err)
	var exported []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			exported = append(exported, s.Name)
		}
	}
	assert.ElementsMatch(t, []string{"RedisModule_OnLoad", "RedisModule_OnUnload"}, exported)
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	assert.Equal(t, []string{"libc.so.6"}, libraries)
}

// No page of the module is both writable and executable, and the addresses of functions are read-only once the
// module is loaded. The C library never unloads it: the threads of Go would run on without their code.
func TestSharedObject_protection(t *testing.T) {
	file := openModule(t)
	value := func(tag elf.DynTag) (all uint64) {
		values, err := file.DynValue(tag)
		require.NoError(t, err)
		for _, v := range values {
			all |= v
		}
		return all
	}
	flags, flags1 := elf.DynFlag(value(elf.DT_FLAGS)), elf.DynFlag1(value(elf.DT_FLAGS_1))
	assert.NotZero(t, flags&elf.DF_BIND_NOW, "BIND_NOW")
	assert.NotZero(t, flags1&elf.DF_1_NOW, "NOW")
	assert.NotZero(t, flags1&elf.DF_1_NODELETE, "NODELETE")
	assert.Zero(t, flags&elf.DF_TEXTREL, "relocations in code")
	for _, tag := range []elf.DynTag{elf.DT_TEXTREL, elf.DT_RPATH, elf.DT_RUNPATH} {
		assert.Zero(t, value(tag), tag)
	}
	headers := map[elf.ProgType]elf.ProgFlag{}
	for _, p := range file.Progs {
		headers[p.Type] |= p.Flags
		assert.False(t, p.Flags&elf.PF_W != 0 && p.Flags&elf.PF_X != 0, "writable and executable: %v", p.Type)
	}
	assert.Contains(t, headers, elf.PT_GNU_RELRO)
	assert.Equal(t, elf.PF_R|elf.PF_W, headers[elf.PT_GNU_STACK], "without this header the stack would be executable")
}
