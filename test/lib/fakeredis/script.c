/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Scripts: Lua 5.1 as Redis embeds it, with redis.call, redis.pcall, redis.error_reply,
 * redis.status_reply and redis.sha1hex, KEYS and ARGV. Values are converted as the Redis manual
 * says: numbers lose their fraction, a table ends at its first nil, false and nil are a null, {ok=}
 * and {err=} are a status and an error. A global that does not exist is an error, as there.
 */

#include "internal.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fakeredis *server_of(lua_State *lua)
{
        return lua_touserdata(lua, lua_upvalueindex(1));
}

/* ---- a reply's bytes to Lua */

static const char *line_end(const char *at)
{
        return strstr(at, "\r\n");
}

static void push_field(lua_State *lua, const char *name, const char *at, size_t length)
{
        lua_newtable(lua);
        lua_pushlstring(lua, at, length);
        lua_setfield(lua, -2, name);
}

/* Pushes the value at `at`, which our own commands wrote; answers where the next one begins. */
static const char *push_reply(lua_State *lua, const char *at)
{
        const char *end = line_end(at + 1), *next = end + 2;
        long long n = strtoll(at + 1, NULL, 10);

        switch (*at) {
        case ':':
                lua_pushnumber(lua, (lua_Number)n);
                break;
        case '+':
                push_field(lua, "ok", at + 1, (size_t)(end - at - 1));
                break;
        case '-':
                push_field(lua, "err", at + 1, (size_t)(end - at - 1));
                break;
        case '$':
                if (n < 0) {
                        lua_pushboolean(lua, 0);
                        break;
                }
                lua_pushlstring(lua, next, (size_t)n);
                next += n + 2;
                break;
        default: /* '*' */
                if (n < 0) {
                        lua_pushboolean(lua, 0);
                        break;
                }
                lua_newtable(lua);
                for (int i = 1; i <= n; i++) {
                        next = push_reply(lua, next);
                        lua_rawseti(lua, -2, i);
                }
        }
        return next;
}

/* ---- Lua to a reply's bytes */

static bool put_field(lua_State *lua, const char *name, char sign, struct bytes *out)
{
        const char *text;
        size_t length;

        lua_getfield(lua, -1, name);
        text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &length) : NULL;
        if (text) {
                bytes_put(out, &sign, text[0] == sign ? 0 : 1);
                for (size_t i = 0; i < length; i++)
                        bytes_put(out, text[i] == '\r' || text[i] == '\n' ? " " : &text[i], 1);
                bytes_put(out, "\r\n", 2);
        }
        lua_pop(lua, 1);
        return text != NULL;
}

/* As a cast to an integer of this machine does it, which C leaves open for what does not fit. */
static int64_t integer_of(lua_Number number)
{
        bool fits = number > -9223372036854775808.0 && number < 9223372036854775808.0;

        return fits ? (int64_t)number : INT64_MIN;
}

static void put_value(lua_State *lua, struct bytes *out);

static void put_table(lua_State *lua, struct bytes *out)
{
        struct bytes inner = {0};
        int n = 0;

        if (put_field(lua, "err", '-', out) || put_field(lua, "ok", '+', out))
                return;
        for (;; n++) {
                lua_rawgeti(lua, -1, n + 1);
                if (lua_isnil(lua, -1))
                        break;
                put_value(lua, &inner);
                lua_pop(lua, 1);
        }
        lua_pop(lua, 1);
        bytes_format(out, "*%d\r\n", n);
        bytes_put(out, inner.at, inner.length);
        bytes_free(&inner);
}

static void put_value(lua_State *lua, struct bytes *out)
{
        size_t length;
        const char *text;

        switch (lua_type(lua, -1)) {
        case LUA_TSTRING:
                text = lua_tolstring(lua, -1, &length);
                reply_bulk(out, text, length);
                break;
        case LUA_TNUMBER:
                reply_integer(out, integer_of(lua_tonumber(lua, -1)));
                break;
        case LUA_TBOOLEAN:
                bytes_format(out, lua_toboolean(lua, -1) ? ":1\r\n" : "$-1\r\n");
                break;
        case LUA_TTABLE:
                luaL_checkstack(lua, 4, "reply too deep");
                put_table(lua, out);
                break;
        default:
                bytes_format(out, "$-1\r\n");
        }
}

/* ---- the redis table */

static bool read_args(lua_State *lua, struct bytes *args, int count)
{
        for (int i = 0; i < count; i++) {
                char number[64];
                size_t length;
                if (lua_type(lua, i + 1) == LUA_TNUMBER) {
                        int n = snprintf(number, sizeof(number), "%.17g", lua_tonumber(lua, i + 1));
                        bytes_put(&args[i], number, (size_t)n);
                } else if (lua_type(lua, i + 1) == LUA_TSTRING) {
                        const char *text = lua_tolstring(lua, i + 1, &length);
                        bytes_put(&args[i], text, length);
                } else {
                        return false;
                }
        }
        return true;
}

/* Leaves the reply on the stack; true if it is an error. */
static bool call(lua_State *lua)
{
        struct fakeredis *f = server_of(lua);
        int count = lua_gettop(lua);
        struct bytes *args = calloc((size_t)count + 1, sizeof(*args)), out = {0};

        if (!args)
                abort();
        if (count == 0)
                bytes_format(&out, "-ERR Please specify at least one argument for this redis.call() call\r\n");
        else if (!read_args(lua, args, count))
                bytes_format(&out, "-ERR Lua redis lib command arguments must be strings or integers\r\n");
        else
                command_run(f->running, (struct args){(size_t)count, args}, true, &out);
        bool error = out.at[0] == '-';
        push_reply(lua, out.at);
        for (int i = 0; i < count; i++)
                bytes_free(&args[i]);
        free(args);
        bytes_free(&out);
        return error;
}

static int redis_call(lua_State *lua)
{
        return call(lua) ? lua_error(lua) : 1;
}

static int redis_pcall(lua_State *lua)
{
        (void)call(lua);
        return 1;
}

static int redis_error_reply(lua_State *lua)
{
        const char *text = luaL_checkstring(lua, 1);

        text += *text == '-';
        lua_newtable(lua);
        lua_pushfstring(lua, strchr(text, ' ') ? "%s" : "ERR %s", text);
        lua_setfield(lua, -2, "err");
        return 1;
}

static int redis_status_reply(lua_State *lua)
{
        const char *text = luaL_checkstring(lua, 1);

        push_field(lua, "ok", text, strlen(text));
        return 1;
}

static int redis_sha1hex(lua_State *lua)
{
        char sha1[41];
        size_t length;
        const char *text = luaL_checklstring(lua, 1, &length);

        fakeredis_sha1(text, length, sha1);
        lua_pushstring(lua, sha1);
        return 1;
}

static int no_such_global(lua_State *lua)
{
        return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", lua_tostring(lua, 2));
}

static int no_new_global(lua_State *lua)
{
        return luaL_error(lua, "Attempt to modify a readonly table");
}

/* ---- running */

void script_open(struct fakeredis *f)
{
        static const luaL_Reg functions[] = {{"call", redis_call},
                                             {"pcall", redis_pcall},
                                             {"error_reply", redis_error_reply},
                                             {"status_reply", redis_status_reply},
                                             {"sha1hex", redis_sha1hex},
                                             {NULL, NULL}};
        static const luaL_Reg libraries[] = {{"", luaopen_base},
                                             {LUA_TABLIBNAME, luaopen_table},
                                             {LUA_STRLIBNAME, luaopen_string},
                                             {LUA_MATHLIBNAME, luaopen_math},
                                             {NULL, NULL}};
        lua_State *lua = luaL_newstate();

        if (!lua)
                abort();
        f->lua = lua;
        for (const luaL_Reg *l = libraries; l->func; l++) {
                lua_pushcfunction(lua, l->func);
                lua_pushstring(lua, l->name);
                lua_call(lua, 1, 0);
        }
        lua_newtable(lua);
        for (const luaL_Reg *l = functions; l->func; l++) {
                lua_pushlightuserdata(lua, f);
                lua_pushcclosure(lua, l->func, 1);
                lua_setfield(lua, -2, l->name);
        }
        lua_setglobal(lua, "redis");
        lua_newtable(lua);
        lua_pushcfunction(lua, no_such_global);
        lua_setfield(lua, -2, "__index");
        lua_pushcfunction(lua, no_new_global);
        lua_setfield(lua, -2, "__newindex");
        lua_setmetatable(lua, LUA_GLOBALSINDEX);
}

void script_close(struct fakeredis *f)
{
        script_forget(f);
        lua_close(f->lua);
}

void script_forget(struct fakeredis *f)
{
        for (struct snib__list *it = snib__list_take(&f->scripts); it; it = snib__list_take(&f->scripts)) {
                struct script *s = snib__container(it, struct script, link);
                luaL_unref(f->lua, LUA_REGISTRYINDEX, s->function);
                free(s);
        }
}

struct script *script_find(struct fakeredis *f, const struct bytes *sha1)
{
        snib__list_each (it, &f->scripts) {
                struct script *s = snib__container(it, struct script, link);
                if (bytes_are(sha1, s->sha1))
                        return s;
        }
        return NULL;
}

struct script *script_load(struct fakeredis *f, const struct bytes *text, struct bytes *out)
{
        struct bytes name = {0};
        struct script *s;
        char sha1[41];

        fakeredis_sha1(text->at, text->length, sha1);
        bytes_put(&name, sha1, 40);
        s = script_find(f, &name);
        bytes_free(&name);
        if (s)
                return s;
        if (luaL_loadbuffer(f->lua, text->at, text->length, "@user_script")) {
                bytes_format(out, "-ERR Error compiling script (new function): %.200s\r\n", lua_tostring(f->lua, -1));
                lua_pop(f->lua, 1);
                return NULL;
        }
        s = calloc(1, sizeof(*s));
        if (!s)
                abort();
        memcpy(s->sha1, sha1, sizeof(sha1));
        s->function = luaL_ref(f->lua, LUA_REGISTRYINDEX);
        snib__list_append(&f->scripts, &s->link);
        return s;
}

static void set_list(lua_State *lua, const char *name, const struct bytes *at, size_t count)
{
        lua_newtable(lua);
        for (size_t i = 0; i < count; i++) {
                lua_pushlstring(lua, at[i].at, at[i].length);
                lua_rawseti(lua, -2, (int)i + 1);
        }
        lua_pushstring(lua, name);
        lua_insert(lua, -2);
        lua_rawset(lua, LUA_GLOBALSINDEX);
}

void script_run(struct fakeredis_conn *c, struct script *s, size_t keys, struct args rest, struct bytes *out)
{
        struct fakeredis *f = c->server;
        lua_State *lua = f->lua;

        f->running = c;
        f->dirty = f->asked_time = false;
        set_list(lua, "KEYS", rest.at, keys);
        set_list(lua, "ARGV", rest.at + keys, rest.count - keys);
        lua_rawgeti(lua, LUA_REGISTRYINDEX, s->function);
        if (!lua_pcall(lua, 0, 1, 0)) {
                put_value(lua, out);
        } else if (lua_istable(lua, -1)) {
                lua_getfield(lua, -1, "err");
                bytes_format(out, "-%.300s script: %s, on @user_script.\r\n", lua_tostring(lua, -1), s->sha1);
                lua_pop(lua, 1);
        } else {
                bytes_format(out, "-ERR %.300s script: %s, on @user_script.\r\n", lua_tostring(lua, -1), s->sha1);
        }
        lua_pop(lua, 1);
        f->running = NULL;
}
