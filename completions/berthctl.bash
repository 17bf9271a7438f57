# SPDX-License-Identifier: Apache-2.0
# Bash completion of berthctl(1); a test holds it against `berthctl --help`.

# Splits the line before the cursor into _berthctl_line. Unlike COMP_WORDS, it does not split at the "@", ":" and "="
# of names.
_berthctl_split() {
    local rest=${COMP_LINE:0:COMP_POINT} piece i
    _berthctl_line=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
            _berthctl_line+=("")
            rest=${rest#"${rest%%[![:blank:]]*}"}
        fi
        # The cursor may stand within the last one.
        [[ $rest == "$piece"* ]] || piece=$rest
        _berthctl_line[-1]+=$piece
        rest=${rest#"$piece"}
    done
}

# Offers those of its arguments that continue the word. It expands nothing in them, unlike compgen -W: any user who has
# a cgroup can name a workload.
_berthctl_offer() {
    local value quoted
    for value; do
        printf -v quoted '%q' "$value"
        [[ $value == "$word"* || $quoted == "$word"* ]] || continue
        # Readline replaces what follows the last break of words.
        COMPREPLY+=("${quoted#"${word%"${word##*[@:=]}"}"}")
    done
}

_berthctl_workloads() {
    local ids
    mapfile -t ids < <(berthctl list --ids 2>/dev/null)
    _berthctl_offer "$@" "${ids[@]}"
}

_berthctl_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
}

_berthctl() {
    local _berthctl_line
    _berthctl_split
    local word=${_berthctl_line[-1]} previous=${_berthctl_line[-2]}
    local commands="status list top topology snapshot metrics profile plan explain blame log watch record replay rank backtest serve mode set admit evict progress restore suggest check-config reload trial"
    local policies="interference straggler eviction oversell placement quota"
    local kinds="pin unpin set-cpu-quota set-memory-high set-memory-nodes set-cpu-priority set-cpu-burst evict advertise admit restore leaf foreign interrupts"
    local global="--help --version --json --no-pager"
    local command="" position=0 i
    COMPREPLY=()
    for ((i = 1; i < ${#_berthctl_line[@]} - 1; i++)); do
        case ${_berthctl_line[i]} in
            -*) ;;
            *)
                if [[ -z $command ]]; then
                    command=${_berthctl_line[i]}
                else
                    ((position++))
                fi
                ;;
        esac
    done

    case $previous in
        --snapshot | --config | --xml | --request | --file | --compare | --report | --measured | --a | --b)
            _berthctl_files
            return
            ;;
        --policy)
            [[ $command == plan ]] || policies+=" operator foreign-writer"
            # shellcheck disable=SC2086 # one word each
            _berthctl_offer $policies
            return
            ;;
        --kind)
            # shellcheck disable=SC2086
            _berthctl_offer $kinds
            return
            ;;
        --workload)
            _berthctl_workloads
            return
            ;;
        --since)
            _berthctl_offer today yesterday 1h 10min
            return
            ;;
        -o)
            [[ $command == record ]] && _berthctl_files
            return
            ;;
        --observations)
            if [[ $command == replay ]]; then
                _berthctl_files
                return
            fi
            ;;
        --keep)
            _berthctl_offer runq-p99 runq-median cpi throttled progress batch-cpu metric
            return
            ;;
        --metric | --window | --seed | --synthetic | --interval | --for | --hold | --pause | --cancel | --listen | --snapshots | --domain | --max-age | --capacity | --reserve | --horizon | -n)
            return
            ;;
    esac

    local options="--help --json"
    case $command in
        "") options=$global ;;
        status | snapshot) options+=" --no-pager" ;;
        metrics) options+=" --no-pager --openmetrics" ;;
        list) options+=" --no-pager --spark --model --ids" ;;
        profile) options+=" --no-pager --file --sums --config -o" ;;
        top) options+=" --interval -n --once" ;;
        topology) options+=" --no-pager --xml --synthetic" ;;
        plan) options+=" --no-pager --snapshot --config --policy -o" ;;
        explain) options+=" --no-pager --snapshot --config --since --policy --kind" ;;
        blame) options+=" --for" ;;
        rank) options+=" --no-pager --request --snapshot --config -o" ;;
        trial) options+=" --a --b --for --window --metric --keep --seed" ;;
        backtest) options+=" --no-pager --capacity --reserve --horizon" ;;
        serve) options+=" --listen --snapshots --domain --max-age --hold --pause --config -o" ;;
        evict) options+=" --yes" ;;
        admit) options+=" --request --hold --list --cancel" ;;
        log) options+=" --no-pager -n --since --workload --policy --kind" ;;
        watch) options+=" -n --workload --policy --kind" ;;
        record) options+=" -o --for --observations" ;;
        replay) options+=" --no-pager --config --compare --report --measured --observations -o -n" ;;
        set) options+=" --reset" ;;
        suggest) options+=" --no-pager --for" ;;
        check-config) options+=" --no-unit" ;;
    esac
    if [[ $word == -* ]]; then
        # shellcheck disable=SC2086
        _berthctl_offer $options
        return
    fi
    case $command in
        "")
            # shellcheck disable=SC2086
            _berthctl_offer $commands
            ;;
        explain | evict | blame) ((position == 0)) && _berthctl_workloads ;;
        progress) ((position == 0)) && _berthctl_workloads self ;;
        replay) ((position == 0)) && _berthctl_files ;;
        profile)
            if ((position == 0)); then
                _berthctl_offer list show export import forget fit
            elif [[ " ${_berthctl_line[*]} " == *" import "* || " ${_berthctl_line[*]} " == *" fit "* ]]; then
                _berthctl_files
            fi
            ;;
        backtest) if ((position == 0)); then _berthctl_offer memory; else _berthctl_files; fi ;;
        rank | admit | check-config) _berthctl_files ;;
        mode) ((position == 0)) && _berthctl_offer observe enforce ;;
        set)
            if ((position == 0)); then
                _berthctl_workloads
            elif [[ $word == class=* ]]; then
                _berthctl_offer class=latency-sensitive class=best-effort
            elif [[ $word == isolation=* ]]; then
                _berthctl_offer isolation=shared isolation=vcpus isolation=cores
            elif [[ $word == evictable=* ]]; then
                _berthctl_offer evictable=true evictable=false
            elif [[ $word == force=* ]]; then
                _berthctl_offer force=true force=false
            else
                compopt -o nospace 2>/dev/null
                _berthctl_offer class= service= vcpus= isolation= deadline= priority= evictable= force=
            fi
            ;;
    esac
    return 0
}

complete -F _berthctl berthctl
