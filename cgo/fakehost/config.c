/* This file keeps the configurations that the module registers. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A full name is the name of the module, a dot and the name of the configuration. */
static fake_config *find_config(const char *full_name) {
    size_t len = strcspn(full_name, ".");
    if (fake.module == NULL || strlen(fake.module->name) != len || strncmp(fake.module->name, full_name, len) != 0) return NULL;
    for (int i = 0; i < fake.module->num_configs; i++) {
        if (strcmp(fake.module->configs[i].name, full_name + len + 1) == 0) return &fake.module->configs[i];
    }
    return NULL;
}

/* Makes a configuration, or returns NULL if the server would refuse it. */
static fake_config *add_config(RedisModuleCtx *ctx, const char *name, const char *initial, unsigned flags,
                               RedisModuleConfigApplyFunc apply, void *data) {
    fake_module *module = ctx->module;
    if (!fake.loading || module->num_configs == FAKE_CONFIGS) return NULL;
    fake_config *config = &module->configs[module->num_configs++];
    snprintf(config->name, sizeof config->name, "%s", name);
    snprintf(config->initial, sizeof config->initial, "%s", initial);
    config->apply = apply;
    if (flags != CONFIG_DEFAULT || data != NULL) fake_fault("%s: the fake host has no flags and data", name);
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
    char text[24];
    sprintf(text, "%lld", initial);
    fake_config *config = add_config(ctx, name, text, flags, apply, data);
    if (config == NULL) return API_ERR;
    config->set_number = set;
    return API_OK;
}

/* Gives the module a number. This host does not check its range. */
static int set_number(const fake_config *config, const RedisModuleString *value) {
    long long n;
    RedisModuleString *text = NULL;
    if (fake_StringToLongLong(value, &n) != API_OK) return API_ERR;
    return config->set_number(config->name, n, NULL, &text);
}

/* Gives the module a text and takes the error. A text that the module keeps must take the place of the text before. */
static int set_text(const fake_config *config, RedisModuleString *value, fake_text *error) {
    RedisModuleString *text = NULL;
    long strings = fake.alive[FAKE_STRINGS];
    int had = config->get(config->name, NULL) != NULL;
    int result = config->set(config->name, value, NULL, &text);
    if ((result == API_OK) == (text != NULL)) fake_fault("%s: an error text and no error, or no text", config->name);
    if (text != NULL) {
        size_t most = 255; /* what the server keeps */
        fake_append(error, text->bytes, strnlen(text->bytes, most));
        fake_release(text);
    }
    int has = config->get(config->name, NULL) != NULL;
    if (fake.alive[FAKE_STRINGS] - strings != has - had) fake_fault("%s: the module left strings", config->name);
    return result;
}

/* The value is the host's and must stay so. */
static int set(const fake_config *config, const char *bytes, size_t len, fake_text *error) {
    RedisModuleString *value = fake_new_string(bytes, len);
    int result = config->set_number != NULL ? set_number(config, value) : set_text(config, value, error);
    if (value->refs != 1) fake_fault("%s: the module kept the host's value", config->name);
    fake_release(value);
    return result;
}

/* The server leaves out a text that is in force already. */
int fake_config_set(const char *full_name, const char *bytes, size_t len, fake_text *error) {
    fake_config *config = find_config(full_name);
    if (config == NULL) {
        fake_printf(error, "no such configuration");
        return API_ERR;
    }
    const RedisModuleString *now = config->get != NULL ? config->get(config->name, NULL) : NULL;
    if (now != NULL && now->len == len && (len == 0 || memcmp(now->bytes, bytes, len) == 0)) return API_OK;
    return set(config, bytes, len, error);
}

int fake_config_apply(const char *full_name) {
    return find_config(full_name)->apply(NULL, NULL, NULL);
}

/* Sets a configuration of the module to the value that the test has given it, or to its default value. */
static int load_config(const fake_module *module, const fake_config *config) {
    char full_name[128];
    snprintf(full_name, sizeof full_name, "%s.%s", module->name, config->name);
    char *given = fake_setting(full_name);
    const char *value = given != NULL ? given : config->initial;
    fake_text error = {0};
    int result = set(config, value, strlen(value), &error);
    if (result != API_OK) fake_Log(NULL, "warning", "Issue during loading of configuration %s : %s", full_name, error.bytes);
    fake_drop(&error);
    free(given);
    return result;
}

int fake_LoadConfigs(RedisModuleCtx *ctx) {
    MAY_FAIL;
    for (int i = 0; i < ctx->module->num_configs; i++) {
        if (load_config(ctx->module, &ctx->module->configs[i]) != API_OK) return API_ERR;
    }
    return API_OK;
}
