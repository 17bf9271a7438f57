# SPDX-License-Identifier: Apache-2.0
# Bash completion of berthctl(1); a test holds it against `berthctl --help`.

_berthctl_workloads() {
    berthctl list --json 2>/dev/null | grep -o '"id":"[^"\\]*"' | cut -d '"' -f 4
}

_berthctl() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local commands="status list top topology snapshot plan explain rank admit mode set evict progress restore check-config reload log metrics"
    local global="--help --version --json"
    local command="" position=0 i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
            -*) ;;
            *)
                if [[ -z $command ]]; then
                    command=${COMP_WORDS[i]}
                else
                    ((position++))
                fi
                ;;
        esac
    done

    case $previous in
        --snapshot | --config | --xml | --request)
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$word"))
            return
            ;;
        --policy)
            COMPREPLY=($(compgen -W "interference straggler spark oversell placement" -- "$word"))
            return
            ;;
        --synthetic | --interval | --hold | --cancel | -o | -n)
            return
            ;;
    esac

    local options="--help --json" values=""
    case $command in
        "")
            options=$global
            values=$commands
            ;;
        list) options+=" --spark" ;;
        top) options+=" --interval -n --once" ;;
        topology) options+=" --xml --synthetic" ;;
        plan) options+=" --snapshot --config --policy -o" ;;
        explain)
            options+=" --snapshot --config"
            ((position == 0)) && values=$(_berthctl_workloads)
            ;;
        rank)
            options+=" --request --snapshot --config -o"
            compopt -o filenames 2>/dev/null
            [[ $word == -* ]] || COMPREPLY=($(compgen -f -- "$word"))
            [[ $word == -* ]] || return
            ;;
        evict)
            options+=" --yes"
            ((position == 0)) && values=$(_berthctl_workloads)
            ;;
        admit)
            options+=" --request --hold --list --cancel"
            compopt -o filenames 2>/dev/null
            [[ $word == -* ]] || COMPREPLY=($(compgen -f -- "$word"))
            [[ $word == -* ]] || return
            ;;
        progress) ((position == 0)) && values="self $(_berthctl_workloads)" ;;
        log) options+=" -n" ;;
        mode) ((position == 0)) && values="observe enforce" ;;
        set)
            options+=" --reset"
            if ((position == 0)); then
                values=$(_berthctl_workloads)
            else
                compopt -o nospace 2>/dev/null
                values="class= service= vcpus= deadline= priority= evictable="
            fi
            ;;
        check-config)
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "$word"))
            return
            ;;
    esac
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$values" -- "$word"))
    fi
}

complete -F _berthctl berthctl
