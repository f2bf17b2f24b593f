#!/usr/bin/env python3
"""Counts words, as the MapReduce example of TaskStore does (docs/taskstore.md).

A task of the group map has a text. A worker replaces it by a task of the group sum, which has the counts of its words. When no text is left, workers
replace two sums by one, until one is left. Each replacement is one step of all or nothing. So you can start any number of workers, and kill them at any time:
when the ownership of a killed worker ends, another one does its task again.

TDF_TASKSTORE is the address of the interface, such as http://127.0.0.1:7379/ts, and TDF_TOKEN is a token. With arguments, the program adds each of them as a
text. Without arguments, it is a worker. It ends when the work is done, and prints the counts.
"""

import json
import os
import random
import sys
import time
import urllib.request

CLIENT = random.randrange(1, 2**31)
OWNED_FOR = 2_000_000_000  # nanoseconds; far longer than a step takes


def call(path, body=None):
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Authorization": "Bearer " + os.environ["TDF_TOKEN"], "Content-Type": "application/json"}
    request = urllib.request.Request(os.environ["TDF_TASKSTORE"] + "/" + path, data, headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def update(**lists):
    """Makes a step. It is refused if another worker has got one of the tasks meanwhile. Then that worker does the work."""
    return call("update", {"clientid": CLIENT, **lists})["error"] is None


def claim(group):
    tasks = call("claim", {"clientid": CLIENT, "group": group, "duration": OWNED_FOR})["tasks"]
    return tasks[0] if tasks else None


def count(text):
    counts = {}
    for word in text.split():
        counts[word] = counts.get(word, 0) + 1
    return counts


def add(a, b):
    return {word: a.get(word, 0) + b.get(word, 0) for word in sorted(a.keys() | b.keys())}


def map_one(task):
    update(deletes=[task["id"]], adds=[{"group": "sum", "data": json.dumps(count(task["data"]))}])


def reduce_two():
    one, other = claim("sum"), claim("sum")
    if one and other:
        total = add(json.loads(one["data"]), json.loads(other["data"]))
        update(deletes=[one["id"], other["id"]], adds=[{"group": "sum", "data": json.dumps(total)}])
    elif one:
        update(updates=[{"id": one["id"], "data": one["data"]}])  # another worker has the rest; give this one back
        time.sleep(random.uniform(0, 0.2))
    else:
        time.sleep(0.2)


def work():
    while True:
        task = claim("map")
        if task:
            map_one(task)
            continue
        if not call("group/map?owned=yes"):  # a text becomes a sum in one step, so from now on all of them are sums
            sums = call("group/sum?owned=yes")
            if len(sums) <= 1:
                return sums[0]["data"] if sums else "{}"
            reduce_two()
        else:
            time.sleep(0.2)


if len(sys.argv) > 1:
    if not update(adds=[{"group": "map", "data": text} for text in sys.argv[1:]]):
        sys.exit("the texts were not added")
else:
    print(work())
