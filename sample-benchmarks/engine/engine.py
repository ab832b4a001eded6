#!/usr/bin/env python3
"""An engine of kind exec: runs plans on another machine, which it reaches by a command.

    engine.py [--dir DIR] -- ssh -T -o BatchMode=yes bench-7 sh -s
    engine.py [--dir DIR] -- sh -s                  # this machine, to try it

The command gets a script of POSIX sh on its standard input, and runs it there. The other
machine needs Linux, sh, date of GNU, tail, head, setsid and base64. All state is in DIR there, below
the home directory unless it is absolute: one folder for each attempt. So any number of
copies of this program may run and end at any time. See docs/engines.md for the protocol.
"""

import base64
import json
import shlex
import subprocess
import sys

PAGE = 256 << 10  # bytes of a log that one answer has

# Functions of the other scripts. A process is known by its ID, the boot of its machine and its start, since another one may have its ID
# later, at the latest after the next boot.
FUNCTIONS = r"""
# Prints the boot of this machine, and when a process started, in ticks of that boot.
identity() (
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || exit 1
  set -- ${stat##*) } # the name, which comes before, may have spaces
  echo "$(cat /proc/sys/kernel/random/boot_id) ${20}"
)
# Whether the runner of an attempt is alive. Its ID, which is that of its process group, is in $pid then. Earlier versions wrote no born.
alive() {
  pid=$(cat "$1/pid" 2>/dev/null) && now=$(identity "$pid") && [ "$now" = "$(cat "$1/born" 2>/dev/null || echo "$now")" ]
}
"""

# Runs the benchmark once, whoever starts it how often: who makes the folder "began" does it. In the end it kills what is left of its
# process group. At the deadline a process of the same group ends the group.
RUNNER = FUNCTIONS + r"""
cd "$(dirname "$0")" || exit 1
mkdir began 2>/dev/null || exit 0
identity $$ > born
echo $$ > pid.new && mv pid.new pid
date -u +%FT%T.%NZ > started.new && mv started.new started
trap : TERM
if [ "$deadline" -gt 0 ]; then
  (
    trap '' TERM
    sleep "$deadline"
    [ -e ended ] && exit
    [ -e stopped ] || { date -u +%FT%T.%NZ > late.new && mv late.new late; }
    kill -s TERM -- -$$
    sleep "$grace"
    kill -s KILL -- -$$
  ) > /dev/null 2>&1 < /dev/null &
fi
rm -f out && mkfifo out
(
  trap '' TERM
  while IFS= read -r line || [ -n "$line" ]; do printf '%s %s\n' "$(date -u +%FT%T.%NZ)" "$line"; done < out >> log
) &
stamps=$!
(cd files && exec sh ../command) > out 2>&1 < /dev/null
code=$?
wait $stamps
while kill -0 $stamps 2>/dev/null; do wait $stamps; done
date -u +%FT%T.%NZ > ended.new && mv ended.new ended
echo $code > exit.new && mv exit.new exit
kill -s KILL -- -$$
"""

# Prints a line for each attempt: its name, and what the files in its folder say.
STATES = FUNCTIONS + r"""
for d in */; do
  d=${d%/}
  [ -e "$d/record" ] || continue
  alive=no
  alive "$d" && alive=yes
  if [ -e "$d/deleting" ] && [ $alive = no ]; then rm -rf "$d"; continue; fi
  began=no; [ -d "$d/began" ] && began=yes
  stopped=no; [ -e "$d/stopped" ] && stopped=yes
  deleting=no; [ -e "$d/deleting" ] && deleting=yes
  old=no; [ -n "$(find "$d/began" -maxdepth 0 -mmin +1 2>/dev/null)" ] && old=yes
  # The runner writes started, late, ended, exit: read the other way round, each has those before it.
  code=$(cat "$d/exit" 2>/dev/null || echo -)
  ended=$(cat "$d/ended" 2>/dev/null || echo -)
  late=$(cat "$d/late" 2>/dev/null || echo -)
  started=$(cat "$d/started" 2>/dev/null || echo -)
  echo "$d $began $alive $stopped $deleting $old $started $late $ended $code $(date -u +%FT%T.%NZ) $(cat "$d/record")"
done
"""

# Ends the processes of an attempt, and kills them after their time. An attempt that has not
# begun never does.
STOP = FUNCTIONS + r"""
[ -d "$name" ] || exit 0
mkdir "$name/began" 2>/dev/null
: > "$name/stopped"
if alive "$name"; then
  kill -s TERM -- "-$pid" 2>/dev/null
  setsid sh -c "$functions"'sleep "$2"; alive "$1" && kill -s KILL -- "-$pid"' sh "$name" "$grace" > /dev/null 2>&1 < /dev/null &
fi
"""

# Prints whether the log of an attempt has all its lines, and a page of it.
LOG = FUNCTIONS + r"""
end=no
if [ -e "$name/exit" ] || { [ -e "$name/pid" ] && ! alive "$name"; }; then end=yes; fi
echo $end
[ -e "$name/log" ] && tail -c +$((at + 1)) "$name/log" | head -c $page || true
"""


class Refused(Exception):
    """What is asked for fails each time."""


def name_of(request):
    return "%s-%d" % (request["run"], request["attempt"])


class Engine:
    def __init__(self, folder, command):
        self.folder, self.command = folder, command

    def remote(self, script, **variables):
        """Runs a script in the folder on the other machine, and returns what it prints."""
        head = 'cd "$HOME" && mkdir -p %s && cd %s || exit 1\n' % ((shlex.quote(self.folder),) * 2)
        head += "".join("%s=%s\n" % (k, shlex.quote(str(v))) for k, v in variables.items())
        done = subprocess.run(self.command, input=(head + script).encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise RuntimeError("%s: exit code %d: %s" % (self.command[0], done.returncode, done.stderr.decode(errors="replace").strip()))
        return done.stdout

    def start(self, request):
        plan = request["plan"]
        if plan.get("pull"):
            raise Refused("this engine brings no data sets and no sent code: leave out data.sources")
        name = name_of(request)
        script = ["umask 077", 'new=".new-$name-$$"; rm -rf "$new"; mkdir -p "$new/files"']
        for f in plan["files"]:
            if f["name"].startswith("/") or ".." in f["name"].split("/"):
                raise Refused("a file of the plan is outside its folder: " + f["name"])
            path = '"$new"/files/' + shlex.quote(f["name"])
            script.append('mkdir -p "$(dirname %s)"' % path)
            script.append("echo %s | base64 -d > %s; chmod %o %s" % (base64.b64encode(f["text"].encode()).decode(), path, f["mode"], path))
        for file, text in (("run", self.runner_of(plan)), ("command", self.command_of(plan)), ("record", self.pack(plan))):
            script.append('echo %s | base64 -d > "$new/%s"' % (base64.b64encode(text.encode()).decode(), file))
        # Whoever renames first has started it; a folder is not renamed over one that has files.
        script.append('if [ ! -e "$name" ] && mv -T "$new" "$name" 2>/dev/null; then echo new; else rm -rf "$new"; echo exists; fi')
        script.append('[ -e "$name/stopped" ] || setsid sh "$name/run" > /dev/null 2>&1 < /dev/null &')
        exists = self.remote("\n".join(script), name=name).strip() == b"exists"
        states = [s for s in self.states(request)["states"] if (s["run"], s["attempt"]) == (request["run"], request["attempt"])]
        return {"exists": exists, "states": states}

    @staticmethod
    def command_of(plan):
        """The script that becomes the benchmark, in the folder of its files."""
        lines = ["dir=$(pwd)"]
        quote = lambda text: '"$dir"'.join(shlex.quote(part) if part else "" for part in text.split("{dir}")) or "''"
        for e in plan["env"]:
            lines.append("export %s=%s" % (e["name"], quote(e["value"])))
        command = " ".join(quote(a) for a in plan["command"])
        return "\n".join(lines + ["exec " + command, ""])

    @staticmethod
    def runner_of(plan):
        """The script that runs the benchmark, within its deadline."""
        return "deadline=%d grace=%d\n%s" % (plan.get("deadline", 0), plan["grace"], RUNNER)

    @staticmethod
    def pack(plan):
        record = {"record": plan["record"], "grace": plan["grace"]}
        return base64.b64encode(json.dumps(record).encode()).decode()

    def states(self, _request):
        states = []
        for line in self.remote(STATES).decode().splitlines():
            name, began, alive, stopped, deleting, old, started, late, ended, code, now, record = line.split(" ")
            run, _, attempt = name.rpartition("-")
            s = {"run": run, "attempt": int(attempt), "phase": "pending", "record": json.loads(base64.b64decode(record))["record"]}
            if started != "-":
                s.update(phase="running", started=started)
            over = ended != "-" and code != "-"
            if late != "-" and (over or alive == "no"):
                s.update(phase="failed", reason="DeadlineExceeded", message="ran longer than its deadline", ended=ended if over else late)
            elif over:
                s.update(phase="failed" if int(code) else "succeeded", exit_code=int(code), ended=ended)
            elif stopped == "yes" and alive == "no":
                s.update(phase="failed", reason="Stopped", message="stopped before it began, or killed after its grace period", ended=now)
            elif began == "yes" and alive == "no" and old == "yes":
                s.update(phase="failed", reason="Lost", message="its processes are gone, as after a restart of the machine", ended=now)
            if deleting == "yes":
                s["deleting"] = True
            states.append(s)
        return {"states": states}

    def grace_of(self, name):
        record = self.remote('cat "$name/record" 2>/dev/null || true', name=name)
        return json.loads(base64.b64decode(record))["grace"] if record.strip() else 0

    def stop(self, request):
        name = name_of(request)
        self.remote(STOP, name=name, grace=self.grace_of(name), functions=FUNCTIONS)
        return {}

    def delete(self, request):
        name = name_of(request)
        self.remote('[ -d "$name" ] && : > "$name/deleting"\n' + STOP, name=name, grace=self.grace_of(name), functions=FUNCTIONS)
        return {}

    def log(self, request):
        name, at = name_of(request), int(request.get("cursor") or 0)
        text = self.remote(LOG, name=name, at=at, page=PAGE)
        end, _, text = text.partition(b"\n")
        whole = text[: text.rfind(b"\n") + 1]
        if len(text) == PAGE and not whole:  # a line that is longer than a page
            whole = text
        lines = []
        for line in whole.decode(errors="replace").rstrip("\n").split("\n") if whole else []:
            time, _, rest = line.partition(" ")
            lines.append({"time": time, "text": rest})
        return {"lines": lines, "cursor": str(at + len(whole)), "end": end == b"yes" and not whole}


def main(args):
    folder = ".bai-engine"
    if args[:1] == ["--dir"]:
        folder, args = args[1], args[2:]
    if args[:1] != ["--"] or len(args) < 2:
        sys.exit(__doc__)
    engine = Engine(folder, args[1:])
    calls = {"start": engine.start, "states": engine.states, "stop": engine.stop, "delete": engine.delete, "log": engine.log}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["call"] not in calls:
                raise Refused("this engine has no call " + request["call"])
            answer = calls[request["call"]](request)
        except Refused as e:
            answer = {"error": {"refused": True, "message": str(e)}}
        except (RuntimeError, OSError) as e:
            answer = {"error": {"message": str(e)}}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
