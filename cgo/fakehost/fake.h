/* This file declares the fake host: the server's side of the module API, for tests without a server. The module and the
 * host share one process. There is one host at a time, `fake`, and only one thread enters it.
 *
 * Each function of API_FUNCTIONS is implemented by fake_<name>, in the file of its subject. The table in host.c and the
 * declarations below are generated from api.h. A function that is added to api.h therefore does not link before it is
 * written here. */
#ifndef GOTHROTTLE_FAKE_H
#define GOTHROTTLE_FAKE_H

#include "../shim.h"

#include <stdarg.h>

/* A growing buffer. A zero follows the bytes. Setting len to 0 empties the buffer. */
typedef struct fake_text {
    char *bytes;
    size_t len, room;
} fake_text;
void fake_append(fake_text *text, const void *bytes, size_t len);
void fake_printf(fake_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fake_drop(fake_text *text);

/* The lists of a host, which Go keeps. The host writes those in the first line; the test writes the others: see Host.Add. */
enum {
    FAKE_SIGNALS, FAKE_CHECKS, FAKE_LOG, FAKE_ACL_LOG,
    FAKE_HIDDEN, FAKE_FAILING, FAKE_TAKEN, FAKE_RENAMED, FAKE_BUSY, FAKE_CATEGORIES, FAKE_FORBIDDEN, FAKE_ELSEWHERE, FAKE_REFUSED,
    FAKE_LISTS
};
void fake_note_key(int list, const RedisModuleString *key);
void fake_note(int list, const char *format, ...) __attribute__((format(printf, 2, 3)));
int fake_has_key(int list, const RedisModuleString *key); /* ignores case */
int fake_has(int list, const char *word);
/* Not in a list of Go: the module's functions that never call Go may cause a fault. */
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A string with a reference count. FAKE_STRINGS counts those that the module has to free. */
struct RedisModuleString {
    int refs, counted;
    size_t len;
    char bytes[];
};
RedisModuleString *fake_new_string(const char *bytes, size_t len);
RedisModuleString *fake_give_string(const char *bytes, size_t len); /* the module frees it */
void fake_release(RedisModuleString *string);

/* A field of a hash, or a member of a sorted set. */
typedef struct fake_element {
    fake_text name, value; /* only a field has a value */
    double score;
} fake_element;

/* A key. The keyspace owns all bytes. */
typedef struct fake_entry {
    struct fake_entry *next;
    fake_text name;
    int type;           /* TYPE_ */
    fake_text text;     /* TYPE_STRING */
    fake_element *elements; /* of a hash in the order of their creation, of a sorted set by score, then by bytes */
    size_t num, room;
    long long expire; /* ms since the Unix epoch, or NO_EXPIRE */
} fake_entry;
enum { NO_EXPIRE = -1 };

/* A walk along a range of a sorted set. After its end the walk is still at the last member of the range. */
typedef struct fake_range {
    int active, ended;
    size_t from, to; /* the index of the first member, and of the first one behind the range */
    size_t at;       /* the index of the current member, unless the range is empty */
} fake_range;

struct RedisModuleKey {
    RedisModuleKey *next; /* of all open handles */
    RedisModuleCtx *ctx;
    RedisModuleString *name; /* the handle holds a reference */
    fake_entry *entry;       /* NULL if the key does not exist */
    int mode;
    fake_range range;
};

fake_entry *fake_find(const char *name, size_t len);
fake_entry *fake_look_up(RedisModuleString *name); /* as fake_find, but deletes a key that has expired */
void fake_delete(RedisModuleKey *key);             /* deletes an open key, if it exists */
void fake_create(RedisModuleKey *key, int type, size_t len); /* makes an open key; len is of a string */
fake_entry *fake_add(const char *name, size_t len, int type);
void fake_remove(fake_entry *entry);
fake_element *fake_find_element(const fake_entry *entry, const char *name, size_t len);
fake_element *fake_insert(fake_entry *entry, size_t at, const char *name, size_t len); /* at an index */
void fake_remove_element(fake_entry *entry, fake_element *element);
void fake_put_field(fake_entry *entry, const char *name, size_t name_len, const char *value, size_t value_len);
void fake_push_member(fake_entry *entry, double score, const char *text, size_t len); /* at the end, unchecked */
int fake_may_write(const RedisModuleKey *key, const char *what); /* a fault if not */

void fake_effect(int argc, RedisModuleString *const *argv); /* records a replicated command */
/* Records a keyspace event and calls the test's listener, if there is one. A listener may change any key,
 * so a handle of another key that the running call has open is a fault. FAKE_INNER is for events that only modules
 * hear: new, keymiss, and unlink for the server event that a key is about to be removed. They are not recorded. */
enum { FAKE_INNER = 0 };
void fake_event(int class, const char *event, const RedisModuleString *key);
/* Reports the handles of other keys that the running call has open, not those of an outer call; of all keys, if key is NULL. */
void fake_check_open(const char *event, const RedisModuleString *key);
void fake_signal(const RedisModuleString *key);

/* A configuration of a module. */
typedef struct fake_config {
    char name[32], initial[32];
    RedisModuleConfigGetStringFunc get;
    RedisModuleConfigSetStringFunc set;
    RedisModuleConfigApplyFunc apply;
    RedisModuleConfigSetNumericFunc set_number; /* NULL for a configuration that is a text */
} fake_config;
char *fake_setting(const char *full_name); /* what the test has set before the load, or NULL; the caller frees it */
int fake_config_set(const char *full_name, const char *bytes, size_t len, fake_text *error);
int fake_config_apply(const char *full_name);

struct RedisModuleCommand {
    char name[32], flags[64], categories[64];
    RedisModuleCmdFunc run;
    int arity;
    int has_key;        /* the first word is a key */
    uint64_t key_flags; /* of its key spec */
};

/* A module. SetModuleAttribs makes it. The host keeps it if OnLoad succeeds. */
enum { FAKE_CONFIGS = 4 };
typedef struct fake_module {
    char name[64];
    int version, options;
    RedisModuleInfoFunc info;
    fake_config configs[FAKE_CONFIGS];
    RedisModuleCommand commands[SHIM_MAX_COMMANDS];
    int num_configs, num_commands;
} fake_module;
RedisModuleCommand *fake_find_command(const char *name);

/* The positions of the keys that the server sees in the words of a command. */
enum { FAKE_KEYS = 512 };
typedef struct fake_keys {
    int num, at[FAKE_KEYS];
} fake_keys;
void fake_find_keys(RedisModuleCommand *command, RedisModuleString *const *argv, int argc, fake_keys *keys);
int fake_knows(const char *name); /* whether the server has this command, from any module */

struct RedisModuleCtx {
    int (*get_api)(const char *name, void *pointer_to_function); /* must be the first member */
    fake_module *module;
    RedisModuleCommand *command;    /* the running command, or NULL */
    RedisModuleString *const *argv; /* the words of the command; borrowed */
    int argc;
    fake_keys keys;                 /* the keys among argv; if asks_for_keys, those named so far */
    int asks_for_keys;              /* the command runs only to say where its keys are */
    fake_text reply;                /* in RESP2 */
};

/* The words of a command. */
typedef struct fake_words {
    int argc;
    RedisModuleString *argv[];
} fake_words;

enum { FAKE_DEPTH = 8 }; /* how deep calls may nest */

/* How RedisModule_Call fails: without a reply, by an error, by a reply of another type, by an array of two integers. */
enum { FAKE_NO_REPLY = 1, FAKE_ERROR, FAKE_OTHER_TYPE, FAKE_INTEGERS };

/* A function that begins with MAY_FAIL returns an error if the test has added it to Failing. */
#define MAY_FAIL \
    if (fake_has(FAKE_FAILING, __func__ + strlen("fake_"))) return API_ERR

/* What Host.Set sets. */
enum {
    FAKE_VERSION, FAKE_VALKEY, FAKE_CLUSTER, FAKE_IO_THREADS, FAKE_DATABASE, FAKE_NO_USER, FAKE_FORGOTTEN,
    FAKE_SETS
};

/* The host's counters: see Host.Count. */
enum {
    FAKE_OPENED, FAKE_FOR_WRITING, FAKE_LOOKED, FAKE_STEPS, FAKE_COUNTS
};

/* Kinds of things that the module has to free. */
enum { FAKE_STRINGS, FAKE_HANDLES, FAKE_BLOCKS, FAKE_REPLIES, FAKE_USERS, FAKE_KINDS };

/* A function of the API, and the release that brought it. */
enum { OPTIONAL, REQUIRED, VALKEY };
typedef struct fake_function {
    const char *name, *release;
    int needed;
    void *function;
} fake_function;
const fake_function *fake_function_at(int i); /* NULL after the last one */

typedef struct fake_host {
    fake_entry *keys;
    fake_module *module; /* the loaded one, or NULL */
    RedisModuleCtx contexts[FAKE_DEPTH]; /* those below depth are running, the one at depth ran last */
    int depth;
    int64_t now_us, mono_us;
    fake_text faults;    /* a line each */
    int is[FAKE_SETS];   /* what Host.Set sets */
    int loading;         /* OnLoad is running */
    int calls_fail;      /* FAKE_NO_REPLY and so on: how RedisModule_Call fails for the commands in FAKE_REFUSED; 0: it does not */
    RedisModuleKey *open; /* the handles that are open */
    long alive[FAKE_KINDS]; /* never reset */
    long counts[FAKE_COUNTS]; /* since the last reset */
} fake_host;
extern fake_host fake;

/* Writes down a fault if name is not among the keys that the server sees in the running command. */
void fake_check_declared(const RedisModuleCtx *ctx, const RedisModuleString *name, const char *what);
int fake_was_checked(const RedisModuleString *key); /* by the module itself */
int fake_get_api(const char *name, void *pointer_to_function);

/* The functions that the Go part of this package calls. */
void fake_start(void);
void fake_stop(void);
int fake_load(const fake_words *args);
int fake_unload(void);
void fake_run(const fake_words *words);
fake_words *fake_new_words(int argc);
void fake_set_word(fake_words *words, int i, const char *bytes, size_t len);
void fake_free_words(fake_words *words);
/* Converts the arguments of a function with a format. */
fake_words *fake_read_words(const char *command, const char *format, va_list args);
void fake_keys_of(const fake_words *words, fake_keys *keys);
void fake_info(fake_text *text);

/* All functions of the API. */
#define FAKE_DECLARE(needed, release, result, name, parameters) result fake_##name parameters;
API_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
