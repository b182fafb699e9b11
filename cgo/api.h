/* The part of the server's module API that gothrottle uses, written from its public documentation. No server ships this
 * as a free header, and a newer header would hide which functions an older server lacks: here every function carries
 * the release that brought it, and a required one that is missing stops the load.
 *
 * The opaque types are the server's. */
#ifndef GOTHROTTLE_API_H
#define GOTHROTTLE_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct RedisModuleCtx RedisModuleCtx;
typedef struct RedisModuleString RedisModuleString;
typedef struct RedisModuleKey RedisModuleKey;
typedef struct RedisModuleCommand RedisModuleCommand;
typedef struct RedisModuleInfoCtx RedisModuleInfoCtx;
typedef struct RedisModuleCallReply RedisModuleCallReply;
typedef struct RedisModuleUser RedisModuleUser;
typedef int (*RedisModuleCmdFunc)(RedisModuleCtx *, RedisModuleString **, int);
typedef void (*RedisModuleInfoFunc)(RedisModuleInfoCtx *, int for_crash_report);
typedef RedisModuleString *(*RedisModuleConfigGetStringFunc)(const char *name, void *data);
typedef int (*RedisModuleConfigSetStringFunc)(const char *name, RedisModuleString *value, void *data,
                                              RedisModuleString **error);
typedef long long (*RedisModuleConfigGetNumericFunc)(const char *name, void *data);
typedef int (*RedisModuleConfigSetNumericFunc)(const char *name, long long value, void *data,
                                               RedisModuleString **error);
/* Passed by value, so its layout is the server's. */
typedef struct api_event {
    uint64_t id, data_version;
} api_event;
typedef void (*RedisModuleEventCallback)(RedisModuleCtx *, api_event, uint64_t subevent, void *data);
typedef int (*RedisModuleConfigApplyFunc)(RedisModuleCtx *, void *data, RedisModuleString **error);

/* Values fixed by the server. */
enum { API_OK = 0, API_ERR = 1, API_VERSION = 1 };
enum { KEY_READ = 1 << 0, KEY_WRITE = 1 << 1 };
enum { TYPE_EMPTY, TYPE_STRING, TYPE_LIST, TYPE_HASH, TYPE_SET, TYPE_ZSET };
enum { REPLY_UNKNOWN = -1, REPLY_STRING, REPLY_ERROR, REPLY_INTEGER, REPLY_ARRAY };
enum { NOTIFY_GENERIC = 1 << 2, NOTIFY_STRING = 1 << 3, NOTIFY_HASH = 1 << 6, NOTIFY_ZSET = 1 << 7 };
enum {
    OPTION_NO_IMPLICIT_SIGNAL_MODIFIED = 1 << 1,
    OPTION_HANDLE_REPL_ASYNC_LOAD = 1 << 2,
    /* Valkey's; in Redis these bits have other meanings. */
    OPTION_SKIP_COMMAND_VALIDATION = 1 << 4,
    OPTION_HANDLE_ATOMIC_SLOT_MIGRATION = 1 << 5
};
enum { ZADD_ADDED = 1 << 2, ZADD_UPDATED = 1 << 3 };
enum { CTX_FLAGS_CLUSTER = 1 << 5 };
enum { ACL_LOG_KEY = 2 };
enum { CONFIG_DEFAULT = 0 };
enum { EVENT_CRON_LOOP = 8, EVENT_CONFIG = 16 };
#define HASH_FIELD_DELETE ((RedisModuleString *)1)

/* What SetCommandInfo reads; the layout is the server's (version 1). */
enum {
    KEYSPEC_RO = 1 << 0,
    KEYSPEC_RW = 1 << 1,
    KEYSPEC_ACCESS = 1 << 4,
    KEYSPEC_UPDATE = 1 << 5,
    KEYSPEC_INCOMPLETE = 1 << 9 /* the spec names some of the keys; the server asks the command for all */
};
enum { BEGIN_SEARCH_INDEX = 2 };
enum { FIND_KEYS_RANGE = 2 };
enum { ARG_STRING = 0, ARG_INTEGER = 1, ARG_KEY = 3, ARG_PURE_TOKEN = 6, ARG_ONEOF = 7, ARG_BLOCK = 8 };
enum { ARG_OPTIONAL = 1 << 0, ARG_MULTIPLE = 1 << 1 };

typedef struct api_history_entry {
    const char *since, *changes;
} api_history_entry;

typedef struct api_key_spec {
    const char *notes;
    uint64_t flags;
    int begin_search_type;
    union {
        struct { int pos; } index;
        struct { const char *keyword; int startfrom; } keyword;
    } begin_search;
    int find_keys_type;
    union {
        struct { int lastkey, keystep, limit; } range;
        struct { int keynumidx, firstkey, keystep; } keynum;
    } find_keys;
} api_key_spec;

typedef struct api_arg {
    const char *name;
    int type;
    int key_spec_index;
    const char *token, *summary, *since;
    int flags;
    const char *deprecated_since;
    struct api_arg *subargs;
    const char *display_text; /* Redis 7.2 reads this field whatever sizeof_arg says */
} api_arg;

typedef struct api_info_version {
    int version;
    size_t sizeof_historyentry, sizeof_keyspec, sizeof_arg;
} api_info_version;

typedef struct api_command_info {
    const api_info_version *version;
    const char *summary, *complexity, *since;
    api_history_entry *history;
    const char *tips;
    int arity;
    api_key_spec *key_specs;
    api_arg *args;
} api_command_info;

/* X(needed, first release, result, name, parameters). A function that is VALKEY is used on Valkey only:
 * in Redis another function may have its name. */
#define API_FUNCTIONS(X)                                                                                              \
    X(REQUIRED, "4.0", void, Log, (RedisModuleCtx *, const char *, const char *, ...))                                \
    X(REQUIRED, "4.0", void, SetModuleAttribs, (RedisModuleCtx *, const char *, int, int))                            \
    X(REQUIRED, "4.0.3", int, IsModuleNameBusy, (const char *))                                                       \
    X(REQUIRED, "6.0", void, SetModuleOptions, (RedisModuleCtx *, int))                                               \
    X(REQUIRED, "4.0", int, CreateCommand,                                                                            \
      (RedisModuleCtx *, const char *, RedisModuleCmdFunc, const char *, int, int, int))                              \
    X(REQUIRED, "7.0", RedisModuleCommand *, GetCommand, (RedisModuleCtx *, const char *))                            \
    X(REQUIRED, "7.0", int, SetCommandInfo, (RedisModuleCommand *, const api_command_info *))                         \
    X(REQUIRED, "6.0.9", int *, GetCommandKeys, (RedisModuleCtx *, RedisModuleString **, int, int *))                 \
    X(REQUIRED, "4.0", int, IsKeysPositionRequest, (RedisModuleCtx *))                                                \
    X(REQUIRED, "7.0", void, KeyAtPosWithFlags, (RedisModuleCtx *, int, int))                                         \
    X(OPTIONAL, "7.2", int, SetCommandACLCategories, (RedisModuleCommand *, const char *))                            \
    X(OPTIONAL, "7.4", int, AddACLCategory, (RedisModuleCtx *, const char *))                                         \
    X(OPTIONAL, "7.2", long long, CachedMicroseconds, (void))                                                         \
    X(REQUIRED, "4.0", void *, Alloc, (size_t))                                                                       \
    X(REQUIRED, "4.0", void, Free, (void *))                                                                          \
    X(REQUIRED, "4.0", const char *, StringPtrLen, (const RedisModuleString *, size_t *))                             \
    X(REQUIRED, "4.0", RedisModuleString *, CreateString, (RedisModuleCtx *, const char *, size_t))                   \
    X(REQUIRED, "4.0", RedisModuleString *, CreateStringFromLongLong, (RedisModuleCtx *, long long))                  \
    X(REQUIRED, "4.0", void, FreeString, (RedisModuleCtx *, RedisModuleString *))                                     \
    X(REQUIRED, "4.0", int, StringToLongLong, (const RedisModuleString *, long long *))                               \
    X(REQUIRED, "4.0", RedisModuleKey *, OpenKey, (RedisModuleCtx *, RedisModuleString *, int))                       \
    X(REQUIRED, "4.0", void, CloseKey, (RedisModuleKey *))                                                            \
    X(REQUIRED, "4.0", int, KeyType, (RedisModuleKey *))                                                              \
    X(REQUIRED, "4.0", size_t, ValueLength, (RedisModuleKey *))                                                       \
    X(REQUIRED, "4.0", int, DeleteKey, (RedisModuleKey *))                                                            \
    X(REQUIRED, "6.2.2", long long, GetAbsExpire, (RedisModuleKey *))                                                 \
    X(REQUIRED, "6.2.2", int, SetAbsExpire, (RedisModuleKey *, long long))                                            \
    X(REQUIRED, "4.0", char *, StringDMA, (RedisModuleKey *, size_t *, int))                                          \
    X(REQUIRED, "4.0", int, StringTruncate, (RedisModuleKey *, size_t))                                               \
    X(REQUIRED, "4.0", int, ZsetAdd, (RedisModuleKey *, double, RedisModuleString *, int *))                          \
    X(REQUIRED, "4.0", int, ZsetRem, (RedisModuleKey *, RedisModuleString *, int *))                                  \
    X(REQUIRED, "4.0", int, ZsetScore, (RedisModuleKey *, RedisModuleString *, double *))                             \
    X(REQUIRED, "4.0", int, ZsetFirstInScoreRange, (RedisModuleKey *, double, double, int, int))                      \
    X(REQUIRED, "4.0", int, ZsetLastInScoreRange, (RedisModuleKey *, double, double, int, int))                       \
    X(REQUIRED, "4.0", RedisModuleString *, ZsetRangeCurrentElement, (RedisModuleKey *, double *))                    \
    X(REQUIRED, "4.0", int, ZsetRangeNext, (RedisModuleKey *))                                                        \
    X(REQUIRED, "4.0", int, ZsetRangePrev, (RedisModuleKey *))                                                        \
    X(REQUIRED, "4.0", int, ZsetRangeEndReached, (RedisModuleKey *))                                                  \
    X(REQUIRED, "4.0", void, ZsetRangeStop, (RedisModuleKey *))                                                       \
    X(REQUIRED, "4.0", int, HashGet, (RedisModuleKey *, int, ...))                                                    \
    X(REQUIRED, "4.0", int, HashSet, (RedisModuleKey *, int, ...))                                                    \
    X(REQUIRED, "4.0", RedisModuleCallReply *, Call, (RedisModuleCtx *, const char *, const char *, ...))             \
    X(REQUIRED, "4.0", int, CallReplyType, (RedisModuleCallReply *))                                                  \
    X(REQUIRED, "4.0", long long, CallReplyInteger, (RedisModuleCallReply *))                                         \
    X(REQUIRED, "4.0", size_t, CallReplyLength, (RedisModuleCallReply *))                                             \
    X(REQUIRED, "4.0", RedisModuleCallReply *, CallReplyArrayElement, (RedisModuleCallReply *, size_t))               \
    X(REQUIRED, "4.0", const char *, CallReplyStringPtr, (RedisModuleCallReply *, size_t *))                          \
    X(REQUIRED, "4.0", void, FreeCallReply, (RedisModuleCallReply *))                                                 \
    X(REQUIRED, "4.0", int, Replicate, (RedisModuleCtx *, const char *, const char *, ...))                           \
    X(REQUIRED, "6.0", int, SignalModifiedKey, (RedisModuleCtx *, RedisModuleString *))                               \
    X(REQUIRED, "6.0", int, NotifyKeyspaceEvent, (RedisModuleCtx *, int, const char *, RedisModuleString *))          \
    X(REQUIRED, "6.0.9", int, GetServerVersion, (void))                                                               \
    X(REQUIRED, "4.0.3", int, GetContextFlags, (RedisModuleCtx *))                                                    \
    X(REQUIRED, "7.0", RedisModuleString *, GetCurrentUserName, (RedisModuleCtx *))                                   \
    X(REQUIRED, "7.0", RedisModuleUser *, GetModuleUserFromUserName, (RedisModuleString *))                           \
    X(REQUIRED, "6.0", int, FreeModuleUser, (RedisModuleUser *))                                                      \
    X(REQUIRED, "7.0", int, ACLCheckCommandPermissions, (RedisModuleUser *, RedisModuleString **, int))               \
    X(VALKEY, "9.1", int, ACLCheckPermissions, (RedisModuleUser *, RedisModuleString **, int, int, int *))            \
    X(OPTIONAL, "7.4", unsigned, ClusterKeySlot, (RedisModuleString *))                                               \
    X(REQUIRED, "7.0", int, ACLAddLogEntry, (RedisModuleCtx *, RedisModuleUser *, RedisModuleString *, int))          \
    X(REQUIRED, "4.0", int, ReplyWithError, (RedisModuleCtx *, const char *))                                         \
    X(REQUIRED, "4.0", int, ReplyWithArray, (RedisModuleCtx *, long))                                                 \
    X(REQUIRED, "4.0", int, ReplyWithLongLong, (RedisModuleCtx *, long long))                                         \
    X(REQUIRED, "7.0", int, ReplyWithMap, (RedisModuleCtx *, long))                                                   \
    X(REQUIRED, "4.0", int, ReplyWithString, (RedisModuleCtx *, RedisModuleString *))                                 \
    X(REQUIRED, "4.0", int, ReplyWithNull, (RedisModuleCtx *))                                                        \
    X(REQUIRED, "7.0", int, RegisterStringConfig,                                                                     \
      (RedisModuleCtx *, const char *, const char *, unsigned, RedisModuleConfigGetStringFunc,                        \
       RedisModuleConfigSetStringFunc, RedisModuleConfigApplyFunc, void *))                                           \
    X(REQUIRED, "7.0", int, RegisterNumericConfig,                                                                    \
      (RedisModuleCtx *, const char *, long long, unsigned, long long, long long, RedisModuleConfigGetNumericFunc,    \
       RedisModuleConfigSetNumericFunc, RedisModuleConfigApplyFunc, void *))                                          \
    X(REQUIRED, "4.0", int, GetSelectedDb, (RedisModuleCtx *))                                                        \
    X(REQUIRED, "7.0", int, LoadConfigs, (RedisModuleCtx *))                                                          \
    X(REQUIRED, "6.0", int, SubscribeToServerEvent, (RedisModuleCtx *, api_event, RedisModuleEventCallback))          \
    X(REQUIRED, "6.0", int, RegisterInfoFunc, (RedisModuleCtx *, RedisModuleInfoFunc))                                \
    X(REQUIRED, "6.0", int, InfoAddSection, (RedisModuleInfoCtx *, const char *))                                     \
    X(REQUIRED, "6.0", int, InfoAddFieldCString, (RedisModuleInfoCtx *, const char *, const char *))                  \
    X(REQUIRED, "6.0", int, InfoAddFieldLongLong, (RedisModuleInfoCtx *, const char *, long long))

/* The functions, filled in by api_resolve. */
#define API_MEMBER(needed, release, result, name, parameters) result(*name) parameters;
typedef struct api_table {
    API_FUNCTIONS(API_MEMBER)
} api_table;
#undef API_MEMBER
extern api_table api;

/* Fills in api from the context that OnLoad was given. Returns API_ERR after
 * logging the name of a required function that this server lacks. */
int api_resolve(RedisModuleCtx *ctx);

/* Whether the server has a function of this full name. In Valkey each function has two names:
 * one begins with RedisModule_, the other with ValkeyModule_. */
int api_has(RedisModuleCtx *ctx, const char *name);

/* Returns the reply of a call of the server if it has this type, which is REPLY_STRING and so on.
 * Otherwise frees the reply and returns NULL, as Call does if the server does not run the call. */
RedisModuleCallReply *api_expect(RedisModuleCallReply *reply, int type);

#endif
