/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib completion: the scripts that make a shell complete this command. Commands, verbs, options
 * and their texts come from the tables (main.c, opt.c, the nouns' verbs), so a script cannot differ
 * from the command that printed it; what is the same for every table stands here as text. Names
 * come from the engine when Tab is pressed: `snib ls --names`, given up after a second, silent on
 * failure. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "verbs.h"
#include <stdio.h>
#include <string.h>

/* ---- the tables ---- */

/* Words for an option's argument; "" is anything. */
static const char *words_for(const char *argument)
{
        if (!strcmp(argument, "WHEN"))
                return "auto always never";
        if (!strcmp(argument, "URL"))
                return "local: redis:// redis+unix://";
        if (!strcmp(argument, "SIG"))
                return "TERM INT HUP QUIT USR1 USR2 KILL";
        return !strcmp(argument, "DUR") ? "1s 10s 1m 10m 1h" : "";
}

/* The first argument is a name of the engine's. */
static bool wants_name(const struct command *c)
{
        return !strncmp(c->arguments, "NAME", 4) || c->verbs[0];
}

static bool wants_command(const struct command *c)
{
        return strstr(c->arguments, "CMD") != NULL;
}

/* The verbs of a noun, each once, with `separator` in between. */
static void put_verbs(const struct command *c, const char *separator)
{
        const char *between = "";

        for (int t = 0; t < 2 && c->verbs[t]; t++)
                for (const struct verb *v = c->verbs[t]; v->word; v++) {
                        bool seen = false;
                        for (const struct verb *w = c->verbs[0]; t && w->word; w++)
                                seen |= !strcmp(v->word, w->word);
                        if (!seen)
                                printf("%s%s", between, v->word);
                        between = separator;
                }
}

static void put_commands(void)
{
        for (const struct command *c = snib__commands; c->name; c++)
                printf("%s%s", c == snib__commands ? "" : " ", c->name);
}

/* The first line of a text, for a string in single quotes in which `escaped` have a backslash. */
static void put_text(const char *text, const char *escaped)
{
        for (const char *p = text; *p && *p != '\n'; p++) {
                if (strchr(escaped, *p))
                        putchar('\\');
                if (*p == '\'')
                        printf("'\\''");
                else
                        putchar(*p);
        }
}

/* ---- bash ---- */

/* Words are joined again where bash parts them at ':' and '='. */
static const char bash_head[] =
    "# bash completion for snib. Made by: snib completion bash\n"
    "\n"
    "_snib_names() {\n"
    "    local -a how=(snib ls --names ${1:+-u \"$1\"})\n"
    "    type -P timeout >/dev/null && how=(timeout 1 \"${how[@]}\")\n"
    "    \"${how[@]}\" 2>/dev/null </dev/null\n"
    "}\n"
    "\n"
    "_snib_words() {\n"
    "    local i line=${COMP_LINE:0:COMP_POINT} word joined=\n"
    "    words=()\n"
    "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        [[ $i -eq $COMP_CWORD && $line != *\"$word\" ]] && word=${line##*[[:space:]:=]}\n"
    "        if ((i > 0)) && [[ $line != [[:space:]]* ]] && [[ $word == [:=]* || $joined == *[:=] ]]; then\n"
    "            words[${#words[@]} - 1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        joined=${words[${#words[@]} - 1]}\n"
    "        line=${line#\"${line%%[![:space:]]*}\"}\n"
    "        line=${line#\"$word\"}\n"
    "    done\n"
    "}\n"
    "\n"
    "_snib_offer() { # the words of $1 that begin with $2, but for what bash has parted off already\n"
    "    local word cut=${2%\"${2##*[:=]}\"}\n"
    "    [[ $COMP_WORDBREAKS == *:* ]] || cut=\n"
    "    while IFS= read -r word; do\n"
    "        [[ -n $word && $word == \"$2\"* ]] || continue\n"
    "        word=${word#\"$cut\"}\n"
    "        [[ $3 == names ]] && printf -v word %q \"$word\"\n"
    "        COMPREPLY+=(\"$word\")\n"
    "    done <<<\"$1\"\n"
    "}\n"
    "\n"
    "_snib() {\n"
    "    local -a words\n"
    "    local cur prev i url= command= verb= rest=0 takes= options= verbs= names= runs=\n"
    "    COMPREPLY=()\n"
    "    _snib_words\n"
    "    cur=${words[${#words[@]} - 1]}\n"
    "    prev=${words[${#words[@]} - 2]}\n";

static const char bash_walk[] = "    for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
                                "        case ${words[i]} in\n"
                                "        -u|--url|--engine) url=${words[i + 1]}; ((++i)) ;;\n"
                                "        --url=*|--engine=*) url=${words[i]#*=} ;;\n"
                                "        --) ((rest)) && break ;;\n"
                                "        -*) [[ -n $command && $takes == *\" ${words[i]} \"* ]] && ((++i)) ;;\n"
                                "        *)  if [[ -z $command ]]; then command=${words[i]}; _snib_tables\n"
                                "            elif [[ -n $verbs && -z $verb ]]; then verb=${words[i]}\n"
                                "            else ((++rest)); [[ -n $runs ]] && break\n"
                                "            fi ;;\n"
                                "        esac\n"
                                "    done\n"
                                "    if ((rest)) && [[ -n $runs ]]; then\n"
                                "        ((i + 1 < ${#words[@]})) && [[ ${words[i + 1]} == -- ]] && ((++i))\n"
                                "        if ((i + 1 >= ${#words[@]} - 1)); then COMPREPLY=($(compgen -c -- \"$cur\"))\n"
                                "        else COMPREPLY=($(compgen -f -- \"$cur\")); fi\n"
                                "        return\n"
                                "    fi\n"
                                "    case $prev in\n";

static const char bash_tail[] =
    "    esac\n"
    "    [[ $takes == *\" $prev \"* ]] && return\n"
    "    if [[ -z $command ]]; then _snib_offer \"${commands// /$'\\n'}\" \"$cur\"\n"
    "    elif [[ $cur == -* ]]; then _snib_offer \"${options// /$'\\n'}\" \"$cur\"\n"
    "    elif [[ -n $verbs && -z $verb ]]; then _snib_offer \"${verbs// /$'\\n'}\" \"$cur\"\n"
    "    elif [[ -n $names ]] && ((!rest)); then _snib_offer \"$(_snib_names \"$url\")\" \"$cur\" names\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _snib snib\n";

static void bash_options(const struct command *c, bool taking)
{
        struct option_text o;
        const char *last = "";

        for (int i = 0; snib__opt_at(c, i, &o); i++) {
                if (taking && !o.argument)
                        continue;
                if (taking && o.letter)
                        printf(" -%c", o.letter);
                if (strcmp(o.name, last) != 0) /* else it is another letter of the same */
                        printf(" --%s", o.name);
                last = o.name;
        }
}

/* For `command`: its options, those of them that take an argument, its verbs, what follows. */
static void bash_tables(void)
{
        printf("\n_snib_tables() {\n    case $command in\n");
        for (const struct command *c = snib__commands; c->name; c++) {
                printf("    %s)\n        options='", c->name);
                bash_options(c, false);
                printf("'\n        takes='");
                bash_options(c, true);
                printf(" '\n        verbs='");
                put_verbs(c, " ");
                if (!strcmp(c->name, "help"))
                        put_commands();
                if (!strcmp(c->name, "completion"))
                        printf("bash zsh fish");
                printf("'\n        names=%s runs=%s ;;\n", wants_name(c) ? "1" : "", wants_command(c) ? "1" : "");
        }
        printf("    esac\n}\n");
}

/* No command before this one has it. */
static bool first_with(const struct command *c, const struct option_text *o)
{
        struct option_text other;

        for (const struct command *before = snib__commands; before != c; before++)
                for (int i = 0; snib__opt_at(before, i, &other); i++)
                        if (!strcmp(other.name, o->name))
                                return false;
        return true;
}

static void bash_values(void)
{
        static const char *const arguments[] = {"WHEN", "URL", "SIG", "DUR", "NAME"};
        struct option_text o;

        for (size_t a = 0; a < sizeof(arguments) / sizeof(arguments[0]); a++) {
                const char *between = "    ";
                for (const struct command *c = snib__commands; c->name; c++)
                        for (int i = 0; snib__opt_at(c, i, &o); i++)
                                if (o.argument && !strcmp(o.argument, arguments[a]) && first_with(c, &o)) {
                                        printf("%s--%s", between, o.name);
                                        if (o.letter)
                                                printf("|-%c", o.letter);
                                        between = "|";
                                }
                if (!strcmp(arguments[a], "NAME")) {
                        printf(")\n        _snib_offer \"$(_snib_names \"$url\")\" \"$cur\" names; return ;;\n");
                        continue;
                }
                printf(")\n        _snib_offer $'");
                for (const char *p = words_for(arguments[a]); *p; p++)
                        printf(*p == ' ' ? "\\n" : "%c", *p);
                printf("' \"$cur\"; return ;;\n");
        }
}

static void bash(void)
{
        fputs(bash_head, stdout);
        printf("    local commands='");
        put_commands();
        printf("'\n");
        fputs(bash_walk, stdout);
        bash_values();
        fputs(bash_tail, stdout);
        bash_tables();
}

/* ---- zsh ---- */

static const char zsh_head[] = "#compdef snib\n"
                               "# zsh completion for snib. Made by: snib completion zsh\n"
                               "\n"
                               "_snib_names() {\n"
                               "    local -a names how\n"
                               "    local url=${opt_args[-u]:-${opt_args[--url]}}\n"
                               "    how=(snib ls --names ${url:+-u} ${url:+$url})\n"
                               "    (( $+commands[timeout] )) && how=(timeout 1 $how)\n"
                               "    names=(${(f)\"$($how 2>/dev/null </dev/null)\"})\n"
                               "    compadd -a names\n"
                               "}\n"
                               "\n"
                               "_snib() {\n"
                               "    local curcontext=$curcontext state line\n"
                               "    typeset -A opt_args\n"
                               "    local -a verbs_of_snib\n"
                               "    verbs_of_snib=(\n";

static const char zsh_middle[] =
    "    )\n"
    "    _arguments -C '(-j --json)'{-j,--json}'[JSON]' '(-q --quiet)'{-q,--quiet}'[only errors]' \\\n"
    "        '(-v --verbose)'{-v,--verbose}'[say more]' '(-u --url)'{-u,--url=}'[the engine]:URL:' \\\n"
    "        '1: :{_describe command verbs_of_snib}' '*:: :->rest' && return\n"
    "    case $line[1] in\n";

static void zsh_option(const struct option_text *o)
{
        if (o->letter)
                printf(" \\\n            '(-%c --%s)'{-%c,--%s%s}", o->letter, o->name, o->letter, o->name,
                       o->argument ? "=" : "");
        else
                printf(" \\\n            --%s%s", o->name, o->argument ? "=" : "");
        printf("'[");
        put_text(o->help ? o->help : "the same", "[]:\\");
        putchar(']');
        if (o->argument && !strcmp(o->argument, "NAME"))
                printf(":name:_snib_names");
        else if (o->argument && *words_for(o->argument))
                printf(":%s:(%s)", o->argument, words_for(o->argument));
        else if (o->argument)
                printf(":%s:", o->argument);
        putchar('\'');
}

static void zsh_positions(const struct command *c)
{
        int place = 1;

        if (c->verbs[0]) {
                printf(" \\\n            '%d:verb:(", place++);
                put_verbs(c, " ");
                printf(")'");
        }
        if (wants_name(c))
                printf(" \\\n            '%d:name:_snib_names'", place++);
        if (wants_command(c))
                printf(" \\\n            '(-)%d:command:_command_names -e' '*::arguments:_normal'", place);
        if (!strcmp(c->name, "help"))
                printf(" \\\n            '1: :{_describe command verbs_of_snib}'");
        if (!strcmp(c->name, "completion"))
                printf(" \\\n            '1:shell:(bash zsh fish)'");
}

static void zsh(void)
{
        struct option_text o;

        fputs(zsh_head, stdout);
        for (const struct command *c = snib__commands; c->name; c++) {
                printf("        '%s:", c->name);
                put_text(c->summary, ":\\");
                printf("'\n");
        }
        fputs(zsh_middle, stdout);
        for (const struct command *c = snib__commands; c->name; c++) {
                printf("    %s)\n        _arguments -s%s", c->name, wants_command(c) ? " -A '-*'" : "");
                for (int i = 0; snib__opt_at(c, i, &o); i++)
                        zsh_option(&o);
                zsh_positions(c);
                printf(" ;;\n");
        }
        printf("    esac\n}\n\n[[ $funcstack[1] == _snib ]] && _snib \"$@\" || compdef _snib snib\n");
}

/* ---- fish ---- */

static const char fish_head[] =
    "\n"
    "function __snib_names\n"
    "    set -l words (commandline -opc)\n"
    "    set -l how snib ls --names\n"
    "    for i in (seq (count $words))\n"
    "        contains -- $words[$i] -u --url; and set -q words[(math $i + 1)]; and set -a how -u $words[(math $i + "
    "1)]\n"
    "    end\n"
    "    command -q timeout; and set how timeout 1 $how\n"
    "    $how 2>/dev/null </dev/null\n"
    "end\n"
    "\n"
    "# the command, its verb and the name, as far as they are there; then what is to be run, as it is\n"
    "function __snib_arguments\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    set -l found\n"
    "    set -l skip 0\n"
    "    for word in $words\n"
    "        if test $skip = 1\n"
    "            set skip 0\n"
    "        else if test (count $found) -ge 2; and contains -- $found[1] $__snib_runs\n"
    "            set -a found $word\n"
    "        else if contains -- $word $__snib_takes\n"
    "            set skip 1\n"
    "        else if not string match -q -- '-*' $word\n"
    "            set -a found $word\n"
    "        end\n"
    "    end\n"
    "    set -q found[1]; and printf '%s\\n' $found\n"
    "end\n"
    "\n"
    "function __snib_at # N COMMAND: the next word is number N, of this command\n"
    "    set -l found (__snib_arguments)\n"
    "    test (count $found) = $argv[1]; and test \"$found[1]\" = \"$argv[2]\"\n"
    "end\n"
    "\n"
    "function __snib_of # COMMAND, and its own options are not over\n"
    "    set -l found (__snib_arguments)\n"
    "    test \"$found[1]\" = \"$argv[1]\"; or return 1\n"
    "    not contains -- $argv[1] $__snib_runs; or test (count $found) -lt 2\n"
    "end\n"
    "\n"
    "function __snib_runs_now # COMMAND NAME: what follows is what it runs\n"
    "    set -l found (__snib_arguments)\n"
    "    test \"$found[1]\" = \"$argv[1]\"; and test (count $found) -ge 2\n"
    "end\n"
    "\n"
    "function __snib_command\n"
    "    set -l found (__snib_arguments)\n"
    "    set -e found[1..2]\n"
    "    test \"$found[1]\" = --; and set -e found[1]\n"
    "    complete -C (string join ' ' -- $found (commandline -ct))\n"
    "end\n"
    "\n"
    "complete -c snib -f\n";

/* No command has this letter for an option without an argument. */
static bool always_takes(char letter)
{
        struct option_text o;

        for (const struct command *c = snib__commands; c->name; c++)
                for (int i = 0; snib__opt_at(c, i, &o); i++)
                        if (o.letter == letter && !o.argument)
                                return false;
        return true;
}

static void fish_tables(void)
{
        struct option_text o;

        printf("# fish completion for snib. Made by: snib completion fish\n\nset -g __snib_takes");
        for (const struct command *c = snib__commands; c->name; c++)
                for (int i = 0; snib__opt_at(c, i, &o); i++)
                        if (o.argument && first_with(c, &o)) {
                                printf(" --%s", o.name);
                                if (o.letter && always_takes(o.letter))
                                        printf(" -%c", o.letter);
                        }
        printf("\nset -g __snib_runs");
        for (const struct command *c = snib__commands; c->name; c++)
                if (wants_command(c))
                        printf(" %s", c->name);
        printf("\n");
}

static void fish_option(const struct command *c, const struct option_text *o)
{
        printf("complete -c snib -n '__snib_of %s' -l %s", c->name, o->name);
        if (o->letter)
                printf(" -s %c", o->letter);
        if (o->argument)
                printf(" -x");
        if (o->argument && !strcmp(o->argument, "NAME"))
                printf(" -a '(__snib_names)'");
        else if (o->argument && *words_for(o->argument))
                printf(" -a '%s'", words_for(o->argument));
        if (o->help) {
                printf(" -d '");
                put_text(o->help, "\\");
                printf("'");
        }
        printf("\n");
}

static void fish(void)
{
        struct option_text o;

        fish_tables();
        fputs(fish_head, stdout);
        for (const struct command *c = snib__commands; c->name; c++) {
                printf("complete -c snib -n 'not count (__snib_arguments) >/dev/null' -a %s -d '", c->name);
                put_text(c->summary, "\\");
                printf("'\n");
        }
        for (const struct command *c = snib__commands; c->name; c++) {
                for (int i = 0; snib__opt_at(c, i, &o); i++)
                        fish_option(c, &o);
                if (c->verbs[0]) {
                        printf("complete -c snib -n '__snib_at 1 %s' -a '", c->name);
                        put_verbs(c, " ");
                        printf("'\n");
                }
                if (wants_name(c))
                        printf("complete -c snib -n '__snib_at %d %s' -a '(__snib_names)'\n", c->verbs[0] ? 2 : 1,
                               c->name);
                if (wants_command(c))
                        printf("complete -c snib -n '__snib_runs_now %s' -a '(__snib_command)'\n", c->name);
        }
        printf("complete -c snib -n '__snib_at 1 completion' -a 'bash zsh fish'\n");
        printf("complete -c snib -n '__snib_at 1 help' -a '");
        put_commands();
        printf("'\n");
}

int snib__cmd_completion(const struct options *o, int argc, char **argv)
{
        const struct command *c = snib__opt_command("completion");

        (void)o;
        if (argc != 1)
                return snib__opt_wrong(c, argc ? "one shell only" : "the shell is missing");
        if (!strcmp(argv[0], "bash"))
                bash();
        else if (!strcmp(argv[0], "zsh"))
                zsh();
        else if (!strcmp(argv[0], "fish"))
                fish();
        else
                return snib__opt_wrong(c, "say bash, zsh or fish");
        return EXIT_OK;
}
