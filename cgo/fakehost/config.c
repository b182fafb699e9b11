/* This file keeps the configurations that the module registers. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

static int is_name(const char *name) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    return *name != '\0' && name[strspn(name, allowed)] == '\0';
}

fake_config *fake_find_config(const char *full_name) {
    fake_config *config = fake.configs;
    while (config != NULL && strcmp(config->full_name, full_name) != 0) config = config->next;
    return config;
}

void fake_forget_configs(fake_module *module) {
    fake_config **link = &fake.configs;
    while (*link != NULL) {
        fake_config *config = *link;
        if (config->module != module) {
            link = &config->next;
            continue;
        }
        *link = config->next;
        free(config->full_name);
        free(config->initial);
        free(config);
    }
}

/* Makes a configuration, or returns NULL if the server would refuse it. */
static fake_config *add_config(RedisModuleCtx *ctx, const char *name, const char *initial, unsigned flags,
                               RedisModuleConfigApplyFunc apply, void *data) {
    fake_text full = {0};
    fake_printf(&full, "%s.%s", ctx->module->name, name);
    if (!fake.loading || !is_name(name) || fake_find_config(full.bytes) != NULL) {
        fake_drop(&full);
        return NULL;
    }
    if (flags != CONFIG_DEFAULT || apply != NULL) fake_fault("%s: the fake host has no flags and no apply", full.bytes);
    fake_config *config = calloc(1, sizeof *config);
    if (config == NULL) abort();
    config->module = ctx->module;
    config->name = full.bytes + strlen(ctx->module->name) + 1;
    config->full_name = full.bytes;
    config->initial = strdup(initial);
    config->data = data;
    config->next = fake.configs;
    fake.configs = config;
    ctx->module->configs++;
    return config;
}

int fake_RegisterStringConfig(RedisModuleCtx *ctx, const char *name, const char *initial, unsigned flags,
                              RedisModuleConfigGetStringFunc get, RedisModuleConfigSetStringFunc set,
                              RedisModuleConfigApplyFunc apply, void *data) {
    MAY_FAIL;
    if (initial == NULL) fake_fault("%s has no default value: the server would read through NULL", name);
    fake_config *config = add_config(ctx, name, initial != NULL ? initial : "", flags, apply, data);
    if (config == NULL) return API_ERR;
    config->get = get;
    config->set = set;
    return API_OK;
}

int fake_RegisterNumericConfig(RedisModuleCtx *ctx, const char *name, long long initial, unsigned flags,
                               long long least, long long most, RedisModuleConfigGetNumericFunc get,
                               RedisModuleConfigSetNumericFunc set, RedisModuleConfigApplyFunc apply, void *data) {
    MAY_FAIL;
    char text[FAKE_DECIMAL + 1] = {0};
    fake_decimal(text, initial);
    fake_config *config = add_config(ctx, name, text, flags, apply, data);
    if (config == NULL) return API_ERR;
    if (initial < least || initial > most) fake_fault("%s: the default value is out of range", name);
    config->get_number = get;
    config->set_number = set;
    config->least = least;
    config->most = most;
    return API_OK;
}

/* Gives the module a number that is in range, as the server does. */
static int set_number(const fake_config *config, const char *bytes, size_t len, fake_text *error) {
    long long n;
    error->len = 0;
    if (fake_number(bytes, len, &n) != API_OK || n < config->least || n > config->most) {
        fake_printf(error, "argument must be between %lld and %lld inclusive", config->least, config->most);
        return API_ERR;
    }
    RedisModuleString *text = NULL;
    int result = config->set_number(config->name, n, config->data, &text);
    if (result != API_OK || text != NULL) fake_fault("%s: the fake host knows no refused numbers", config->full_name);
    return result;
}

/* Gives the module a value and takes the error. The value is the host's and must stay so. A value
 * that the module keeps must take the place of the value before. */
static int set(const fake_config *config, const char *bytes, size_t len, fake_text *error) {
    if (config->set_number != NULL) return set_number(config, bytes, len, error);
    RedisModuleString *value = fake_new_string(bytes, len), *text = NULL;
    long strings = fake.strings;
    int had = config->get(config->name, config->data) != NULL;
    int result = config->set(config->name, value, config->data, &text);
    if (value->refs != 1) fake_fault("%s: the module kept the host's value", config->full_name);
    if ((result == API_OK) == (text != NULL)) fake_fault("%s: an error text and no error, or no text", config->full_name);
    error->len = 0;
    if (text != NULL) {
        size_t most = 255; /* what the server keeps */
        fake_append(error, text->bytes, strnlen(text->bytes, most));
        fake_release(text);
    }
    int has = config->get(config->name, config->data) != NULL;
    if (fake.strings - strings != has - had) fake_fault("%s: the module left strings", config->full_name);
    fake_release(value);
    return result;
}

int fake_config_set(const char *full_name, const char *bytes, size_t len, fake_text *error) {
    fake_config *config = fake_find_config(full_name);
    if (config == NULL) {
        fake_printf(error, "no such configuration");
        return API_ERR;
    }
    const RedisModuleString *now = config->get != NULL ? config->get(config->name, config->data) : NULL;
    if (now != NULL && now->len == len && (len == 0 || memcmp(now->bytes, bytes, len) == 0)) return API_OK;
    return set(config, bytes, len, error);
}

int fake_config_get(const char *full_name, fake_text *value) {
    const fake_config *config = fake_find_config(full_name);
    if (config == NULL) return API_ERR;
    if (config->get_number != NULL) {
        fake_printf(value, "%lld", config->get_number(config->name, config->data));
        return API_OK;
    }
    const RedisModuleString *now = config->get(config->name, config->data);
    if (now != NULL) fake_append(value, now->bytes, now->len);
    return API_OK;
}

/* Sets each configuration of the module to the value in FAKE_SETTINGS, or to its default value. */
static int load_config(const fake_config *config) {
    const char *value = config->initial;
    size_t len = strlen(value);
    fake_find_pair(&fake.list[FAKE_SETTINGS], config->full_name, &value, &len);
    fake_text error = {0};
    int result = set(config, value, len, &error);
    if (result != API_OK) {
        fake_text line = {0};
        fake_printf(&line, "Issue during loading of configuration %s : %s", config->full_name, error.bytes);
        fake_word(&fake.list[FAKE_LOG], "warning", strlen("warning"));
        fake_word(&fake.list[FAKE_LOG], line.bytes, line.len);
        fake_end(&fake.list[FAKE_LOG]);
        fake_drop(&line);
    }
    fake_drop(&error);
    return result;
}

int fake_LoadConfigs(RedisModuleCtx *ctx) {
    MAY_FAIL;
    if (!fake.loading) return API_ERR;
    for (const fake_config *config = fake.configs; config != NULL; config = config->next) {
        if (config->module == ctx->module && load_config(config) != API_OK) return API_ERR;
    }
    ctx->module->configured = 1;
    return API_OK;
}
