"""A training program that lies in a way that its hyperparameters choose.

Before each line with a metric it writes the truth to a journal of its own. Checkers compare the controller's answers
with this journal.
"""

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time

HPS = json.loads(os.environ["SM_HPS"])
SEED, EPOCHS, DELAY, GOAL, KINDS = str(HPS["fuzz"]).split(";")
JOB = os.environ["TRAINING_JOB_NAME"]
HOST = os.environ.get("SM_CURRENT_HOST", "algo-1")
CHECKPOINTS = os.path.join(os.environ["SM_ROOT"], "checkpoints")
EPOCHS = int(HPS.get("epochs", EPOCHS))
DELAY = int(DELAY) / 1000
JOURNAL = os.open(os.path.join(os.environ["FUZZ_JOURNAL"], f"{JOB}.{HOST}"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
# The configuration decides how a trial behaves, so a retry of the trial lies in the same way.
CONFIGURATION = json.dumps({k: v for k, v in HPS.items() if k != "epochs"}, sort_keys=True)
RNG = random.Random(hashlib.sha256((SEED + CONFIGURATION).encode()).hexdigest())
KIND = RNG.choice(KINDS.split(","))


def journal(**entry):
    entry["t"] = time.time()
    os.write(JOURNAL, (json.dumps(entry) + "\n").encode())


def write(data, stream=1):
    if isinstance(data, str):
        data = data.encode()
    while data:
        data = data[os.write(stream, data):]


def value(epoch):
    """A smooth curve with some noise, different for each configuration; below 2 and above 0."""
    noise = random.Random(f"{SEED}{CONFIGURATION}{epoch}").random()
    quality = abs(float(HPS["x"]) - 0.3) + (0.2 if HPS["c"] == "a" else 0)
    loss = 0.2 + 0.5 * quality + 0.8 / (epoch + 1) + 0.05 * noise
    if KIND == "ties":
        loss = 0.75
    return loss if GOAL == "Minimize" else 2 - loss


def better(epoch):
    """A value that would win, for lines that must not count."""
    return -1000 - epoch if GOAL == "Minimize" else 1000 + epoch


def emit(epoch, text, before="", after="", end="\n", stream=1):
    journal(epoch=epoch, value=str(text))
    write(f"{before}epoch={epoch} loss={text}{after}{end}", stream)


def flood(epoch, line):
    """Far more values than a curve has epochs; the best ones are neither the first nor the last."""
    texts = [str(better(0) * (1 - abs(n - 15_000) / 20_000) / 1_000) for n in range(30_000)]
    now = time.time()
    os.write(JOURNAL, "".join(json.dumps({"epoch": epoch, "value": text, "t": now}) + "\n" for text in texts).encode())
    write("".join(line.format(epoch=epoch, text=text) for text in texts))


def load():
    try:
        with open(os.path.join(CHECKPOINTS, "state")) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def save(epoch):
    try:
        temporary = os.path.join(CHECKPOINTS, "state.new")
        with open(temporary, "w") as file:
            file.write(str(epoch))
        os.replace(temporary, os.path.join(CHECKPOINTS, "state"))
    except OSError:
        pass


def stray(seconds, new_session, script=""):
    """A process that outlives the program and keeps its output open."""
    code = script + f"\nimport time; time.sleep({seconds})"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=new_session,
                     env={**os.environ, "FUZZ_STRAY": "session" if new_session else "group"})


def on_term(number, frame):
    journal(term=True)
    if KIND == "afterterm":
        emit(EPOCHS + 5, better(0))
        emit(1, better(1))
        sys.exit(0)
    if KIND != "noterm":
        os._exit(143)


def garbage(epoch):
    """Output around the epoch that must neither count nor do harm."""
    if KIND == "flood" and epoch == 2:
        write("".join(f"line {n} of a flood, step={n} accuracy=0.{n}\n" for n in range(100_000)))
    if KIND == "values" and epoch == 2:
        flood(epoch, "epoch={epoch} loss={text}\n")
    if KIND == "longline":
        write(("y" * 1_000_000 + "\n") * 3)
    if KIND == "binary":
        write(b"\xff\xfe\xc3\x28\x00\x00 \x1b[31mred\x1b[0m \x1b[2J\x1b[999D\x08\x08\x08 \xed\xa0\x80\n")
    if KIND == "mimic":
        write('{"TrainingJobStatus":"Completed","BestValue":-5,"Value":-5}\n'
              f"trial 0 is over: its program completed, epoch 9, last {better(0)}\n"
              f"ended: Completed\n[#quality_metric] host=algo-1, train other_metric={better(1)}\nERROR panicked at\n")
    if KIND == "decoys":
        # Other text gives no value: a unit, no number, a separator, digits of another script.
        for text in ["0.5s", "abc", "1_000", "0x1F", "--5", "1e", "...1.", "\u0661", "+-1", "e5", "5e5e5"]:
            write(f"epoch={epoch} loss={text}\n")


def train():
    start = load()
    if KIND == "badresume":
        start = RNG.choice([0, start, max(0, start - 1)])
    if start >= EPOCHS:
        emit(EPOCHS, repr(value(EPOCHS)))
    crash_at = RNG.randint(1, EPOCHS)
    held = ""
    for epoch in range(start + 1, EPOCHS + 1):
        if KIND == "sleep" and epoch == crash_at:
            time.sleep(3600)
        time.sleep(DELAY * RNG.choice([0.5, 1, 1, 2]))
        garbage(epoch)
        text = repr(value(epoch))
        if KIND == "nonfinite" and RNG.random() < 0.6:
            text = RNG.choice(["nan", "inf", "-inf", "NaN", "-Infinity", "1e999", "-1e999", "-0.0"])
        if KIND == "huge" and RNG.random() < 0.6:
            text = RNG.choice(["1.7e308", "-1.7e308", "5e-324", "-0.0", "0", "123456789012345678901234567890", "1e-400"])
        if KIND == "badformat" and RNG.random() < 0.5:
            # A decimal comma is documented to be read as the number before it.
            number = RNG.choice(["0", "1"])
            journal(epoch=epoch, value=number)
            write(f"epoch={epoch} loss={number},523\n")
            continue
        if KIND == "header":
            write(f"epoch={epoch} begins\n")
            journal(epoch=epoch, value=text)
            write(f"loss={text}\n")
            if epoch == 2:
                flood(epoch, "loss={text}\n")
        elif KIND == "missing" and RNG.random() < 0.5:
            write(f"epoch={epoch} nothing to see\n")
        elif KIND == "buffered":
            journal(epoch=epoch, value=text)
            held += f"epoch={epoch} loss={text}\n"
        elif KIND == "nonewline":
            emit(epoch, text, end=" ")
        elif KIND == "redraw":
            for part in range(3):
                # A terminal keeps what a shorter text does not overwrite, so the text is padded.
                emit(epoch, repr(value(epoch) + part / 100), before="\r", after=" " * 8, end="")
            write("\n")
        elif KIND == "stderr":
            emit(epoch, text, stream=2)
        elif KIND == "clock":
            emit(epoch, text, before=RNG.choice(["1970-01-01T00:00:00Z ", "2999-12-31 23:59:59,999 ", "[16:00:00] "]))
        else:
            emit(epoch, text)
        if KIND == "closeout" and epoch == crash_at:
            os.close(1)
            os.close(2)
            time.sleep(0.5)
            sys.exit(0)
        if KIND == "duplicate":
            for n in range(3):
                emit(epoch, repr(better(epoch) * 0.001 * (n + 1)))
        if KIND == "restart" and epoch == crash_at:
            for again in range(1, epoch + 1):
                emit(again, repr(value(again) + 0.01))
        if KIND == "backwards" and epoch > 1:
            emit(epoch - 1, repr(value(epoch - 1) + 0.01))
        if KIND == "skip" and epoch == crash_at:
            save(epoch + 2)
            return train()
        if KIND == "jump" and epoch == crash_at:
            emit(RNG.choice([10**9, 2**32, 2**64, 10**30]), text)
        if KIND not in ("ckpt_delete",):
            save(epoch)
        else:
            subprocess.run(["rm", "-rf", CHECKPOINTS])
        if KIND == "ckpt_corrupt":
            with open(os.path.join(CHECKPOINTS, "state"), "wb") as file:
                file.write(b"\x00\xff")
        if KIND == "ckpt_huge" and epoch == 1:
            with open(os.path.join(CHECKPOINTS, "big"), "wb") as file:
                file.write(b"z" * 30_000_000)
        if KIND == "ckpt_link" and epoch == 1 and not os.path.lexists(os.path.join(CHECKPOINTS, "loop")):
            os.symlink("/", os.path.join(CHECKPOINTS, "root"))
            os.symlink(".", os.path.join(CHECKPOINTS, "loop"))
            os.symlink("/nonexistent", os.path.join(CHECKPOINTS, "dangling"))
        if epoch == crash_at and KIND == "crash":
            sys.exit(RNG.choice([1, 2, 77, 127, 137, 255]))
        if epoch == crash_at and KIND == "signal":
            os.kill(os.getpid(), RNG.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM]))
    write(held)


def main():
    signal.signal(signal.SIGTERM, on_term)
    journal(start=True, pid=os.getpid(), kind=KIND, epochs=EPOCHS, attempt=os.environ.get("SM_ATTEMPT_ID"))
    if HOST != "algo-1":
        # Only the metric host's log counts, so this one prints values that would win.
        for epoch in range(1, EPOCHS + 1):
            write(f"epoch={epoch} loss={better(epoch)}\n")
            time.sleep(DELAY)
        return
    if KIND == "silent":
        return
    if KIND in ("child", "latechild", "session"):
        late = f"import time; time.sleep(1.5); print('epoch=1 loss={better(0)}\\nepoch={EPOCHS} loss={better(1)}', flush=True)"
        if KIND == "latechild":
            journal(epoch=1, value=str(better(0)))
            journal(epoch=EPOCHS, value=str(better(1)))
        stray(20, KIND == "session", late if KIND == "latechild" else "")
    train()
    journal(done=True)


main()
