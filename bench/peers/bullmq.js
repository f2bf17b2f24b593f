// A process of BullMQ for bench-peers. It answers verbs on stdin as package child describes.
'use strict';
const { Queue, Worker } = require('bullmq');
const job = JSON.parse(process.env.TDF_BENCH_JOB);
const connection = { host: '127.0.0.1', port: job.Port };
const name = 'bench';

const payload = (number) => `${number} `.padEnd(100, 'x');
const now = () => process.hrtime.bigint();

let queue, worker;
const tally = { Count: 0, Sum: 0, Waits: [], Wrong: '' };

function handle(task) {
  if (job.Timed) {
    tally.Waits.push(Number(now() - BigInt(task.data.split(' ')[0])) / 1e6);
  } else {
    tally.Sum += parseInt(task.data, 10);
  }
  tally.Count++;
  if (task.data.length !== 100) tally.Wrong = `a task has the payload ${task.data}`;
}

async function openInBatches() {
  for (let first = 0; first < job.Tasks; first += job.Batch) {
    const batch = [];
    for (let i = first; i < Math.min(first + job.Batch, job.Tasks); i++) batch.push({ name, data: payload(i) });
    await queue.addBulk(batch);
  }
}

async function openOneByOne() {
  for (let i = 0; i < job.Tasks; i++) await queue.add(name, payload(i));
}

const verbs = {
  async open() {
    const began = now();
    await (job.Batch > 1 ? openInBatches() : openOneByOne());
    return Number(now() - began);
  },
  async trickle() {
    for (let i = 0; i < job.Tasks; i++) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      await queue.add(name, payload(now()));
    }
  },
  async work() {
    worker = new Worker(name, async (task) => handle(task), { connection, concurrency: job.Slots });
    await worker.waitUntilReady();
  },
  async report() {
    return tally;
  },
};

const answer = (a) => process.stdout.write(JSON.stringify(a) + '\n');

async function main() {
  if (job.Role === 'opener') {
    queue = new Queue(name, { connection });
    await queue.waitUntilReady();
  }
  answer({});
  for await (const verb of require('readline').createInterface({ input: process.stdin })) {
    try {
      answer({ reply: await verbs[verb]() });
    } catch (error) {
      answer({ error: String(error) });
    }
  }
  if (worker) await worker.close();
  if (queue) await queue.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
