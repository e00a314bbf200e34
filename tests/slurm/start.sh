#!/bin/bash
# A real Slurm cluster of emulated GPU nodes on this machine, on loopback, as root or as a plain user.
#   start.sh FOLDER PORT [NODES]     NODES is even; ports PORT .. PORT+NODES+2 must be free
# Half of the nodes have 8 GPUs of type h100, each in 4 shards, half 8 of type h200. Needs slurmctld, slurmd, munged and Slurm's commands.
# ACCOUNTING=1 also starts a MariaDB and slurmdbd, without which Slurm does not track GPUs in its TRES.
# Afterwards: export SLURM_CONF=FOLDER/etc/slurm.conf. stop.sh FOLDER ends everything.
set -eu
FOLDER=$1 PORT=$2 NODES=${3:-16}
HALF=$((NODES / 2)) HOST=$(hostname -s) ME=$(id -un)
DBD_PORT=$((PORT + NODES + 1)) SQL_PORT=$((PORT + NODES + 2))
mkdir -p "$FOLDER"/{etc,state,spool,log,run,dev}
cd "$FOLDER"

fail() { echo "$1"; tail -n 5 "$2" 2>/dev/null; exit 1; }
number() { printf '%03d' "$1"; }
until_true() {  # SECONDS COMMAND...: polls
    local end=$((SECONDS + $1)); shift
    until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done
}

# What a driver would have made. Plain files will do: nothing opens them.
for i in 0 1 2 3 4 5 6 7; do : > "dev/gpu$i"; done

[ -e etc/munge.key ] || { head -c 128 /dev/urandom > etc/munge.key; chmod 400 etc/munge.key; }
munged --force --socket="$FOLDER/run/munge.sock" --key-file="$FOLDER/etc/munge.key" --pid-file="$FOLDER/run/munged.pid" \
    --log-file="$FOLDER/log/munged.log" --seed-file="$FOLDER/run/munged.seed" || fail "munged" log/munged.log

ACCOUNTING_LINES=""
if [ "${ACCOUNTING:-0}" = 1 ]; then
    ACCOUNTING_LINES="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$DBD_PORT
AccountingStoragePass=$FOLDER/run/munge.sock
AccountingStorageTRES=gres/gpu,gres/gpu:h100,gres/gpu:h200"
fi
cat > etc/slurm.conf <<CONF
ClusterName=emulated
SlurmctldHost=$HOST(127.0.0.1)
SlurmctldPort=$PORT
AuthType=auth/munge
AuthInfo=socket=$FOLDER/run/munge.sock
SlurmUser=$ME
SlurmdUser=$ME
StateSaveLocation=$FOLDER/state
SlurmdSpoolDir=$FOLDER/spool/%n
SlurmctldPidFile=$FOLDER/run/slurmctld.pid
SlurmdPidFile=$FOLDER/run/slurmd.%n.pid
SlurmctldLogFile=$FOLDER/log/slurmctld.log
SlurmdLogFile=$FOLDER/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,shard
ReturnToService=2
KillWait=1
SlurmdParameters=config_overrides
$ACCOUNTING_LINES
NodeName=DEFAULT CPUs=128 Sockets=2 CoresPerSocket=64 ThreadsPerCore=1 RealMemory=2000000
NodeName=node[001-$(number $HALF)] NodeHostname=$HOST NodeAddr=127.0.0.1 Port=[$((PORT + 1))-$((PORT + HALF))] Gres=gpu:h100:8,shard:32
NodeName=node[$(number $((HALF + 1)))-$(number "$NODES")] NodeHostname=$HOST NodeAddr=127.0.0.1 Port=[$((PORT + HALF + 1))-$((PORT + NODES))] Gres=gpu:h200:8
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP DefMemPerGPU=100000 DefMemPerCPU=1000
PartitionName=h200 Nodes=node[$(number $((HALF + 1)))-$(number "$NODES")] MaxTime=2-00:00:00 State=UP DefMemPerCPU=1000
CONF
cat > etc/gres.conf <<CONF
NodeName=node[001-$(number $HALF)] Name=gpu Type=h100 File=$FOLDER/dev/gpu[0-7]
NodeName=node[001-$(number $HALF)] Name=shard Count=32
NodeName=node[$(number $((HALF + 1)))-$(number "$NODES")] Name=gpu Type=h200 File=$FOLDER/dev/gpu[0-7]
CONF
# Newer daemons want control groups unless told not to; older ones do not know the word.
[[ $(slurmctld -V) =~ \ ([0-9]+)\.[0-9]+ ]] && [ "${BASH_REMATCH[1]}" -ge 23 ] && echo "CgroupPlugin=disabled" > etc/cgroup.conf
export SLURM_CONF=$FOLDER/etc/slurm.conf

start_accounting() {
    local quick="--innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-log-file-size=8M"
    local as_root="" socket=$FOLDER/run/sql.sock
    [ "$(id -u)" = 0 ] && as_root=--user=root
    [ -d sql ] || mariadb-install-db --no-defaults --datadir="$FOLDER/sql" --auth-root-authentication-method=normal \
        --skip-test-db $quick $as_root > log/sql-install.log 2>&1 || fail "mariadb-install-db" log/sql-install.log
    mariadbd --no-defaults $as_root --datadir="$FOLDER/sql" --socket="$socket" --bind-address=127.0.0.1 \
        --port=$SQL_PORT --pid-file="$FOLDER/run/mariadbd.pid" --innodb-buffer-pool-size=64M \
        $quick > log/mariadbd.log 2>&1 &
    until_true 15 mariadb-admin --no-defaults -S "$socket" -uroot ping || fail "mariadbd" log/mariadbd.log
    mariadb --no-defaults -S "$socket" -uroot -e "
        create database if not exists slurm_acct_db;
        create user if not exists slurm@127.0.0.1 identified by 'slurm';
        create user if not exists slurm@localhost identified by 'slurm';
        grant all on slurm_acct_db.* to slurm@127.0.0.1;
        grant all on slurm_acct_db.* to slurm@localhost"
    cat > etc/slurmdbd.conf <<CONF
AuthType=auth/munge
AuthInfo=socket=$FOLDER/run/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$DBD_PORT
SlurmUser=$ME
LogFile=$FOLDER/log/slurmdbd.log
PidFile=$FOLDER/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$SQL_PORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
CONF
    chmod 600 etc/slurmdbd.conf
    slurmdbd || fail "slurmdbd" log/slurmdbd.log
    until_true 20 grep -q 'slurmdbd version .* started' log/slurmdbd.log || fail "slurmdbd" log/slurmdbd.log
}
[ "${ACCOUNTING:-0}" = 1 ] && start_accounting

slurmctld -i || fail "slurmctld" log/slurmctld.log
for i in $(seq 1 "$NODES"); do
    mkdir -p "spool/node$(number "$i")"
    slurmd -N "node$(number "$i")" || fail "slurmd" "log/slurmd.node$(number "$i").log"
done
all_idle() { [ "$(sinfo --noheader --Node --partition=all --format=%t | grep -c '^idle$')" = "$NODES" ]; }
until_true 30 all_idle || { sinfo --Node; fail "the nodes did not become idle" log/slurmctld.log; }
echo "up: $NODES nodes"
