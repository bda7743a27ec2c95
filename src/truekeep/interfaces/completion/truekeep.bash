# What the shell completes of truekeep. Made by `make docs` from the commands; do not edit.

_truekeep_table() {
    words= flags= valued= argument=
    case $1 in
    '')
        words='init connect disconnect adopt wake checkpoint handoff log heartbeat decide project correction gating hook mcp ingest review card search get resolve index transcripts verify claims repos reconcile tidy history why undo sync host schedule alf status doctor serve completion'
        flags='-V --version --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'init')
        words=''
        flags='--default --json -h --help'
        valued='--repo: -w:@dir --workspace:@dir'
        argument='@dir'
        ;;
    'connect')
        words='machine'
        flags='--check --user --project --dry-run --yes --json -h --help'
        valued='--harness:claude,codex,openclaw --repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'connect machine')
        words=''
        flags='--check --dry-run --yes --json -h --help'
        valued='--repo: --via:rsync,rclone,git --remote: --name: --host-key: --host: --ssh-option: --wait: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'disconnect')
        words=''
        flags='--all --user --project --dry-run --yes --json -h --help'
        valued='--harness:claude,codex,openclaw --repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'adopt')
        words=''
        flags='--dry-run --json -h --help'
        valued='--from:@dir --repo:@dir -w:@dir --workspace:@dir'
        argument='claude,codex'
        ;;
    'wake')
        words=''
        flags='--json -h --help'
        valued='--budget: --for:claude,codex,openclaw --repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'checkpoint')
        words=''
        flags='--json -h --help'
        valued='--last-action: --system-state: --scope-rules: --dev-model: --next-action: --summary: --now: --next: --blocker: --decision: --change: --project: --subagent: --repo:@dir --writer: -w:@dir --workspace:@dir'
        argument='-'
        ;;
    'handoff')
        words='new lint list'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'handoff new')
        words=''
        flags='--update --json -h --help'
        valued='--title: --type:setup,workflow,bugfix,decision,security,preference,research,project-context --summary: --fact: --evidence: --card:@cards --document: --topic: --category: --tag: --content: --writer: --repo:@dir --slug: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'handoff lint')
        words=''
        flags='--codes --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@file'
        ;;
    'handoff list')
        words=''
        flags='--json -h --help'
        valued='--repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'log')
        words=''
        flags='--json -h --help'
        valued='--repo:@dir --writer: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'heartbeat')
        words=''
        flags='--json -h --help'
        valued='--now: --next: --blocker: --repo:@dir --writer: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'decide')
        words=''
        flags='--json -h --help'
        valued='--repo:@dir --writer: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'project')
        words=''
        flags='--json -h --help'
        valued='--repo:@dir --writer: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'correction')
        words='add list'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'correction add')
        words=''
        flags='--json -h --help'
        valued='--instead: --applies-to: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'correction list')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'gating')
        words='add list'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'gating add')
        words=''
        flags='--json -h --help'
        valued='--when: --do: --because: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'gating list')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'hook')
        words=''
        flags='-h --help'
        valued='--for: -w:@dir --workspace:@dir'
        argument='session-start,agent-bootstrap,user-prompt-submit,pre-compact,stop,session-end'
        ;;
    'mcp')
        words=''
        flags='--http -h --help'
        valued='--port: --host: --token-env: --writer: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'ingest')
        words=''
        flags='--promote-cards --route-documents --dry-run -q --quiet --exit-code --watch --json -h --help'
        valued='--repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'review')
        words='list show walk approve reject edit retry prune'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'review list')
        words=''
        flags='--json -h --help'
        valued='--why: --writer: --repo: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'review show')
        words=''
        flags='--json -h --help'
        valued='--target: -w:@dir --workspace:@dir'
        argument='@drafts'
        ;;
    'review walk')
        words=''
        flags='-h --help'
        valued='--why: --writer: --repo: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'review approve')
        words=''
        flags='--anyway --json -h --help'
        valued='--target: -w:@dir --workspace:@dir'
        argument='@drafts'
        ;;
    'review reject')
        words=''
        flags='--json -h --help'
        valued='--reason: -w:@dir --workspace:@dir'
        argument='@drafts'
        ;;
    'review edit')
        words=''
        flags='--stdin --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@drafts'
        ;;
    'review retry')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@drafts'
        ;;
    'review prune')
        words=''
        flags='--dry-run --force --json -h --help'
        valued='--older-than: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'card')
        words='list show write confirm drop'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'card list')
        words=''
        flags='--json -h --help'
        valued='--category: --tag: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'card show')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@cards'
        ;;
    'card write')
        words=''
        flags='--anyway --dry-run --json -h --help'
        valued='--topic: --category: --tag: --file:@file --update:@cards --repo:@dir -w:@dir --workspace:@dir'
        argument=''
        ;;
    'card confirm')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@cards'
        ;;
    'card drop')
        words=''
        flags='--yes --json -h --help'
        valued='--reason: -w:@dir --workspace:@dir'
        argument='@cards'
        ;;
    'search')
        words=''
        flags='--verified --explain --json -h --help'
        valued='-n: --limit: --store:cards,documents,logs,transcripts,archive --since: --repo: --verdict:refuted,changed,holds,unchecked --ranking:truekeep,openclaw --mmr: --half-life: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'get')
        words=''
        flags='--json -h --help'
        valued='--from: --lines: -w:@dir --workspace:@dir'
        argument='@memory'
        ;;
    'resolve')
        words=''
        flags='--json -h --help'
        valued='-n: --limit: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'index')
        words=''
        flags='--rebuild --watch --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'transcripts')
        words='sync list show'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'transcripts sync')
        words=''
        flags='--force --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'transcripts list')
        words=''
        flags='--json -h --help'
        valued='--harness:claude,codex,openclaw --repo: --since: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'transcripts show')
        words=''
        flags='--json -h --help'
        valued='--turns: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'verify')
        words=''
        flags='--changed --fix --dry-run --stdin --online --all --exit-code --json -h --help'
        valued='--repo:@dir -w:@dir --workspace:@dir'
        argument='@file'
        ;;
    'claims')
        words=''
        flags='--all --json -h --help'
        valued=''
        argument='@file'
        ;;
    'repos')
        words='match'
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'repos match')
        words=''
        flags='--fix --dry-run --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@file'
        ;;
    'reconcile')
        words=''
        flags='--fix --force --no-code --exit-code --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'tidy')
        words='decay duplicates promote'
        flags='--dry-run --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'tidy decay')
        words=''
        flags='--dry-run --archive --all --force --exit-code --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'tidy duplicates')
        words=''
        flags='--dry-run --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'tidy promote')
        words=''
        flags='--dry-run --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'history')
        words=''
        flags='--all --json -h --help'
        valued='-n: --limit: --who: --machine: --verb: --since: --until: -w:@dir --workspace:@dir'
        argument='@memory'
        ;;
    'why')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@memory'
        ;;
    'undo')
        words=''
        flags='--dry-run --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'sync')
        words='add key remove run status'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'sync add')
        words=''
        flags='--json -h --help'
        valued='--via:rsync,rclone,git --host: --port: --repo: --repos: --remote: --ssh-option: --flag: --host-key: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'sync key')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'sync remove')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@routes'
        ;;
    'sync run')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument='@routes'
        ;;
    'sync status')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'host')
        words='show take release'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'host show')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'host take')
        words=''
        flags='--yes --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'host release')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'schedule')
        words='install status remove run'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'schedule install')
        words=''
        flags='--json -h --help'
        valued='--every: --quiet-hours: --system:auto,systemd,launchd,cron -w:@dir --workspace:@dir'
        argument=''
        ;;
    'schedule status')
        words=''
        flags='--exit-code --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'schedule remove')
        words=''
        flags='--json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'schedule run')
        words=''
        flags='--now --timer --json -h --help'
        valued='--quiet-hours: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'alf')
        words='export delta apply import validate show purge diff map'
        flags='-h --help'
        valued=''
        argument=''
        ;;
    'alf export')
        words=''
        flags='--plain --transcripts --embeddings --no-embeddings --replace --json -h --help'
        valued='-o:@file --output:@file --ids:content,positional --base:@file --encrypt: --identity:@file -w:@dir --workspace:@dir'
        argument=''
        ;;
    'alf delta')
        words=''
        flags='--transcripts --embeddings --no-embeddings --replace --json -h --help'
        valued='--since:@file -o:@file --output:@file --ids:content,positional --encrypt: --identity:@file -w:@dir --workspace:@dir'
        argument=''
        ;;
    'alf apply')
        words=''
        flags='--replace --json -h --help'
        valued='-o:@file --output:@file --encrypt: --identity:@file'
        argument='@file'
        ;;
    'alf import')
        words=''
        flags='--dry-run --replace --keep --salvage --trust --skip-flagged --large --json -h --help'
        valued='--identity:@file -w:@dir --workspace:@dir'
        argument='@file'
        ;;
    'alf validate')
        words=''
        flags='--large --json -h --help'
        valued='--identity:@file'
        argument='@file'
        ;;
    'alf show')
        words=''
        flags='--records --large --json -h --help'
        valued='--identity:@file'
        argument='@file'
        ;;
    'alf purge')
        words=''
        flags='--replace --json -h --help'
        valued='--record: --reason:user_request,security_incident,gdpr_article_17,ccpa_deletion -o:@file --output:@file --encrypt: --identity:@file'
        argument='@file'
        ;;
    'alf diff')
        words=''
        flags='--large --exit-code --json -h --help'
        valued='--identity:@file'
        argument='@file'
        ;;
    'alf map')
        words=''
        flags='--write --replace --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'status')
        words='closeout problems pipeline'
        flags='--exit-code --json -h --help'
        valued='--days: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'status closeout')
        words=''
        flags='--json -h --help'
        valued='--days:'
        argument=''
        ;;
    'status problems')
        words=''
        flags='--exit-code --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'status pipeline')
        words=''
        flags='--exit-code --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'doctor')
        words=''
        flags='--fix --json -h --help'
        valued='-w:@dir --workspace:@dir'
        argument=''
        ;;
    'serve')
        words=''
        flags='--read-only --open -h --help'
        valued='--port: --host: --name: -w:@dir --workspace:@dir'
        argument=''
        ;;
    'completion')
        words=''
        flags='--json -h --help'
        valued=''
        argument='bash,zsh,fish'
        ;;
    esac
}

_truekeep_add() {  # each line of standard input that begins as the word does
    local line
    while IFS= read -r line; do
        case $line in "$cur"*) COMPREPLY+=("$line") ;; esac
    done
}

_truekeep_kind() {
    case $1 in
    '') ;;
    @dir) compopt -o filenames 2>/dev/null; _truekeep_add < <(compgen -d -- "$cur") ;;
    @file) compopt -o filenames 2>/dev/null; _truekeep_add < <(compgen -f -- "$cur") ;;
    @memory) compopt -o nospace 2>/dev/null; _truekeep_ask memory ;;
    @*) _truekeep_ask "${1#@}" ;;
    *) _truekeep_add < <(printf '%s\n' ${1//,/ }) ;;
    esac
}

_truekeep_ask() {
    _truekeep_add < <(command "$program" completion --values "$1" "$cur" "$workspace" 2>/dev/null)
}

_truekeep() {
    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} workspace='' path='' kind='' is_value='' word entry i=1
    local words flags valued argument
    case $program in '~'/*) program=$HOME/${program#??} ;; esac
    COMPREPLY=()
    _truekeep_table ''
    while [ $i -lt $COMP_CWORD ]; do
        word=${COMP_WORDS[i]}
        i=$((i + 1))
        is_value=''
        case $word in
        -*)
            for entry in $valued; do
                [ "${entry%%:*}" = "$word" ] || continue
                [ "${COMP_WORDS[i]-}" = '=' ] && i=$((i + 1))
                if [ $i -ge $COMP_CWORD ]; then
                    is_value=1 kind=${entry#*:}
                    [ "$cur" = '=' ] && cur=''
                fi
                case $word in -w | --workspace) workspace=${COMP_WORDS[i]-} ;; esac
                i=$((i + 1))
                break
            done
            ;;
        *)
            for entry in $words; do
                [ "$entry" = "$word" ] || continue
                path=${path:+$path }$word
                _truekeep_table "$path"
                break
            done
            ;;
        esac
    done
    if [ -n "$is_value" ]; then
        _truekeep_kind "$kind"
    elif [ "${cur#-}" != "$cur" ]; then
        _truekeep_add < <(printf '%s\n' $flags; for entry in $valued; do printf '%s\n' "${entry%%:*}"; done)
    elif [ -n "$words" ]; then
        _truekeep_add < <(printf '%s\n' $words)
    else
        _truekeep_kind "$argument"
    fi
}

complete -F _truekeep truekeep
