/* The server's side of the module API, for tests without a server. The module and this
 * host share one process, and both are single: so there is one host at a time, `fake`,
 * and one thread that enters it.
 *
 * Every function of API_FUNCTIONS is a fake_<name> in the file of its subject; the table
 * in host.c and the declarations below follow from api.h, so that a function added there
 * does not link until it is written here. */
#ifndef GOTHROTTLE_FAKE_H
#define GOTHROTTLE_FAKE_H

#include "../shim.h"

/* Bytes that grow, followed by a zero. Emptied by setting len to 0. */
typedef struct fake_text {
    char *bytes;
    size_t len, room;
} fake_text;
void fake_append(fake_text *text, const void *bytes, size_t len);
void fake_printf(fake_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum { FAKE_DECIMAL = 20 };
size_t fake_decimal(char text[FAKE_DECIMAL], long long n); /* returns the length */
void fake_drop(fake_text *text);

/* Records of words, one after the other: each word is its length (uint32_t) and its
 * bytes, each record ends with FAKE_END in the place of a length. */
typedef fake_text fake_list;
#define FAKE_END UINT32_MAX
void fake_word(fake_list *list, const char *bytes, size_t len);
void fake_end(fake_list *list);
int fake_has(const fake_list *list, const char *word); /* in any case */

/* What the host writes down, and what a test makes it do. */
enum {
    FAKE_EFFECTS, /* replicated commands; this and the next two of the latest call */
    FAKE_EVENTS,  /* class, event, key */
    FAKE_SIGNALS, /* keys for WATCH */
    FAKE_LOG,     /* level, text */
    FAKE_FAULTS,  /* what no module may do */
    FAKE_HIDDEN,  /* functions that this server lacks */
    FAKE_FAILING, /* functions that fail */
    FAKE_TAKEN,   /* commands of another module */
    FAKE_RENAMED, /* commands that were renamed away */
    FAKE_CATEGORIES,
    FAKE_LISTS
};
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reference-counted, as the server's; what the module made is counted in fake.strings. */
struct RedisModuleString {
    int refs, counted;
    size_t len;
    char bytes[];
};
RedisModuleString *fake_new_string(const char *bytes, size_t len);
void fake_release(RedisModuleString *string);

/* Keys. All bytes here are the keyspace's own copies. */
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
    fake_field *fields; /* TYPE_HASH, in the order they were added */
    size_t num_fields, room;
    fake_member *members; /* TYPE_ZSET, by score and then by bytes */
    size_t num_members, member_room;
    long long expire; /* ms since the Unix epoch, NO_EXPIRE if none */
} fake_entry;
enum { NO_EXPIRE = -1, FAKE_BUCKETS = 256 };

/* A walk along a sorted set. One whose end is reached still stands on the last member
 * that was in it. */
typedef struct fake_range {
    int active, ended;
    size_t at; /* index of the current member; only if there is one */
    int empty; /* there is none */
    double min, max;
    int min_excluded, max_excluded;
} fake_range;

struct RedisModuleKey {
    RedisModuleCtx *ctx;
    RedisModuleString *name; /* a reference of its own */
    fake_entry *entry;       /* NULL while there is nothing */
    int mode;
    fake_range range;
};

fake_entry *fake_find(const char *name, size_t len);
fake_entry *fake_add(const char *name, size_t len, int type);
void fake_remove(fake_entry *entry);
fake_entry *fake_walk(const fake_entry *after); /* the first for NULL */
fake_field *fake_find_field(const fake_entry *entry, const char *name, size_t len);
void fake_put_field(fake_entry *entry, const char *name, size_t name_len, const char *value,
                    size_t value_len);
void fake_put_member(fake_entry *entry, double score, const char *text, size_t len);
int fake_may_write(const RedisModuleKey *key, const char *what); /* if not, it is a fault */

/* Records a keyspace event and tells the test's listener, if it has one. */
void fake_event(int class, const char *event, const RedisModuleString *key);
void fake_signal(const RedisModuleString *key);

/* A module: made by SetModuleAttribs, kept if OnLoad succeeds. */
typedef struct fake_module {
    char name[64];
    int version, options;
    RedisModuleInfoFunc info;
} fake_module;

struct RedisModuleCommand {
    struct RedisModuleCommand *next;
    fake_module *module;
    char *name, *flags, *categories; /* categories: NULL until set */
    RedisModuleCmdFunc run;
    int arity, described;
    int counts_keys; /* the first word is how many follow; else it is the only key */
    fake_text info; /* what SetCommandInfo was told, a line per item */
};
RedisModuleCommand *fake_find_command(const char *name);
/* The keys that the server sees in a command's words, for ACL and cluster: how many, -1 if
 * the words do not tell, and the index of the first. */
int fake_find_keys(const RedisModuleCommand *command, RedisModuleString *const *argv, int argc, int *first);
int fake_knows(const char *name); /* the server's own, ours or another module's */
void fake_forget_commands(fake_module *module);

struct RedisModuleCtx {
    int (*get_api)(const char *name, void *pointer_to_function); /* first: what the server promises */
    fake_module *module;
    RedisModuleCommand *command; /* that runs; NULL outside of one */
    RedisModuleString *const *keys; /* those of its words, borrowed */
    int num_keys;
    int asks_for_keys;           /* the command is run to tell where its keys are */
    int told[256], num_told;     /* what it told */
    fake_text reply;             /* as RESP2 puts it on the wire */
};

/* The words of a command, converted once. */
typedef struct fake_words {
    int argc;
    RedisModuleString *argv[];
} fake_words;

enum { FAKE_DEPTH = 8 }; /* how deep calls may nest */

typedef struct fake_host {
    fake_list list[FAKE_LISTS];
    fake_entry *buckets[FAKE_BUCKETS];
    RedisModuleCommand *commands;
    fake_module *module;
    RedisModuleCtx contexts[FAKE_DEPTH]; /* those below depth run, the one at depth ran last */
    int depth;
    int64_t now_us, mono_us;
    int valkey;          /* every function also as ValkeyModule_ */
    int loading;         /* OnLoad runs */
    int skip_arity;      /* the server leaves the number of words to the module */
    int listens, hears;  /* the test has a listener; it runs, and is not told what it does */
    long strings, handles, blocks; /* alive, made by the module; not reset */
    long opened, opened_to_write;  /* keys, ever */
} fake_host;
extern fake_host fake;

/* For Go. */
void fake_start(void);
void fake_stop(void);
int fake_load(const fake_words *args);
int fake_unload(void);
void fake_run(const fake_words *words);
fake_words *fake_new_words(int argc);
void fake_set_word(fake_words *words, int i, const char *bytes, size_t len);
void fake_free_words(fake_words *words);
int fake_keys_of(const fake_words *words, int *first); /* as fake_find_keys */
void fake_put(const char *name, size_t len, int type, const char *text, size_t text_len);
void fake_info(const char *section, fake_text *text);
const char *fake_function(int i, const char **release, int *required); /* NULL after the last */

/* The whole of the API. */
#define FAKE_DECLARE(needed, release, result, name, parameters) result fake_##name parameters;
API_FUNCTIONS(FAKE_DECLARE)
#undef FAKE_DECLARE

#endif
