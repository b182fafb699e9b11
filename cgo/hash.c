/* Hashes: reading the cells of GCRA limiters into the record, and writing them back. */
#include "shim.h"

/* Puts what HashGet found for n fields from f on into the cell. The values are copies that are ours to free. The server copies
 * each value, whatever its length: one that isn't an integer makes the call an error, so nothing after it is read. */
static __attribute__((noinline)) void put_fields(shim_key *key, shim_cell *cell, int f, int n, RedisModuleString **value) {
    for (int end = f + n; f < end; f++, value++) {
        if (*value == NULL) continue;
        key->unread--;
        if (api.StringToLongLong(*value, &cell->value[f]) != API_OK) {
            cell->bad |= 1u << f;
            key->unread = 0;
        }
        api.FreeString(NULL, *value);
        cell->found |= 1u << f;
    }
}

/* Reads fields f and f+1 of a cell, and the field of its lockout if asked to. */
static void read_fields(shim_key *key, shim_cell *cell, int f, int lock) {
    RedisModuleString *value[3];
    RedisModuleString *const *name = shim_fields[cell->index];
    api.HashGet(key->handle, 0, name[f], &value[0], name[f + 1], &value[1], lock ? name[SHIM_LOCK] : NULL, &value[2],
                NULL); /* the first NULL ends the list */
    put_fields(key, cell, f, 2, value);
    if (lock) put_fields(key, cell, SHIM_LOCK, 1, &value[2]);
}

static shim_cell *append(shim_call *call, shim_key *key) {
    if (call->cells.len == call->cells.cap)
        call->cells.at = shim_grow(call->cells.at, sizeof *call->cells.at, &call->cells.cap, SHIM_CLAUSES);
    shim_cell *cell = &call->cells.at[call->cells.len++];
    SHIM_CLEAR(cell, index, value);
    cell->index = key->num_cells++;
    return cell;
}

/* Reads what shim_load_cells leaves: the other fields of the cells that the call asks for, then the cells that it does
 * not ask for, then lockouts, from a cell of the key on. The key's expiry depends on all cells. */
static SHIM_RARE void load_rest(shim_call *call, shim_key *key, int32_t first_lock) {
    for (int32_t i = 0; key->unread > 0 && i < SHIM_CELLS; i++) {
        shim_cell *cell = NULL;
        if (i < key->asked) {
            cell = &call->cells.at[key->first_cell + i];
        } else {
            cell = append(call, key);
            read_fields(key, cell, 0, 0);
            if (!cell->found) break;
        }
        if (cell->found && key->unread > 0) read_fields(key, cell, 2, 0);
    }
    for (int32_t i = first_lock; key->unread > 0 && i < key->num_cells; i++) {
        shim_cell *cell = &call->cells.at[key->first_cell + i];
        RedisModuleString *value;
        api.HashGet(key->handle, 0, shim_fields[cell->index][SHIM_LOCK], &value, NULL);
        put_fields(key, cell, SHIM_LOCK, 1, &value);
    }
}

/* Reads the first two fields of each cell that the call asks for, and the rest only if the hash has more fields. A
 * field that belongs to no cell means that the hash is not ours: Go compares what was found with the length.
 *
 * All fields come in pairs, except the fields of lockouts. So if the hash has an odd number of fields, a lockout is
 * likely, and the lockouts of the cells asked for are read together. Otherwise lockouts are read last. */
void shim_load_cells(shim_call *call, shim_key *key) {
    key->first_cell = (int32_t)call->cells.len;
    int32_t fields = key->unread = key->kind == SHIM_HASH ? (int32_t)key->length : 0;
    int odd = fields % 2 != 0;
    while (key->num_cells < key->asked) {
        shim_cell *cell = append(call, key);
        if (key->unread > 0) read_fields(key, cell, 0, odd);
    }
    if (key->unread > 0 && key->unread < fields) load_rest(call, key, odd ? key->asked : 0);
}

/* Removes fields. */
static SHIM_RARE void unset_fields(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    RedisModuleString *unset[1 + SHIM_FIELDS * SHIM_CELLS];
    size_t num_unset = 1;
    unset[0] = key->name;
    for (int32_t c = 0; c < key->asked; c++) {
        shim_cell *cell = &call->cells.at[key->first_cell + c];
        for (uint32_t left = cell->unset; left != 0; left &= left - 1) {
            RedisModuleString *name = shim_fields[cell->index][__builtin_ctz(left)];
            api.HashSet(key->handle, 0, name, HASH_FIELD_DELETE, NULL);
            unset[num_unset++] = name;
        }
    }
    api.Replicate(ctx, "HDEL", "v", unset, num_unset);
    key->events |= SHIM_EVENT_HDEL;
}

/* The server allocates twice for the format "v". So the words of up to three fields are passed one by one. */
enum { FEW = 7 };

/* Sets and removes fields. The value strings made here are ours: Replicate keeps references of its own. */
void shim_apply_hash(RedisModuleCtx *ctx, shim_call *call, shim_key *key) {
    RedisModuleString *set[1 + 2 * SHIM_FIELDS * SHIM_CELLS];
    size_t num_set = 1;
    uint32_t unset = 0;
    set[0] = key->name;
    for (int32_t c = 0; c < key->asked; c++) {
        shim_cell *cell = &call->cells.at[key->first_cell + c];
        unset |= cell->unset;
        for (uint32_t left = cell->set; left != 0; left &= left - 1) {
            int i = __builtin_ctz(left);
            RedisModuleString *name = shim_fields[cell->index][i];
            RedisModuleString *value = api.CreateStringFromLongLong(NULL, cell->value[i]);
            api.HashSet(key->handle, 0, name, value, NULL);
            set[num_set++] = name;
            set[num_set++] = value;
        }
    }
    if (num_set > 1) {
        if (shim_is_made(ctx, key, SHIM_HASH)) {
            if (num_set <= FEW) /* the format says how many of these words are read */
                api.Replicate(ctx, "HSET", &"sssssss"[FEW - num_set], set[0], set[1], set[2], set[3], set[4], set[5], set[6]);
            else
                api.Replicate(ctx, "HSET", "v", set, num_set);
            key->events |= SHIM_EVENT_HSET;
        }
        for (size_t i = 2; i < num_set; i += 2) api.FreeString(NULL, set[i]);
    }
    if (unset) unset_fields(ctx, call, key);
}
