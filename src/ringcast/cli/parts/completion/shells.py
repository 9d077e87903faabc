"""Completion for bash, zsh and fish, written from a grammar. Pure.

All three work alike. The words so far select a level of the grammar. After an option that takes a value they offer its
choices or files, otherwise the level's options and words.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from ringcast.cli.parts.completion.grammar import Level, Option

_BASH = """\
# bash completion of ringcast, made by 'ringcast completion bash'
_ringcast() {{
    local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" path="" word i
    for ((i = 1; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        case "${{path:+$path }}$word" in
            {paths}) path="${{path:+$path }}$word" ;;
        esac
    done
    COMPREPLY=()
    case "$path|$prev" in
{values}
    esac
    case "$path" in
{levels}
    esac
}}
complete -F _ringcast ringcast
"""
_ZSH = """\
#compdef ringcast
# zsh completion of ringcast, made by 'ringcast completion zsh'
_ringcast() {{
    local cur="${{words[CURRENT]}}" prev="${{words[CURRENT-1]}}" ringcast_path="" word i
    local -a offered
    for ((i = 2; i < CURRENT; i++)); do
        word="${{words[i]}}"
        case "${{ringcast_path:+$ringcast_path }}$word" in
            {paths}) ringcast_path="${{ringcast_path:+$ringcast_path }}$word" ;;
        esac
    done
    case "$ringcast_path|$prev" in
{values}
    esac
    case "$ringcast_path" in
{levels}
    esac
}}
if [ "$funcstack[1]" = "_ringcast" ]; then _ringcast "$@"; else compdef _ringcast ringcast; fi
"""
_FISH = """\
# fish completion of ringcast, made by 'ringcast completion fish'
function __ringcast_at
    set -l known {paths}
    set -l path
    for word in (commandline -opc)[2..-1]
        set -l longer (string join -- ' ' $path $word)
        if contains -- $longer $known
            set path $longer
        end
    end
    test "$path" = "$argv[1]"
end
complete -c ringcast -f
{lines}
"""


def bash(levels: list[Level]) -> str:
    values = [
        f"        {_pattern(level, option)}) "
        + ('COMPREPLY=($(compgen -f -- "$cur"))' if option.files else _compgen(option.choices))
        + "; return ;;"
        for level, option in _valued(levels)
    ]
    lines = []
    for level in levels:
        lines.append(f"        {shlex.quote(level.path)}) {_compgen((*level.words, *_names(level)))}")
        if level.files:
            lines.append('            [[ $cur == -* ]] || COMPREPLY+=($(compgen -f -- "$cur"))')
        lines.append("            ;;")
    return _BASH.format(paths=_paths(levels), values="\n".join(values), levels="\n".join(lines))


def zsh(levels: list[Level]) -> str:
    values = []
    for level, option in _valued(levels):
        offer = "_files" if option.files else f"compadd -- {_list(option.choices)}" if option.choices else ":"
        values.append(f"        {_pattern(level, option)}) {offer}; return ;;")
    lines = []
    for level in levels:
        described = [*level.words.items(), *((name, option.help) for option in level.options for name in option.names)]
        offered = " ".join(shlex.quote(f"{name}:{_line(said)}" if said else name) for name, said in described)
        files = "; [[ $cur == -* ]] || _files" if level.files else ""
        lines.append(f"        {shlex.quote(level.path)}) offered=({offered}); _describe ringcast offered{files} ;;")
    return _ZSH.format(paths=_paths(levels), values="\n".join(values), levels="\n".join(lines))


def fish(levels: list[Level]) -> str:
    lines = []
    for level in levels:
        begin = f"complete -c ringcast -n {_fish(f'__ringcast_at {_fish(level.path)}')}"
        lines += [f"{begin} -a {_fish(word)} -d {_fish(_line(said))}" for word, said in level.words.items()]
        lines += [f"{begin} {_fish_option(option)}" for option in level.options]
        if level.files:
            lines.append(f"{begin} -F")
    known = " ".join(_fish(level.path) for level in levels if level.path)
    return _FISH.format(paths=known, lines="\n".join(lines))


def _fish_option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = ""
    if option.takes_value:
        value = " -r -F" if option.files else f" -x -a {_fish(' '.join(option.choices))}" if option.choices else " -x"
    return f"{names}{value} -d {_fish(_line(option.help))}"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _valued(levels: list[Level]) -> list[tuple[Level, Option]]:
    return [(level, option) for level in levels for option in level.options if option.takes_value]


def _pattern(level: Level, option: Option) -> str:
    return "|".join(shlex.quote(f"{level.path}|{name}") for name in option.names)


def _compgen(words: tuple[str, ...]) -> str:
    return f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(words))} -- "$cur"))' if words else ":"


def _paths(levels: list[Level]) -> str:
    return "|".join(shlex.quote(level.path) for level in levels if level.path)


def _names(level: Level) -> list[str]:
    return [name for option in level.options for name in option.names]


def _list(words: tuple[str, ...]) -> str:
    return " ".join(map(shlex.quote, words))


def _line(text: str) -> str:
    return " ".join(text.split())


SHELLS: dict[str, Callable[[list[Level]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
