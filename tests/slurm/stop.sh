#!/bin/bash
# Ends what start.sh FOLDER started: its jobs while the controller answers, then the daemons by the ids that they left.
FOLDER=$1
export SLURM_CONF=$FOLDER/etc/slurm.conf

end() {  # NAME [SIGNAL]: asks the daemons of that name to end, and waits; kills what does not end in 5 s
    local file pid
    for file in "$FOLDER"/run/$1.pid; do
        [ -s "$file" ] && kill -"${2:-TERM}" "$(cat "$file")" 2>/dev/null
    done
    for file in "$FOLDER"/run/$1.pid; do
        pid=$(cat "$file" 2>/dev/null) || continue
        for _ in $(seq 100); do
            [ -e "/proc/$pid" ] && [ "$(cut -d' ' -f3 "/proc/$pid/stat" 2>/dev/null)" != Z ] || continue 2
            sleep 0.05
        done
        kill -9 "$pid" 2>/dev/null
    done
}

controller=$(cat "$FOLDER/run/slurmctld.pid" 2>/dev/null)
if [ -n "$controller" ] && kill -0 "$controller" 2>/dev/null; then
    timeout 5 scancel --user="$(id -un)" 2>/dev/null
    for _ in $(seq 60); do
        [ -z "$(timeout 5 squeue --noheader --states=running,completing 2>/dev/null)" ] && break
        sleep 0.05
    done
fi
end slurmctld
end 'slurmd.*'
end slurmdbd
end mariadbd KILL  # nobody wants its data
end munged
exit 0
