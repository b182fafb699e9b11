/* This file declares the fake host: the server's side of the module API, for tests without a
 * server. The module and the host share one process. There is one host at a time, `fake`, and
 * only one thread enters it.
 *
 * Each function of API_FUNCTIONS is implemented by fake_<name>, in the file of its subject. The
 * table in host.c and the declarations below are generated from api.h. A function that is added
 * to api.h therefore does not link before it is written here. */
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
enum { FAKE_DECIMAL = 20 };
size_t fake_decimal(char text[FAKE_DECIMAL], long long n); /* returns the length */
void fake_drop(fake_text *text);

/* A list of records. A record is a row of words and ends with FAKE_END in the place of a length.
 * A word is its length (uint32_t), followed by its bytes. */
typedef fake_text fake_list;
#define FAKE_END UINT32_MAX
void fake_word(fake_list *list, const char *bytes, size_t len);
void fake_end(fake_list *list);
int fake_has(const fake_list *list, const char *word); /* ignores case */
int fake_holds(const fake_list *list, const char *bytes, size_t len); /* the same bytes */
/* Finds the last record of two words whose first word is name. Returns whether there is one. */
int fake_find_pair(const fake_list *list, const char *name, const char **value, size_t *value_len);

/* The lists of a host. The host writes those up to FAKE_FAULTS, the test writes the others. */
enum {
    /* Of the latest call only: */
    FAKE_EFFECTS, /* replicated commands */
    FAKE_EVENTS,  /* class, event, key */
    FAKE_SIGNALS, /* keys whose watchers were notified of a change */
    FAKE_CHECKS,  /* keys whose permission was asked for */
    /* Of the host's whole life: */
    FAKE_LOG,     /* level, text */
    FAKE_ACL_LOG, /* user, key */
    FAKE_FAULTS,  /* forbidden things that the module did */
    FAKE_HIDDEN,  /* API functions that this server lacks */
    FAKE_FAILING, /* API functions that return an error */
    FAKE_TAKEN,   /* commands of another module */
    FAKE_RENAMED, /* commands that the server has lost by rename-command */
    FAKE_BUSY,    /* names of other modules */
    FAKE_CATEGORIES, /* ACL categories beyond the server's own; AddACLCategory adds to them, too */
    FAKE_FORBIDDEN, /* keys that the user may not use */
    FAKE_ELSEWHERE, /* keys that another node of the cluster holds */
    FAKE_SETTINGS, /* configurations as a configuration file gives them: full name, value */
    FAKE_LISTS
};
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A string with a reference count. fake.strings counts those that the module has to free. */
struct RedisModuleString {
    int refs, counted;
    size_t len;
    char bytes[];
};
RedisModuleString *fake_new_string(const char *bytes, size_t len);
RedisModuleString *fake_give_string(const char *bytes, size_t len); /* the module frees it */
void *fake_give_block(size_t size);                                 /* the module frees it */
int fake_number(const char *text, size_t len, long long *n); /* API_ERR: not a canonical integer */
void fake_release(RedisModuleString *string);

/* The contents of the keyspace. The keyspace owns all bytes. */
typedef struct fake_field {
    fake_text name, value;
} fake_field;

typedef struct fake_member {
    double score;
    fake_text text;
} fake_member;

typedef struct fake_entry {
    struct fake_entry *next;
    fake_text name;
    int type;           /* TYPE_ */
    fake_text text;     /* TYPE_STRING */
    fake_field *fields; /* TYPE_HASH, in the order of their creation */
    size_t num_fields, room;
    fake_member *members; /* TYPE_ZSET, sorted by score, then by bytes */
    size_t num_members, member_room;
    long long expire; /* ms since the Unix epoch, or NO_EXPIRE */
} fake_entry;
enum { NO_EXPIRE = -1, FAKE_BUCKETS = 256 };

/* A walk along a range of a sorted set. After its end the walk is still at the last member of
 * the range. */
typedef struct fake_range {
    int active, ended;
    size_t at; /* the index of the current member, unless empty */
    int empty; /* no member lies in the range */
    double min, max;
    int min_excluded, max_excluded;
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
void fake_rename(fake_entry *entry, const char *name, size_t len);
fake_entry *fake_walk(const fake_entry *after); /* the next key; the first one for NULL */
fake_field *fake_find_field(const fake_entry *entry, const char *name, size_t len);
void fake_put_field(fake_entry *entry, const char *name, size_t name_len, const char *value,
                    size_t value_len);
void fake_put_member(fake_entry *entry, double score, const char *text, size_t len);
void fake_push_member(fake_entry *entry, double score, const char *text, size_t len); /* at the end, unchecked */
int fake_may_write(const RedisModuleKey *key, const char *what); /* a fault if not */

/* Records a keyspace event and calls the test's listener, if there is one. Whoever hears an event may
 * change any key, so a handle of another key that the running call has open is a fault. */
void fake_event(int class, const char *event, const RedisModuleString *key);
/* The same for events that only modules hear: new, keymiss, and unlink for the server event that a key
 * is about to be removed. They are not recorded, and only a listener to all events hears them. */
void fake_inner_event(const char *event, const RedisModuleString *key);
void fake_signal(const RedisModuleString *key);

/* A module. SetModuleAttribs makes it. The host keeps it if OnLoad succeeds. */
typedef struct fake_module {
    char name[64];
    int version, options;
    RedisModuleInfoFunc info;
    int configs, configured; /* how many configurations it has; LoadConfigs was called */
} fake_module;

/* A configuration of a module. */
typedef struct fake_config {
    struct fake_config *next;
    fake_module *module;
    char *full_name, *initial;
    const char *name; /* the end of full_name */
    RedisModuleConfigGetStringFunc get;
    RedisModuleConfigSetStringFunc set;
    RedisModuleConfigGetNumericFunc get_number; /* NULL for a configuration that is a text */
    RedisModuleConfigSetNumericFunc set_number;
    long long least, most;
    void *data;
} fake_config;
fake_config *fake_find_config(const char *full_name);
void fake_forget_configs(fake_module *module);
int fake_config_set(const char *full_name, const char *bytes, size_t len, fake_text *error);
int fake_config_get(const char *full_name, fake_text *value); /* API_ERR: there is none of this name */

struct RedisModuleCommand {
    struct RedisModuleCommand *next;
    fake_module *module;
    char *name, *flags, *categories; /* categories is NULL until it is set */
    RedisModuleCmdFunc run;
    int arity, described;
    int has_key;        /* the first word is a key */
    uint64_t key_flags; /* of its key spec */
    fake_text info;  /* the description given to SetCommandInfo, one line per item */
};
RedisModuleCommand *fake_find_command(const char *name);
int fake_has_flag(const RedisModuleCommand *command, const char *flag);

/* The positions of the keys that the server sees in the words of a command. */
enum { FAKE_KEYS = 512 };
typedef struct fake_keys {
    int num, at[FAKE_KEYS];
} fake_keys;
void fake_add_key(fake_keys *keys, int position);
void fake_find_keys(RedisModuleCommand *command, RedisModuleString *const *argv, int argc, fake_keys *keys);
int fake_knows(const char *name); /* whether the server has this command, whoever made it */
void fake_forget_commands(fake_module *module);

struct RedisModuleCtx {
    int (*get_api)(const char *name, void *pointer_to_function); /* must be the first member */
    fake_module *module;
    RedisModuleCommand *command;    /* the running command, or NULL */
    RedisModuleString *const *argv; /* the words of the command; borrowed */
    fake_keys keys;                 /* the keys among argv; if asks_for_keys, those named so far */
    int asks_for_keys;              /* the command runs only to say where its keys are */
    fake_text reply;                /* in RESP2 */
    fake_list permitted;            /* keys that the module has asked for, and that the user may use */
    fake_list here;                 /* keys that EXISTS was called for, and that this node holds */
};

/* The words of a command. A benchmark converts them once and uses them often. */
typedef struct fake_words {
    int argc;
    RedisModuleString *argv[];
} fake_words;

enum { FAKE_DEPTH = 8 }; /* how deep calls may nest */

/* How RedisModule_Call fails: without a reply, by an error, by a reply of another type, by an array
 * of two integers. */
enum { FAKE_NO_REPLY = 1, FAKE_ERROR, FAKE_OTHER_TYPE, FAKE_INTEGERS };

/* A function that begins with MAY_FAIL returns an error if the test has called Host.Fail for it. */
#define MAY_FAIL \
    if (fake_has(&fake.list[FAKE_FAILING], __func__ + strlen("fake_"))) return API_ERR

/* What Host.Set sets. */
enum {
    FAKE_VERSION, FAKE_VALKEY, FAKE_CLUSTER, FAKE_IO_THREADS, FAKE_DATABASE, FAKE_NO_USER, FAKE_FORGOTTEN, FAKE_ANY_ARITY,
    FAKE_POISON, FAKE_SETS
};

/* The host's counters: see Host.Count. */
enum {
    FAKE_OPENED,     /* keys */
    FAKE_FOR_WRITING, /* keys that were opened for writing */
    FAKE_ASKED,      /* IsKeysPositionRequest */
    FAKE_RUN,        /* Call: commands of the server */
    FAKE_LOOKED,     /* StringDMA */
    FAKE_LOOKED_UP,  /* HashGet */
    FAKE_READ,       /* ZsetRangeCurrentElement */
    FAKE_STEPS,      /* elements that API functions have read, written or looked for, and commands */
    FAKE_COUNTS
};

/* A function of the API: the release that brought it, and whether the module has it from this host. */
typedef struct fake_about {
    const char *release;
    int required, of_valkey, given;
} fake_about;

typedef struct fake_host {
    fake_list list[FAKE_LISTS];
    fake_entry *buckets[FAKE_BUCKETS];
    RedisModuleCommand *commands;
    fake_config *configs;
    fake_module *module;
    RedisModuleCtx contexts[FAKE_DEPTH]; /* those below depth are running, the one at depth ran last */
    int depth;
    int64_t now_us, mono_us;
    int is[FAKE_SETS];   /* what Host.Set sets */
    int loading;         /* OnLoad is running */
    int calls_fail;      /* FAKE_NO_REPLY and so on: how RedisModule_Call fails; 0: it does not */
    int fails_at;        /* which call fails, counted from now; 0: all */
    int listens, hears;  /* the test has a listener (2: to all events); it is running and hears nothing */
    RedisModuleKey *open; /* the handles that are open */
    long strings, handles, blocks, replies, users; /* alive, to be freed by the module; never reset */
    char given[128]; /* the functions that the module has asked for */
    long counts[FAKE_COUNTS]; /* since the last reset */
} fake_host;
extern fake_host fake;

/* Writes down a fault if name is not among the keys that the server sees in the running command. */
void fake_check_declared(const RedisModuleCtx *ctx, const RedisModuleString *name, const char *what);
int fake_was_checked(const RedisModuleCtx *ctx, const RedisModuleString *key); /* by the module itself */
void fake_note_here(RedisModuleCtx *ctx, const RedisModuleString *key);
void fake_wrong_arity(RedisModuleCtx *ctx);
int fake_get_api(const char *name, void *pointer_to_function);

/* The functions that the Go part of this package calls. */
void fake_start(void);
void fake_stop(void);
int fake_load(const fake_words *args);
int fake_name_is_busy(const char *name);
int fake_unload(void);
void fake_run(const fake_words *words);
fake_words *fake_new_words(int argc);
void fake_set_word(fake_words *words, int i, const char *bytes, size_t len);
void fake_free_words(fake_words *words);
/* Converts the arguments of a function with a format. Returns NULL for a format that the host lacks. */
fake_words *fake_read_words(const char *command, const char *format, va_list args);
void fake_keys_of(const fake_words *words, fake_keys *keys);
void fake_put(const char *name, size_t len, int type, const char *text, size_t text_len);
void fake_info(const char *section, fake_text *text);
const char *fake_function(int i, fake_about *about); /* NULL after the last one */

void fake_forget_clock(void); /* the module's clock forgets the latest time */

/* All functions of the API. */
#define FAKE_DECLARE(needed, release, result, name, parameters) result fake_##name parameters;
API_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
