package cgo

// #include "shim.h"
import "C"

import (
	"unsafe"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// The Go structs of package commands and their C twins in shim.h have the same layout. Each line fails to compile (a
// negative constant isn't a uint) where the size of a struct, the place of a field or a constant differs.
const (
	_ = uint(C.sizeof_shim_call - unsafe.Sizeof(commands.Call{})) // shim_call has further fields
	_ = -(unsafe.Sizeof(commands.Call{}) ^ unsafe.Offsetof(C.shim_call{}.items))
	_ = -(unsafe.Sizeof(commands.Key{}) ^ C.sizeof_shim_key)
	_ = -(unsafe.Sizeof(commands.Cell{}) ^ C.sizeof_shim_cell)
	_ = -(unsafe.Sizeof(commands.Entry{}) ^ C.sizeof_shim_entry)
	_ = -(unsafe.Sizeof(commands.Clause{}) ^ C.sizeof_shim_clause)
	_ = -(unsafe.Sizeof(commands.PolicyCounts{}) ^ C.sizeof_shim_policy)
	_ = -(unsafe.Sizeof("") ^ C.sizeof_shim_text)
	_ = -(unsafe.Sizeof(funnel.Clock{}) ^ C.sizeof_shim_clock_state)

	_ = -(unsafe.Offsetof(commands.Call{}.Keys) ^ unsafe.Offsetof(C.shim_call{}.keys))
	_ = -(unsafe.Offsetof(commands.Call{}.Cells) ^ unsafe.Offsetof(C.shim_call{}.cells))
	_ = -(unsafe.Offsetof(commands.Call{}.Clauses) ^ unsafe.Offsetof(C.shim_call{}.clauses))
	_ = -(unsafe.Offsetof(commands.Call{}.Now) ^ unsafe.Offsetof(C.shim_call{}.now_us))
	_ = -(unsafe.Offsetof(commands.Call{}.DB) ^ unsafe.Offsetof(C.shim_call{}.db))
	_ = -(unsafe.Offsetof(commands.Call{}.ErrWord) ^ unsafe.Offsetof(C.shim_call{}.err_word))
	_ = -(unsafe.Offsetof(commands.Call{}.ErrClause) ^ unsafe.Offsetof(C.shim_call{}.err_clause))
	_ = -(unsafe.Offsetof(commands.Call{}.Outcome) ^ unsafe.Offsetof(C.shim_call{}.outcome))
	_ = -(unsafe.Offsetof(commands.Call{}.Shape) ^ unsafe.Offsetof(C.shim_call{}.shape))
	_ = -(unsafe.Offsetof(commands.Call{}.Replies) ^ unsafe.Offsetof(C.shim_call{}.replies))
	_ = -(unsafe.Offsetof(commands.Call{}.Reply) ^ unsafe.Offsetof(C.shim_call{}.reply))

	_ = -(unsafe.Offsetof(commands.Key{}.Wants) ^ unsafe.Offsetof(C.shim_key{}.wants))
	_ = -(unsafe.Offsetof(commands.Key{}.Asked) ^ unsafe.Offsetof(C.shim_key{}.asked))
	_ = -(unsafe.Offsetof(commands.Key{}.Kind) ^ unsafe.Offsetof(C.shim_key{}.kind))
	_ = -(unsafe.Offsetof(commands.Key{}.Length) ^ unsafe.Offsetof(C.shim_key{}.length))
	_ = -(unsafe.Offsetof(commands.Key{}.ExpiresAt) ^ unsafe.Offsetof(C.shim_key{}.expires_at))
	_ = -(unsafe.Offsetof(commands.Key{}.Text) ^ unsafe.Offsetof(C.shim_key{}.text))
	_ = -(unsafe.Offsetof(commands.Key{}.FirstCell) ^ unsafe.Offsetof(C.shim_key{}.first_cell))
	_ = -(unsafe.Offsetof(commands.Key{}.NumCells) ^ unsafe.Offsetof(C.shim_key{}.num_cells))
	_ = -(unsafe.Offsetof(commands.Key{}.Entries) ^ unsafe.Offsetof(C.shim_key{}.entries))
	_ = -(unsafe.Offsetof(commands.Key{}.Becomes) ^ unsafe.Offsetof(C.shim_key{}.becomes))
	_ = -(unsafe.Offsetof(commands.Key{}.NewLen) ^ unsafe.Offsetof(C.shim_key{}.new_len))
	_ = -(unsafe.Offsetof(commands.Key{}.AddPrefix) ^ unsafe.Offsetof(C.shim_key{}.add_prefix))
	_ = -(unsafe.Offsetof(commands.Key{}.AddWord) ^ unsafe.Offsetof(C.shim_key{}.add_word))
	_ = -(unsafe.Offsetof(commands.Key{}.AddTime) ^ unsafe.Offsetof(C.shim_key{}.add_time_us))
	_ = -(unsafe.Offsetof(commands.Key{}.ExpireFrom) ^ unsafe.Offsetof(C.shim_key{}.expire_from))
	_ = -(unsafe.Offsetof(commands.Key{}.ExpireTo) ^ unsafe.Offsetof(C.shim_key{}.expire_to))
	_ = -(unsafe.Offsetof(commands.Key{}.NewText) ^ unsafe.Offsetof(C.shim_key{}.new_text))

	_ = -(unsafe.Offsetof(commands.Cell{}.Found) ^ unsafe.Offsetof(C.shim_cell{}.found))
	_ = -(unsafe.Offsetof(commands.Cell{}.Bad) ^ unsafe.Offsetof(C.shim_cell{}.bad))
	_ = -(unsafe.Offsetof(commands.Cell{}.Set) ^ unsafe.Offsetof(C.shim_cell{}.set))
	_ = -(unsafe.Offsetof(commands.Cell{}.Unset) ^ unsafe.Offsetof(C.shim_cell{}.unset))
	_ = -(unsafe.Offsetof(commands.Cell{}.Value) ^ unsafe.Offsetof(C.shim_cell{}.value))

	_ = -(unsafe.Offsetof(commands.Entry{}.Member) ^ unsafe.Offsetof(C.shim_entry{}.member))
	_ = -(unsafe.Offsetof(commands.Entry{}.Bad) ^ unsafe.Offsetof(C.shim_entry{}.bad))
	_ = -(unsafe.Offsetof(commands.Entry{}.Drop) ^ unsafe.Offsetof(C.shim_entry{}.drop))

	_ = -(unsafe.Offsetof(commands.Clause{}.Replies) ^ unsafe.Offsetof(C.shim_clause{}.replies))
	_ = -(unsafe.Offsetof(commands.Clause{}.Reply) ^ unsafe.Offsetof(C.shim_clause{}.reply))

	_ = -(unsafe.Offsetof(commands.PolicyCounts{}.Calls) ^ unsafe.Offsetof(C.shim_policy{}.outcomes))
	_ = -(unsafe.Offsetof(commands.PolicyCounts{}.Near) ^ unsafe.Offsetof(C.shim_policy{}.near))

	_ = -(unsafe.Offsetof(funnel.Clock{}.Last) ^ unsafe.Offsetof(C.shim_clock_state{}.last_us))
	_ = -(unsafe.Offsetof(funnel.Clock{}.Base) ^ unsafe.Offsetof(C.shim_clock_state{}.base_us))
	_ = -(unsafe.Offsetof(funnel.Clock{}.Mono) ^ unsafe.Offsetof(C.shim_clock_state{}.mono_us))
	_ = -(unsafe.Offsetof(funnel.Clock{}.Behind) ^ unsafe.Offsetof(C.shim_clock_state{}.behind))

	_ = -uint(commands.MaxFields ^ C.SHIM_FIELDS)
	_ = -uint(commands.MaxCells ^ C.SHIM_CELLS)
	_ = -uint(commands.MaxClauses ^ C.SHIM_CLAUSES)
	_ = -uint(commands.AdoptedLen ^ C.SHIM_ADOPTED_LEN)
	_ = -uint(commands.MinQuotaLen ^ C.SHIM_MIN_QUOTA_LEN)
	_ = -uint(commands.MaxQuotaLen ^ C.SHIM_MAX_QUOTA_LEN)
	_ = -uint(commands.MaxTopKeys ^ C.SHIM_MAX_TOP_KEYS)
	_ = -uint(commands.MaxErrorText ^ C.SHIM_ERROR_TEXT)
	_ = -uint(commands.MaxMemberLen ^ C.SHIM_MAX_MEMBER)
	_ = -uint(commands.ErrInternal ^ C.SHIM_INTERNAL)
	_ = -uint(commands.ErrForked ^ C.SHIM_IN_CHILD)
	_ = -uint(commands.Items ^ C.SHIM_ITEMS)
	_ = -uint(commands.ItemNull ^ C.SHIM_ITEM_NULL)
	_ = -uint(commands.KindAny ^ C.SHIM_ANY)
	_ = -uint(commands.KindZset ^ C.SHIM_ZSET)
	_ = -uint(commands.Zset ^ C.SHIM_BECOMES_ZSET)
	_ = -uint(commands.Shadowed ^ C.SHIM_COUNT_SHADOWED)
	_ = -uint(commands.ArgInteger ^ C.ARG_INTEGER | commands.ArgKey ^ C.ARG_KEY | commands.ArgToken ^ C.ARG_PURE_TOKEN)
	_ = -uint(commands.ArgString ^ C.ARG_STRING | commands.ArgOneOf ^ C.ARG_ONEOF | commands.ArgBlock ^ C.ARG_BLOCK)
)
